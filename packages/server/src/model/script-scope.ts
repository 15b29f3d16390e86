/**
 * What the rules of a script see of a request.
 *
 * All of it comes from the prompt and from counts that are folded with it, so
 * the same log always gives the same answer: a replay, or another node that takes
 * over, continues the script where it was.
 * A prompt that grew from that of an earlier request is read from there on.
 */
import { foldGrown } from "@tropism/domain/grown"
import { quoted } from "@tropism/domain/message"
import type { Spoken } from "@tropism/domain/context-window"
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
  /** What the agent was reminded of last, from its other contexts; empty without any. */
  readonly recalled: string
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
  values: ScriptScope["values"],
  spoken: Spoken | undefined
): ScriptScope => {
  const said = saidIn(prompt.content)
  const { answers: step, turns: turn } = spoken ?? { answers: said.step, turns: said.turn }
  return { ...said, step, turn, system: said.system ?? "", tools, values }
}

/** What was said so far: the part of the scope that a prompt decides. */
interface Said extends Omit<ScriptScope, "tools" | "values" | "step" | "system"> {
  step: number
  readonly results: Array<ScriptScope["results"][number]>
  /** Null before anything was said. */
  system: string | null
}

const saidIn = foldGrown<Prompt.Message, Said>(
  () => ({ step: 0, message: "", input: null, results: [], system: null, recalled: "", turn: 0 }),
  (said, message) => {
    switch (message.role) {
      case "system":
        said.system = said.system === null ? message.content : `${said.system}\n\n${message.content}`
        return said
      case "user": {
        const text = message.content.map((part) => (part.type === "text" ? part.text : "")).join("")
        // What is quoted is nobody's question.
        if (isQuoted(message)) return { ...said, recalled: text }
        return { ...said, turn: said.turn + 1, step: 0, message: text, input: inputOf(text), results: [] }
      }
      case "assistant":
        said.step += 1
        return said
      case "tool":
        for (const part of message.content) if (part.type === "tool-result") said.results.push(toResult(part))
        return said
    }
  }
)

export const isQuoted = ({ options }: Prompt.UserMessage): boolean =>
  Object.keys(quoted).some((key) => Object.hasOwn(options, key))

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))
const isJson = Schema.is(Schema.Json)

const inputOf = (message: string): Schema.Json => {
  const block = /^```json[^\S\n]*\n([\s\S]*?)\n[^\S\n]*```/m.exec(message)?.[1]
  return block === undefined ? null : Option.getOrNull(decodeJson(block))
}

export const toResult = (part: Prompt.ToolResultPart): ScriptScope["results"][number] => ({
  tool: part.name,
  result: decodeResult(part.result),
  isError: part.isFailure
})

/** A tool may answer JSON as text; a script would rather have the value. */
const decodeResult = (result: unknown): Schema.Json => {
  if (typeof result === "string") return Option.getOrElse(decodeJson(result), () => result)
  return isJson(result) ? result : null
}
