/**
 * What a request of either form asks of an agent: its messages, its files and its limits, or why it cannot be kept to.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 *
 * Pure, and shared by chat completions and responses. What would change the meaning of an answer and cannot be done is refused;
 * what only colours it (`top_p`, `seed`, penalties, `user`, …) is passed over.
 */
import { completionBounds } from "@tropism/api/openai-completions"
import type { Schema } from "effect"
import { Result } from "effect"
import { openAiFault, type OpenAiFault } from "./openai-faults.ts"

/** A file that a message names, before anybody has looked at it. */
export interface WantedFile {
  /** Where in the request it stands. */
  readonly param: string
  readonly source:
    | { readonly type: "bytes"; readonly dataUrl: string }
    | { readonly type: "address"; readonly url: string }
    | { readonly type: "kept"; readonly digest: string }
  readonly fileName: string | null
}

export type WantedMessage =
  | { readonly role: "user"; readonly content: string; readonly files: ReadonlyArray<WantedFile> }
  | { readonly role: "assistant" | "system"; readonly content: string }

/** A message, and its place in the request. */
export interface PlacedMessage {
  readonly message: WantedMessage
  readonly param: string
}

/** What is said to an agent, and how it shall answer. */
export interface WantedTurn {
  /** The name or the id of an agent. */
  readonly model: string
  /** What the agent is told to be, after its own system prompt. */
  readonly instructions: string | null
  /** What was said before. */
  readonly history: ReadonlyArray<WantedMessage>
  /** What is said now. */
  readonly said: Extract<WantedMessage, { readonly role: "user" }>
  readonly temperature: number | null
  readonly maxOutputTokens: number | null
  /** The agent answers in words and uses no tool. */
  readonly isToolless: boolean
}

export type Read<A> = Result.Result<A, OpenAiFault>

/** The files of a request, each source once. */
export const filesOf = ({
  history,
  said
}: Pick<WantedTurn, "history" | "said">): ReadonlyArray<WantedFile> => [
  ...new Map(
    [...history, said].flatMap((message) =>
      message.role === "user" ? message.files.map((file) => [sourceKey(file), file] as const) : []
    )
  ).values()
]

/** Of a file's source: the same file is looked at once. */
export const sourceKey = ({ source }: WantedFile): string => {
  switch (source.type) {
    case "bytes":
      return source.dataUrl
    case "address":
      return source.url
    case "kept":
      return source.digest
  }
}

/** A limit of tokens; a negative one is none. */
export const tokensOf = (wanted: number | null | undefined): number | null =>
  wanted === null || wanted === undefined || wanted < 0 ? null : Math.min(wanted, completionBounds.maxTokens)

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === false || (Array.isArray(value) && value.length === 0)

export const isSet = (value: Schema.Json): boolean => !isEmpty(value)

export const kindOf = (value: Schema.Json): unknown =>
  typeof value === "object" && value !== null && "type" in value ? value["type"] : undefined

/** A field that would change what an answer means, which of its values do, and why they cannot be kept to. */
export type Unkept<Field extends string> = readonly [Field, (value: Schema.Json) => boolean, string]

/** Refuses the first field that cannot be kept to. */
export const checkFields = <Field extends string>(
  unkept: ReadonlyArray<Unkept<Field>>,
  valueOf: (field: Field) => unknown
): Read<void> => {
  for (const [field, isUnkept, message] of unkept) {
    const value = valueOf(field) as Schema.Json | undefined
    if (value !== undefined && value !== null && isUnkept(value))
      return Result.fail(openAiFault(message, { param: field, code: "unsupported_parameter" }))
  }
  return Result.void
}

export const chosenTools =
  "An agent chooses among the tools of its own definition: leave tool_choice out, or set it to auto"
export const noTools = "An agent uses the tools of its own definition and runs them itself: leave tools out"
export const noLogprobs = "Nobody tells how likely the words of an agent were: leave top_logprobs out"

/** Calls and results of tools are refused. */
export const ownTools = (param: string): OpenAiFault =>
  openAiFault(
    "An agent runs its own tools and keeps their results: send what was said, and no calls or results of tools",
    { param, code: "unsupported_value" }
  )

/** Sound is refused. */
export const unheard = (param: string): OpenAiFault =>
  openAiFault("No agent hears: send text, pictures or files", { param, code: "unsupported_value" })

/** A file by its `data:` URL, or by its address. */
export const addressed = (url: string, param: string): Pick<WantedFile, "param" | "source"> => ({
  param,
  source: /^data:/i.test(url) ? { type: "bytes", dataUrl: url } : { type: "address", url }
})

/**
 * Requests that chat clients make by themselves: a title, tags, a follow-up for a conversation that they quote.
 *
 * Open WebUI begins them with "### Task:", LibreChat and LobeChat ask for a title in these words.
 */
const helperRequests: ReadonlyArray<RegExp> = [
  /^\s*###\s*Task:[^]*<chat_history>/i,
  /\b(?:concise|short),? (?:\d+-word-or-less )?title\b[^]*\bonly return the title\b/i,
  /\bsummariz(?:e|ing) (?:the|this|a) (?:user's )?conversation\b[^]*\btitle\b/i
]

/** Whether a chat client asks for itself and not its user. */
export const isHelperRequest = (content: string): boolean =>
  helperRequests.some((pattern) => pattern.test(content))

/** The user's message where a client ends with the assistant's, as "continue" buttons do. */
const continuation = {
  role: "user",
  content: "Continue your last message from where it ends.",
  files: []
} as const

/** Words that are the whole field have no content of their own. */
const contentParam = (param: string, field: string): string => (param === field ? field : `${param}.content`)

/** Splits the messages into the agent's instructions, the history and the message to answer. */
export const partsOf = (
  given: ReadonlyArray<PlacedMessage>,
  field: string
): Read<Pick<WantedTurn, "history" | "instructions" | "said">> => {
  const isContinued = given.findLast(({ message }) => message.role !== "system")?.message.role === "assistant"
  const placed = isContinued ? [...given, { message: continuation, param: field }] : given
  const messages = placed.map(({ message }) => message)
  const first = messages.findIndex(({ role }) => role !== "system")
  const last = messages.findLastIndex(({ role }) => role !== "system")
  const said = messages[last]
  const lastParam = placed[last]?.param ?? field
  if (said === undefined || said.role !== "user")
    return Result.fail(
      openAiFault("An agent answers a user: the last message must be the user's", {
        param: said === undefined ? field : `${lastParam}.role`
      })
    )
  if (said.content.trim() === "" && said.files.length === 0)
    return Result.fail(
      openAiFault("There is nothing in it: say something", { param: contentParam(lastParam, field) })
    )
  const long = messages.findIndex(({ content }) => content.length > completionBounds.messageMaxChars)
  if (long !== -1)
    return Result.fail(
      openAiFault(`A message may have ${completionBounds.messageMaxChars} characters`, {
        param: contentParam(placed[long]?.param ?? field, field),
        code: "string_above_max_length"
      })
    )
  const instructions = messages.slice(0, first).map(({ content }) => content.trim())
  return Result.succeed({
    instructions: instructions.join("\n\n").trim() || null,
    // A reminder behind the question stands before it: the question is said last.
    history: [...messages.slice(first, last), ...messages.slice(last + 1)],
    said
  })
}
