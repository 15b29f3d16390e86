/**
 * What a request used, where its server does not say.
 *
 * A guess of four characters to the token, of what the model was shown and of
 * what it said: near enough that a budget in tokens stops a run. Files count
 * nothing, because nobody knows what a model makes of one.
 */
import { Predicate } from "effect"
import type { ModelRequest } from "./model-request.ts"

const charsPerToken = 4

/** The tokens of so many characters, at least one where there are any. */
export const tokensOf = (chars: number): number => Math.ceil(chars / charsPerToken)

/** The characters that a model is shown with a request. */
export const charsOf = ({ messages, tools }: Pick<ModelRequest, "messages" | "tools">): number =>
  JSON.stringify(messages, withoutFiles).length + (tools.length === 0 ? 0 : JSON.stringify(tools).length)

const withoutFiles = (_key: string, value: unknown): unknown =>
  Predicate.hasProperty(value, "type") && value.type === "file" ? null : value
