/**
 * Keeps what one answer brings within what the log can hold.
 *
 * A model sends what it likes: characters that PostgreSQL keeps in no text,
 * counts of tokens beyond any column, ids beyond any index, text without an end.
 * Nobody behind this has to think of it. A character that comes in two pieces is put together;
 * arguments are judged elsewhere (`run/requested-call.ts`).
 */
import { createHash } from "node:crypto"
import { keptChars } from "@tropism/domain/kept-size"
import { type Usage, usageDetails } from "@tropism/domain/run"
import type { Response } from "effect/ai"
import { modelLimits } from "../limits.ts"

/** Text without what the database cannot keep: each such character is shown as U+FFFD. */
export const keepable = (text: string): string => text.replaceAll("\u0000", "\uFFFD").toWellFormed()

/**
 * The id that a call goes by: its own, or a stand-in for one that is too long, always the same.
 *
 * **Gotchas** Some servers write into an id what they want to see again (a thought signature, say): of an id that is too
 * long they see the stand-in.
 */
export const keepableCallId = (given: string): string => {
  const id = keepable(given)
  return Buffer.byteLength(id) <= modelLimits.callIdMaxBytes ? id : safeCallId(id)
}

/** Makes the pieces of one text keepable; half a character at the end of a piece waits for the next. */
export const makeKeepableText = () => {
  let half = ""
  return {
    take: (piece: string): string => {
      const text = half + piece
      half = endsInHalf.test(text) ? text.slice(-1) : ""
      return keepable(half === "" ? text : text.slice(0, -1))
    },
    /** What still waits when no more comes. */
    rest: (): string => keepable(half)
  }
}

const endsInHalf = /[\uD800-\uDBFF]$/

/** Counts of tokens that can be kept and added up. */
export const keepableUsage = (usage: Usage): Usage => {
  const [inputTokens, outputTokens] = [keepableCount(usage.inputTokens), keepableCount(usage.outputTokens)]
  // No more can come from a cache or go into it than was read, and no more be thought than was written.
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

/** Measures one answer while it comes, and says what is too much of it. */
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

/** The replacement for a call id: nine letters and digits, which every provider takes (Mistral takes nothing else). The same id gives the same replacement. */
export const safeCallId = (id: string): string =>
  Array.from(
    createHash("sha256").update(id, "utf8").digest().subarray(0, idChars),
    (byte) => alphabet[byte % alphabet.length]
  ).join("")
