/**
 * What a request for a chat completion asks of an agent, or why it cannot be kept to.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 *
 * Pure. What would change the meaning of an answer and cannot be done is refused;
 * what only colours it (`top_p`, `seed`, penalties, `user`, `store`, …) is passed over.
 */
import {
  completionBounds,
  type CompletionInput,
  type CompletionMessage,
  type CompletionPart
} from "@tropism/api/openai-completions"
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

export interface WantedCompletion {
  /** The name or the id of an agent. */
  readonly model: string
  /** What the agent is told to be, behind its own system prompt. */
  readonly instructions: string | null
  /** What was said before. */
  readonly history: ReadonlyArray<WantedMessage>
  /** What is said now. */
  readonly said: Extract<WantedMessage, { readonly role: "user" }>
  readonly temperature: number | null
  readonly maxOutputTokens: number | null
  /** A chat client asks for itself, beside the conversation. */
  readonly isHelper: boolean
  /** The agent answers in words and uses no tool. */
  readonly isToolless: boolean
  readonly isStreamed: boolean
  readonly isUsageWanted: boolean
  /** The conversation that goes on, where the body names it. */
  readonly conversation: string | null
}

type Read<A> = Result.Result<A, OpenAiFault>

/** Reads a request that fits the contract. */
export const readCompletion = (input: CompletionInput): Read<WantedCompletion> =>
  Result.gen(function* () {
    yield* checkFields(input)
    const messages: Array<WantedMessage> = []
    for (const [index, message] of input.messages.entries())
      messages.push(yield* readMessage(message, `messages[${index}]`))
    const spoken = yield* partsOf(messages)
    // Open WebUI names its own tasks, where it forwards that.
    const isHelper = typeof input.metadata?.["task"] === "string" || isHelperRequest(spoken.said.content)
    const conversation = input.metadata?.["conversation_id"] ?? null
    if (conversation !== null && typeof conversation !== "string")
      return yield* Result.fail(openAiFault("This must be text", { param: "metadata.conversation_id" }))
    return {
      ...spoken,
      model: input.model,
      temperature: input.temperature ?? null,
      maxOutputTokens: tokensOf(input.max_completion_tokens ?? input.max_tokens),
      isHelper,
      isToolless: isHelper || input.tool_choice === "none" || input.function_call === "none",
      isStreamed: input.stream === true,
      isUsageWanted: input.stream_options?.include_usage === true,
      conversation
    }
  })

const tokensOf = (wanted: number | null | undefined): number | null =>
  wanted === null || wanted === undefined || wanted < 0 ? null : Math.min(wanted, completionBounds.maxTokens)

