/**
 * What a request for a chat completion asks of an agent, or why it cannot be kept to.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 */
import type { CompletionInput, CompletionMessage, CompletionPart } from "@tropism/api/openai-completions"
import { Result } from "effect"
import { openAiFault } from "./openai-faults.ts"
import {
  addressed,
  checkFields,
  chosenTools,
  isHelperRequest,
  isSet,
  kindOf,
  noLogprobs,
  noTools,
  ownTools,
  partsOf,
  type PlacedMessage,
  type Read,
  tokensOf,
  unheard,
  type Unkept,
  type WantedFile,
  type WantedMessage,
  type WantedTurn
} from "./openai-turn.ts"

/** What a chat completion asks for. */
export interface WantedCompletion extends WantedTurn {
  readonly isStreamed: boolean
  readonly isUsageWanted: boolean
  /** The conversation that goes on, where the body names it. */
  readonly conversation: string | null
}

/** Reads a request that fits the contract. */
export const readCompletion = (input: CompletionInput): Read<WantedCompletion> =>
  Result.gen(function* () {
    yield* checkFields(unkept, (field) => input[field])
    const messages: Array<PlacedMessage> = []
    for (const [index, message] of input.messages.entries()) {
      const param = `messages[${index}]`
      messages.push({ message: yield* readMessage(message, param), param })
    }
    const spoken = yield* partsOf(messages, "messages")
    // Open WebUI names its own tasks, where it forwards that.
    const isHelper = typeof input.metadata?.["task"] === "string" || isHelperRequest(spoken)
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

/** Fields that would change what an answer means, and why they cannot be kept to. */
const unkept: ReadonlyArray<Unkept<keyof CompletionInput>> = [
  ["tools", isSet, noTools],
  [
    "functions",
    isSet,
    "An agent uses the tools of its own definition and runs them itself: leave functions out"
  ],
  ["tool_choice", (value) => value !== "auto" && value !== "none", chosenTools],
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
  ["top_logprobs", (value) => value !== 0, noLogprobs],
  [
    "modalities",
    (value) => !Array.isArray(value) || value.some((each) => each !== "text"),
    'An agent answers in text: leave modalities out, or set it to ["text"]'
  ],
  ["audio", isSet, "An agent answers in text: leave audio out"],
  ["stop", isSet, "An agent ends its answer by itself: leave stop out"],
  ["web_search_options", isSet, "An agent searches where its own tools do: leave web_search_options out"]
]

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
      return Result.fail(unheard(param))
  }
}
