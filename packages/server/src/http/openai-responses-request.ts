/**
 * What a request for a response asks of an agent, or why it cannot be kept to.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 *
 * Pure. Items of earlier responses come as references; what they refer to was read before.
 */
import type {
  ResponseInput,
  ResponseInputItem,
  ResponseMessage,
  ResponsePart
} from "@tropism/api/openai-responses"
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

/** What a response asks for. */
export interface WantedResponse extends WantedTurn {
  /** What the system messages before all others tell the agent to be; the rest of `instructions` is of this response alone. */
  readonly leading: string | null
  readonly own: string | null
}

/** Reads a request that fits the contract, with the words of the items that it refers to; null has none. */
export const readResponse = (
  input: ResponseInput,
  referenced: ReadonlyMap<string, string | null>
): Read<WantedResponse> =>
  Result.gen(function* () {
    const messages: Array<PlacedMessage> = []
    if (typeof input.input === "string")
      messages.push({ message: { role: "user", content: input.input, files: [] }, param: "input" })
    else
      for (const [index, item] of input.input.entries()) {
        const param = `input[${index}]`
        const message = yield* readItem(item, referenced, param)
        if (message) messages.push({ message, param })
      }
    const { instructions: leading, ...spoken } = yield* partsOf(messages, "input")
    const own = input.instructions?.trim() || null
    const instructions = [leading, own].filter((text) => text !== null).join("\n\n") || null
    const isHelper = isHelperRequest({ ...spoken, instructions })
    return {
      ...spoken,
      instructions,
      leading,
      own,
      model: input.model,
      temperature: input.temperature ?? null,
      maxOutputTokens: tokensOf(input.max_output_tokens),
      isHelper,
      isToolless: isHelper || input.tool_choice === "none"
    }
  })

type Field = "tools" | "tool_choice" | "text.format" | "top_logprobs" | "max_tool_calls" | "prompt"

/** Fields that would change what a response means, and why they cannot be kept to. */
const unkept: ReadonlyArray<Unkept<Field>> = [
  ["tools", isSet, noTools],
  ["tool_choice", (value) => value !== "auto" && value !== "none", chosenTools],
  [
    "text.format",
    (value) => kindOf(value) !== "text",
    "An agent answers in words, and the server does not hold it to a format: leave text.format out, or set its type to text"
  ],
  ["top_logprobs", (value) => value !== 0, noLogprobs],
  ["max_tool_calls", isSet, "The limits of an agent are in its own definition: leave max_tool_calls out"],
  [
    "prompt",
    isSet,
    "The prompt of an agent is in its own definition: leave prompt out, and send instructions"
  ]
]

/** Refuses what cannot be kept to, before anything is looked up. */
export const checkResponse = (input: ResponseInput): Read<void> =>
  Result.gen(function* () {
    yield* checkFields(unkept, (field) => (field === "text.format" ? input.text?.format : input[field]))
    if (input.conversation && input.previous_response_id)
      return yield* Result.fail(
        openAiFault("previous_response_id names the conversation already: leave conversation out", {
          param: "conversation"
        })
      )
    if (input.background === true && input.store === false)
      return yield* Result.fail(
        openAiFault("A response in the background is read by its id: leave store out, or set it to true", {
          param: "background",
          code: "unsupported_parameter"
        })
      )
  })

/** The items of earlier responses to which a request refers, with their places. */
export const referencesIn = ({
  input
}: ResponseInput): ReadonlyArray<{ readonly id: string; readonly param: string }> =>
  typeof input === "string"
    ? []
    : input.flatMap((item, index) =>
        isReference(item) ? [{ id: item.id, param: `input[${index}].id` }] : []
      )

const isReference = (item: ResponseInputItem): item is Extract<ResponseInputItem, { readonly id: string }> =>
  "id" in item && !("role" in item)

/** Items of earlier responses that say nothing to the user. */
const passedOver: ReadonlySet<string> = new Set(["mcp_call", "mcp_list_tools", "reasoning"])

const readItem = (
  item: ResponseInputItem,
  referenced: ReadonlyMap<string, string | null>,
  param: string
): Read<WantedMessage | undefined> => {
  if ("role" in item) return readMessage(item, param)
  if (isReference(item)) {
    const content = referenced.get(item.id) ?? null
    return Result.succeed(content === null ? undefined : { role: "assistant", content })
  }
  return passedOver.has(item.type) ? Result.succeed(undefined) : Result.fail(ownTools(`${param}.type`))
}

const readMessage = ({ content, role }: ResponseMessage, param: string): Read<WantedMessage> => {
  if (role === "assistant") return Result.succeed({ role, content: textOf(content) })
  if (role !== "user") return Result.succeed({ role: "system", content: textOf(content) })
  return Result.map(readFiles(content, param), (files): WantedMessage => ({
    role,
    content: textOf(content),
    files
  }))
}

const textOf = (content: ResponseMessage["content"]): string =>
  typeof content === "string"
    ? content
    : content
        .flatMap((part) => ("text" in part ? [part.text] : "refusal" in part ? [part.refusal] : []))
        .join("\n")

const readFiles = (content: ResponseMessage["content"], param: string): Read<ReadonlyArray<WantedFile>> =>
  Result.gen(function* () {
    const files: Array<WantedFile> = []
    if (typeof content === "string") return files
    for (const [index, part] of content.entries()) {
      const file = yield* readFile(part, `${param}.content[${index}]`)
      if (file) files.push(file)
    }
    return files
  })

const readFile = (part: ResponsePart, param: string): Read<WantedFile | undefined> => {
  switch (part.type) {
    case "input_image":
    case "image_url":
    case "input_file": {
      const fileName = part.type === "input_file" ? (part.filename ?? null) : null
      const [field, url] = addressOf(part)
      if (url) return Result.succeed({ ...addressed(url, `${param}.${field}`), fileName })
      if (part.file_id)
        return Result.succeed({
          param: `${param}.file_id`,
          source: { type: "kept", digest: part.file_id },
          fileName
        })
      return Result.fail(
        openAiFault(
          "Send the file as a data: URL or an address, or name one that is kept by its digest in file_id",
          { param }
        )
      )
    }
    case "input_audio":
      return Result.fail(unheard(param))
    default:
      return Result.succeed(undefined)
  }
}

type FilePart = Extract<ResponsePart, { readonly type: "input_image" | "image_url" | "input_file" }>

const addressOf = (part: FilePart) =>
  part.type !== "input_file"
    ? typeof part.image_url === "object"
      ? (["image_url.url", part.image_url?.url] as const)
      : (["image_url", part.image_url] as const)
    : part.file_data
      ? (["file_data", part.file_data] as const)
      : (["file_url", part.file_url] as const)
