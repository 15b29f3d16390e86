/**
 * What a request used, where its server does not say.
 *
 * A guess of four characters to the token, of what the model was shown and of
 * what it said: near enough that a budget in tokens stops a run. Files count
 * nothing, because nobody knows what a model makes of one. Messages are counted
 * once, however many requests they are part of.
 */
import { foldGrown } from "@tropism/domain/grown"
import { Predicate } from "effect"
import type { ModelRequest, OfferedTool } from "./model-request.ts"

const charsPerToken = 4

/** The tokens of so many characters, at least one where there are any. */
export const tokensOf = (chars: number): number => Math.ceil(chars / charsPerToken)

/** The characters that a model is shown with a request. */
export const charsOf = ({ messages, tools }: Pick<ModelRequest, "messages" | "tools">): number =>
  charsOfList(messages) + charsOfTools(tools)

/** The characters of the JSON of a list, such as that of messages, in which files are null. */
export const charsOfList = (items: ReadonlyArray<unknown>): number => Math.max(2, charsWithin(items) + 1)

/** Each item is counted with the bracket or the comma before it. */
const charsWithin = foldGrown<unknown, number>(
  () => 0,
  (chars, item) => chars + 1 + JSON.stringify(item, withoutFiles).length
)

const withoutFiles = (_key: string, value: unknown): unknown =>
  Predicate.hasProperty(value, "type") && value.type === "file" ? null : value

/** By the list: agents offer the same lists again and again. */
const toolChars = new WeakMap<ReadonlyArray<OfferedTool>, number>()

const charsOfTools = (tools: ReadonlyArray<OfferedTool>): number => {
  const chars = toolChars.get(tools) ?? (tools.length === 0 ? 0 : JSON.stringify(tools).length)
  toolChars.set(tools, chars)
  return chars
}