/** The files of a request, each source once. */
export const filesOf = ({
  history,
  said
}: Pick<WantedCompletion, "history" | "said">): ReadonlyArray<WantedFile> => [
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

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === false || (Array.isArray(value) && value.length === 0)

/** Fields that would change what an answer means, and why they cannot be kept to. */
const unkept: ReadonlyArray<readonly [keyof CompletionInput, (value: Schema.Json) => boolean, string]> = [
  ["tools", isSet, "An agent uses the tools of its own definition and runs them itself: leave tools out"],
  [
    "functions",
    isSet,
    "An agent uses the tools of its own definition and runs them itself: leave functions out"
  ],
  [
    "tool_choice",
    (value) => value !== "auto" && value !== "none",
    "An agent chooses among the tools of its own definition: leave tool_choice out, or set it to auto"
  ],
  [
    "function_call",
    (value) => value !== "auto" && value !== "none",
    "An agent chooses among the tools of its own definition: leave function_call out"
  ],
  [
    "response_format",
    (value) => kindOf(value) !== "text",
    "An agent answers in words, and nobody holds it to a format: leave response_format out, or set its type to text"
  ],
  ["n", (value) => value !== 1, "An agent answers once: leave n out, or set it to 1"],
  ["logprobs", isSet, "Nobody tells how likely the words of an agent were: leave logprobs out"],
  [
    "top_logprobs",
    (value) => value !== 0,
    "Nobody tells how likely the words of an agent were: leave top_logprobs out"
  ],
  [
    "modalities",
    (value) => !Array.isArray(value) || value.some((each) => each !== "text"),
    'An agent answers in text: leave modalities out, or set it to ["text"]'
  ],
  ["audio", isSet, "An agent answers in text: leave audio out"],
  ["stop", isSet, "An agent ends its answer by itself: leave stop out"],
  ["web_search_options", isSet, "An agent searches where its own tools do: leave web_search_options out"]
]

function isSet(value: Schema.Json): boolean {
  return !isEmpty(value)
}

const kindOf = (value: Schema.Json): unknown =>
  typeof value === "object" && value !== null && "type" in value ? value["type"] : undefined

const checkFields = (input: CompletionInput): Read<void> => {
  for (const [field, isUnkept, message] of unkept) {
    const value = input[field] as Schema.Json | undefined
    if (value !== undefined && value !== null && isUnkept(value))
      return Result.fail(openAiFault(message, { param: field, code: "unsupported_parameter" }))
  }
  return Result.void
}

const readMessage = (message: CompletionMessage, param: string): Read<WantedMessage> => {
  switch (message.role) {
    case "system":
    case "developer":
      return Result.succeed({ role: "system", content: textOf(message.content) })
    case "user":
      return Result.map(readFiles(message.content, param), (files): WantedMessage => ({
        role: "user",
        content: textOf(message.content),
        files
      }))
    case "assistant":
      return (message.tool_calls ?? []).length > 0
        ? Result.fail(ownTools(`${param}.tool_calls`))
        : Result.succeed({ role: "assistant", content: textOf(message.content ?? "") })
    case "tool":
    case "function":
      return Result.fail(ownTools(`${param}.role`))
  }
}

const ownTools = (param: string): OpenAiFault =>
  openAiFault(
    "An agent runs its own tools and keeps their results: send what was said, and no calls or results of tools",
    { param, code: "unsupported_value" }
  )

type Parts = ReadonlyArray<CompletionPart | { readonly type: "refusal"; readonly refusal: string }>

const textOf = (content: string | Parts): string =>
  typeof content === "string"
    ? content
    : content
        .flatMap((part) =>
          part.type === "text" ? [part.text] : part.type === "refusal" ? [part.refusal] : []
        )
        .join("\n")

const readFiles = (
  content: string | ReadonlyArray<CompletionPart>,
  param: string
): Read<ReadonlyArray<WantedFile>> =>
  Result.gen(function* () {
    const files: Array<WantedFile> = []
    if (typeof content === "string") return files
    for (const [index, part] of content.entries()) {
      const file = yield* readFile(part, `${param}.content[${index}]`)
      if (file) files.push(file)
    }
    return files
  })

const readFile = (part: CompletionPart, param: string): Read<WantedFile | undefined> => {
  switch (part.type) {
    case "text":
      return Result.succeed(undefined)
    case "image_url": {
      const { image_url: image } = part
      const file =
        typeof image === "string"
          ? addressed(image, `${param}.image_url`)
          : addressed(image.url, `${param}.image_url.url`)
      return Result.succeed({ ...file, fileName: null })
    }
    case "file": {
      const { file_data: bytes, file_id: digest, filename } = part.file
      const fileName = filename ?? null
      if (bytes) return Result.succeed({ ...addressed(bytes, `${param}.file.file_data`), fileName })
      if (digest)
        return Result.succeed({ param: `${param}.file.file_id`, source: { type: "kept", digest }, fileName })
      return Result.fail(
        openAiFault(
          "Send the file as a data: URL in file_data, or name one that is kept by its digest in file_id",
          {
            param: `${param}.file`
          }
        )
      )
    }
    case "input_audio":
      return Result.fail(
        openAiFault("No agent hears: send text, pictures or files", { param, code: "unsupported_value" })
      )
  }
}

const addressed = (url: string, param: string): Pick<WantedFile, "param" | "source"> => ({
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

/** Splits the messages into the agent's instructions, the history and the message to answer. */
const partsOf = (
  given: ReadonlyArray<WantedMessage>
): Read<Pick<WantedCompletion, "history" | "instructions" | "said">> => {
  const messages =
    given.findLast(({ role }) => role !== "system")?.role === "assistant" ? [...given, continuation] : given
  const first = messages.findIndex(({ role }) => role !== "system")
  const last = messages.findLastIndex(({ role }) => role !== "system")
  const said = messages[last]
  if (said === undefined || said.role !== "user")
    return Result.fail(
      openAiFault("An agent answers a user: the last message must be the user's", {
        param: said === undefined ? "messages" : `messages[${last}].role`
      })
    )
  if (said.content.trim() === "" && said.files.length === 0)
    return Result.fail(
      openAiFault("There is nothing in it: say something", { param: `messages[${last}].content` })
    )
  const long = messages.findIndex(({ content }) => content.length > completionBounds.messageMaxChars)
  if (long !== -1)
    return Result.fail(
      openAiFault(`A message may have ${completionBounds.messageMaxChars} characters`, {
        param: `messages[${long}].content`,
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
