/**
 * Gathers the parts of one answer in their order: reasoning, pieces of text, tool calls, each with its metadata.
 *
 * Providers refuse a second request without the reasoning or the signatures of the first. Their metadata is stored unchanged.
 */
import type { AnswerPart } from "@tropism/domain/answer-part"
import type { Response } from "effect/ai"
import { modelLimits } from "../limits.ts"
import { argumentsFault } from "./ai-sdk-parts.ts"
import { keepable } from "./keepable-parts.ts"
import type { FinishedPart } from "./model-request.ts"
import { spokenThinking } from "./think-tags.ts"

type Metadata = NonNullable<AnswerPart["metadata"]>

interface Gathered {
  readonly type: FinishedPart["type"]
  readonly id: string
  text: string
  chars: number
  metadata: Metadata
}

/** Gathers while an answer comes. */
export const makeAnswerParts = () => {
  const gathered: Array<Gathered> = []
  let isTooLong = false
  let size = 0
  const partOf = (type: Gathered["type"], id: string): Gathered => {
    const open = gathered.findLast((part) => part.type === type && part.id === id)
    // A tool call or another block between two pieces begins a new part, whatever id a server gives them.
    if (open !== undefined && type !== "toolCall" && gathered.at(-1) === open) return open
    const part: Gathered = { type, id, text: "", chars: 0, metadata: {} }
    gathered.push(part)
    return part
  }
  const attach = (part: Gathered, metadata: Response.ProviderMetadata | undefined) => {
    for (const [provider, value] of Object.entries((metadata ?? {}) as Metadata)) {
      if (provider === argumentsFault) continue
      part.metadata = { ...part.metadata, [provider]: { ...part.metadata[provider], ...value } }
      size += JSON.stringify(value).length
    }
  }
  return {
    take: (part: Response.StreamPartEncoded): void => {
      switch (part.type) {
        case "reasoning-start":
        case "text-start":
          gathered.push({ type: typeOf(part.type), id: part.id, text: "", chars: 0, metadata: {} })
          attach(partOf(typeOf(part.type), part.id), part.metadata)
          break
        case "reasoning-end":
        case "text-end": {
          if (part.id === spokenThinking) {
            gathered.splice(
              0,
              gathered.length,
              ...gathered.map((each) =>
                each.type === "text" ? { ...each, type: "reasoning" as const } : each
              )
            )
            size += gathered.reduce((sum, { type, chars }) => (type === "reasoning" ? sum + chars : sum), 0)
            break
          }
          const open = gathered.findLast(({ id, type }) => type === typeOf(part.type) && id === part.id)
          if (open !== undefined) attach(open, part.metadata)
          break
        }
        case "reasoning-delta": {
          const open = partOf("reasoning", part.id)
          open.text += part.delta
          size += part.delta.length
          attach(open, part.metadata)
          break
        }
        case "text-delta": {
          const open = partOf("text", part.id)
          open.chars += part.delta.length
          open.text += part.delta
          attach(open, part.metadata)
          break
        }
        case "tool-call":
          attach(partOf("toolCall", part.id), part.metadata)
          break
      }
      if (size > modelLimits.answerPartsMaxChars) isTooLong = true
    },
    /** The parts, if any of them has something that its model wants back. */
    finish: (): ReadonlyArray<FinishedPart> | undefined => {
      if (isTooLong) return undefined
      let call = 0
      const parts = gathered.flatMap((part): ReadonlyArray<FinishedPart> => {
        const metadata = Object.keys(part.metadata).length === 0 ? {} : { metadata: part.metadata }
        const isBare = Object.keys(metadata).length === 0
        if (part.type === "toolCall") return [{ type: "toolCall", call: call++, ...metadata }]
        if (part.type === "reasoning")
          return isBare && part.text === ""
            ? []
            : [{ type: "reasoning", text: keepable(part.text), ...metadata }]
        return isBare && part.chars === 0 ? [] : [{ type: "text", chars: part.chars, ...metadata }]
      })
      const isWanted = parts.some((part) => part.type === "reasoning" || isWantedBack(part.metadata))
      return isWanted ? parts : undefined
    }
  }
}

/** An item id alone is useless to a provider that was asked to store nothing, and so is an empty list. */
const isWantedBack = (metadata: Metadata | undefined): boolean =>
  Object.values(metadata ?? {}).some((values) =>
    Object.entries(values).some(
      ([key, value]) => key !== "itemId" && !(Array.isArray(value) && value.length === 0)
    )
  )

const typeOf = (type: "reasoning-start" | "reasoning-end" | "text-start" | "text-end"): Gathered["type"] =>
  type.startsWith("reasoning") ? "reasoning" : "text"
