/**
 * Bounds and cleans an answer so that the log can store it.
 *
 * A model may send anything: characters that PostgreSQL text cannot hold, token counts beyond any column, ids beyond any index, endless
 * text. Nothing after this has to check again. A character split across two pieces is joined; arguments are checked in
 * `runs/model-answer.ts`.
 */
import { createHash } from "node:crypto"
import { keptChars } from "@tropism/domain/kept-size"
import { type Usage, usageDetails } from "@tropism/domain/run"
import type { Response } from "effect/ai"
import { modelLimits } from "../limits.ts"

/** Text that the database can store: each unsupported character becomes U+FFFD. */
export const keepable = (text: string): string => text.replaceAll("\u0000", "\uFFFD").toWellFormed()

/**
 * A call's id, or a deterministic replacement for one that is too long.
 *
 * **Gotchas** Some servers put data that they want back (such as a thought signature) into an id; from a long id they get the replacement.
 */
export const keepableCallId = (given: string): string => {
  const id = keepable(given)
  return Buffer.byteLength(id) <= modelLimits.callIdMaxBytes ? id : safeCallId(id)
}

/** Cleans the pieces of one text; half a character at the end of a piece waits for the next. */
export const makeKeepableText = () => {
  let half = ""
  return {
    take: (piece: string): string => {
      const text = half + piece
      half = endsInHalf.test(text) ? text.slice(-1) : ""
      return keepable(half === "" ? text : text.slice(0, -1))
    },
    /** The half character that remains at the end. */
    rest: (): string => keepable(half)
  }
}

const endsInHalf = /[\uD800-\uDBFF]$/

/** Token counts that can be stored and added up. */
export const keepableUsage = (usage: Usage): Usage => {
  const [inputTokens, outputTokens] = [keepableCount(usage.inputTokens), keepableCount(usage.outputTokens)]
  // Cached and written tokens cannot exceed the input, nor reasoning the output.
  const cachedInputTokens = Math.min(keepableCount(usage.cachedInputTokens ?? 0), inputTokens)
  return {
    inputTokens,
    outputTokens,
    ...usageDetails({
      cachedInputTokens,
      cacheWriteTokens: Math.min(keepableCount(usage.cacheWriteTokens ?? 0), inputTokens - cachedInputTokens),
      reasoningTokens: Math.min(keepableCount(usage.reasoningTokens ?? 0), outputTokens)
    })
  }
}

const keepableCount = (tokens: number): number =>
  Number.isNaN(tokens) ? 0 : Math.min(Math.max(0, Math.round(tokens)), modelLimits.requestMaxTokens)

/** Measures one answer while it streams, and reports when it is too large. */
export const makeMeasure = () => {
  let text = 0
  let argumentsOnTheirWay = 0
  let asked = 0
  let calls = 0
  return (part: Response.StreamPartEncoded): string | undefined => {
    if (part.type === "text-delta") text += part.delta.length
    if (part.type === "tool-params-delta") argumentsOnTheirWay += part.delta.length
    if (part.type === "tool-call") {
      calls += 1
      asked += part.id.length + part.name.length + keptChars(part.params)
    }
    if (calls > modelLimits.answerMaxCalls)
      return `The answer asks for more than ${modelLimits.answerMaxCalls} tool calls, which is more than can be kept`
    return text + Math.max(argumentsOnTheirWay, asked) > modelLimits.answerMaxChars
      ? `The answer is longer than ${modelLimits.answerMaxChars} characters, which is more than can be kept`
      : undefined
  }
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
const idChars = 9

/**
 * The replacement for a call id: nine letters and digits, which every provider accepts (Mistral takes nothing else). The same id gives the
 * same replacement.
 */
export const safeCallId = (id: string): string =>
  Array.from(
    createHash("sha256").update(id, "utf8").digest().subarray(0, idChars),
    (byte) => alphabet[byte % alphabet.length]
  ).join("")
