/**
 * What the rules of a script see of a request.
 *
 * All of it comes from the prompt and nothing is remembered between requests,
 * so the same log always gives the same answer: a replay, or another node that
 * takes over, continues the script where it was.
 */
import { Option, Schema } from "effect"
import type { Prompt } from "effect/ai"

export interface ScriptScope {
  /** Answers of the assistant since the last message of the user: 0 at the first. */
  readonly step: number
  /** The text of the last message of the user. */
  readonly message: string
  /** The first fenced `json` block of that message, decoded; null without one. */
  readonly input: Schema.Json
  /** Results of tools since then, in order. */
  readonly results: ReadonlyArray<{
    readonly tool: string
    readonly result: Schema.Json
    readonly isError: boolean
  }>
  readonly system: string
  /** Names of the tools that may be called. */
  readonly tools: ReadonlyArray<string>
  /** The script's own constants. */
  readonly values: Readonly<Record<string, Schema.Json>>
  /** Messages of the user so far: with the step, it names an answer uniquely within its context. */
  readonly turn: number
}

/** Reads the scope off a prompt. */
export const scopeOf = (
  prompt: Prompt.Prompt,
  tools: ReadonlyArray<string>,
  values: ScriptScope["values"]
): ScriptScope => {
  const messages = prompt.content
  const lastUserAt = messages.findLastIndex((message) => message.role === "user")
  const since = messages.slice(lastUserAt + 1)
  const user = messages[lastUserAt]
  const message =
    user?.role === "user" ? user.content.map((part) => (part.type === "text" ? part.text : "")).join("") : ""
  return {
    step: since.filter((message) => message.role === "assistant").length,
    message,
    input: inputOf(message),
    results: since.flatMap((message) => (message.role === "tool" ? message.content.flatMap(toResult) : [])),
    system: messages.flatMap((message) => (message.role === "system" ? [message.content] : [])).join("\n\n"),
    tools,
    values,
    turn: messages.filter((message) => message.role === "user").length
  }
}

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))
const isJson = Schema.is(Schema.Json)

const inputOf = (message: string): Schema.Json => {
  const block = /^```json[^\S\n]*\n([\s\S]*?)\n[^\S\n]*```/m.exec(message)?.[1]
  return block === undefined ? null : Option.getOrNull(decodeJson(block))
}

const toResult = (part: Prompt.ToolMessagePart): ScriptScope["results"] =>
  part.type === "tool-result"
    ? [{ tool: part.name, result: decodeResult(part.result), isError: part.isFailure }]
    : []

/** A tool may answer JSON as text; a script would rather have the value. */
const decodeResult = (result: unknown): Schema.Json => {
  if (typeof result === "string") return Option.getOrElse(decodeJson(result), () => result)
  return isJson(result) ? result : null
}
