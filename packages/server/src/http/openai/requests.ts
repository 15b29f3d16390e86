/**
 * Parses a request of either API into messages, files and limits, or refuses it.
 *
 * Pure, and shared by chat completions and responses. A field that would change the meaning of an answer and is not supported is refused;
 * one that only shades it (`top_p`, `seed`, penalties, `user`, …) is ignored.
 */
import {
  completionBounds,
  type CompletionInput,
  type CompletionMessage,
  type CompletionPart
} from "@tropism/api/openai-completions"
import type {
  ResponseInput,
  ResponseInputItem,
  ResponseMessage,
  ResponsePart
} from "@tropism/api/openai-responses"
import { type Schema, Result } from "effect"
import { openAiFault, type OpenAiFault } from "./faults.ts"

/** A file that a message refers to, before it is fetched. */
export interface WantedFile {
  /** Its place in the request. */
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
interface PlacedMessage {
  readonly message: WantedMessage
  readonly param: string
}

/** A turn for an agent, and how it should answer. */
export interface WantedTurn {
  /** An agent's name or id. */
  readonly model: string
  /** Instructions that follow the agent's own system prompt. */
  readonly instructions: string | null
  /** Earlier messages. */
  readonly history: ReadonlyArray<WantedMessage>
  /** The message to answer. */
  readonly said: Extract<WantedMessage, { readonly role: "user" }>
  readonly temperature: number | null
  readonly maxOutputTokens: number | null
  /** A chat client's own request, beside the conversation. */
  readonly isHelper: boolean
  /** The agent answers in text and uses no tool. */
  readonly isToolless: boolean
}

type Read<A> = Result.Result<A, OpenAiFault>

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

/** The identity of a file's source: each file is fetched once. */
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

/** A token limit; a negative one means none. */
const tokensOf = (wanted: number | null | undefined): number | null =>
  wanted === null || wanted === undefined || wanted < 0 ? null : Math.min(wanted, completionBounds.maxTokens)

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === false || (Array.isArray(value) && value.length === 0)

const isSet = (value: Schema.Json): boolean => !isEmpty(value)

const kindOf = (value: Schema.Json): unknown =>
  typeof value === "object" && value !== null && "type" in value ? value["type"] : undefined

/** An unsupported field, a test for the values that would change an answer, and the reason of the refusal. */
type Unkept<Field extends string> = readonly [Field, (value: Schema.Json) => boolean, string]

/** Refuses the first unsupported field. */
const checkFields = <Field extends string>(
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

const chosenTools =
  "An agent chooses among the tools of its own definition: leave tool_choice out, or set it to auto"
const noTools = "An agent uses the tools of its own definition and runs them itself: leave tools out"
const noLogprobs = "Nobody tells how likely the words of an agent were: leave top_logprobs out"

/** Refuses tool calls and results. */
const ownTools = (param: string): OpenAiFault =>
  openAiFault(
    "An agent runs its own tools and keeps their results: send what was said, and no calls or results of tools",
    { param, code: "unsupported_value" }
  )

/** Refuses audio. */
const unheard = (param: string): OpenAiFault =>
  openAiFault("No agent hears: send text, pictures or files", { param, code: "unsupported_value" })

/** A file by its `data:` URL or its address. */
const addressed = (url: string, param: string): Pick<WantedFile, "param" | "source"> => ({
  param,
  source: /^data:/i.test(url) ? { type: "bytes", dataUrl: url } : { type: "address", url }
})

/** The conversation of a user; not an object of that name, and not a conversation with somebody else. */
const conversation =
  String.raw`(?:\b(?:first|user's(?: first)?) message\b|\buser's (?:question|query|input)\b|` +
  String.raw`\b(?:the|this|our|your|given|user's) (?:following |given |short |user's |above ){0,2}` +
  String.raw`(?:conversation|chat history|chat|dialogue|discussion|session)\b` +
  String.raw`(?! (?:objects?|records?|types?|paper|pages?|rooms?|groups?|channels?|software|with|about|on)\b)` +
  String.raw`|\ba (?:conversation|chat|dialogue)(?: session)? (?:that (?:starts|begins)\b|between a user\b))`

/** A name for the conversation, unless the text says that it names something else. */
const label = String.raw`\b(?:title|name|tags?|follow-?up questions?|emoji)\b(?! (?:for|of|to|on) (?!within\b|at most\b|no more than\b|up to\b|\d|${conversation}))`

/** The beginning of an instruction, after an optional role ("You are …"). */
const beginning = String.raw`^[\s#*-]*(?:you are [^.!?]{0,120}?[.!?,]\s*)?(?:(?:task|goal):\s*)?(?:based on [^,.]{0,60},\s*)?(?:detect (?:the )?user language and |in \d+ words or (?:less|fewer), )?(?:you (?:will|must|should|need to) |your task is to |please )*`

/** The rest of a clause, without quotations and without mention of the graph. */
const within = String.raw`(?:(?!\b(?:objects?|graph)\b)[^.!?"“„«]){0,80}`

const matches = (...parts: ReadonlyArray<string>): RegExp => new RegExp(parts.join(""), "i")

const labelling = String.raw`(?:generate|give|provide|write|create|suggest|summari[sz]e|analy[sz]e|name|come up with|return|produce|make|find|craft)\b`

/** Instructions to name a conversation, with the verb and the noun in either order. */
const namings: ReadonlyArray<RegExp> = [
  matches(beginning, labelling, within, label, within, conversation),
  matches(beginning, labelling, " ", conversation, within, label),
  matches(
    String.raw`^(?:based on|given|from) `,
    conversation,
    String.raw`[^,.]{0,40}, (?:please )?`,
    labelling,
    within,
    label,
    String.raw`(?! (?:objects?|(?:for|of|to|on) (?:the|our|my))\b)`
  ),
  /^you are a (?:conversation |chat |session |thread )?title generator\b(?! (?:for|of|in)\b)/i
]

/** Signs that a program parses the answer: a person does not ask for a bare name in this way. */
const formBound: ReadonlyArray<RegExp> = [
  /\b(?:the (?:title|name) only|only the (?:title|name)|nothing else|json)\b/i,
  /\b(?:only|just) (?:return|output|give|provide|respond|reply|answer)\b/i,
  /\b(?:return|output|provide|give|respond|reply|answer)(?: with)? only\b/i,
  /\b(?:no|without|not using|omitting) (?:any |quotes|quotation|punctuation)/i,
  /\b(?:do not|don't) (?:use|add|include|wrap|output)\b/i,
  /\((?:max|maximum|under|within|at most|up to)?\.? ?\d[^)]{0,20}\b(?:words?|char(?:acter)?s?)\b[^)]{0,10}\)/i
]

/** Signs that the answer should be stored somewhere: a person asks for work, in whatever form. */
const keptSomewhere =
  /\b(?:save|store|file|attach|append|add|put|send) (?:it|them|this|that|the (?:title|name|tags|summary))\b|\b(?:in|into|to|as|on) (?:a|an|the|our|my) (?:new )?(?:note|document|ticket|task|to-?do|wiki|page|report|issue|board|card|file|e-?mail|calendar|project)\b/i

/** Instructions that only programs send, whatever answer format they request; the tests list the clients. */
const machineMade: ReadonlyArray<RegExp> = [
  matches(
    beginning,
    String.raw`summari[sz]e `,
    conversation,
    within,
    String.raw`\b(?:use|used|serve) as (?:a |the )?(?:prompt|context)\b`,
    String.raw`(?! for (?:the|a|an|our|my)\b)`
  ),
  matches(beginning, String.raw`reflect the (?:speaker|user|author)'s\b`, within, String.raw`\bemoji\b`),
  /^\s*you (?:have been|are) (?:given|provided with) (?:a set of )?responses from (?:various|multiple|several|different) models\b/i,
  // Titles.
  /^name the conversation based on the chat records\b/i,
  /^summari[sz]e in an? \d+-word title\. give the title only\b/i,
  /^generate a title for this conversation:(?:\s|$)/i,
  /^given the following\.{3} please reply with a (?:short summary|title)\b/i,
  /^in this environment you have access to a set of tools you can use to generate the conversation title\b/i,
  /^(?:请)?使用四到五个字直接返回这句话的简要主题/,
  /^(?:总结给出的会话|将给定的(?:对话|会话)总结为)[^。]{0,40}标题/,
  // Summaries that replace the history.
  /^summari[sz]e the conversation by integrating new lines into the current summary\b/i,
  /^progressively summari[sz]e the lines of conversation provided\b/i,
  /^you're an assistant who's good at extracting key takeaways from conversations and summari[sz]ing them\b/i,
  /^简要总结一下(?:对话内容|你和用户的对话)，用作后续的上下文提示/,
  // Search queries, and answers to choose from.
  /^given the following conversation and a follow[- ]up (?:question|input), rephrase the follow[- ]up\b/i,
  /^you are an ai question rephraser\. your role is to rephrase follow-up queries\b/i,
  /^you are a sidecar that extracts \S+ quick-reply suggestions\b/i
]

/** The same where the conversation or a list of tools comes before the end of the instruction. */
const machineMadeWhole: ReadonlyArray<RegExp> = [
  // Open WebUI's tasks quote the conversation anywhere in the text.
  /^\s*###\s*Task:[^]*<chat_history>/i,
  /^\s*Available Tools:[^]*\bYour task is to choose and return the correct tool\(s\) from the list\b/i,
  /^\s*(?:Here are the first few user messages:[^]*)?Based on the conversation so far, provide a concise description of this session in \w+ words or less\b/i,
  /^\s*The following text is cut-off:[^]*\bnoting that it was cut-off\.\s*Summary:\s*$/i
]

/** An instruction states its purpose in its first words; the conversation follows. */
const instructionChars = 600

/** Whether the text instructs a model to title, name, tag, summarize or illustrate another conversation. */
const isHelperInstruction = (content: string): boolean => {
  const first = content
    .trimStart()
    .slice(0, instructionChars)
    .replace(/\s+/g, " ")
    .replace(/ \d+\. /g, " ")
  return (
    machineMadeWhole.some((pattern) => pattern.test(content)) ||
    machineMade.some((pattern) => pattern.test(first)) ||
    (formBound.some((pattern) => pattern.test(first)) &&
      !keptSomewhere.test(first) &&
      namings.some((pattern) => pattern.test(first)))
  )
}

/** Whether a chat client asks for itself and not for its user: by the message, or by the instructions before a single message. */
const isHelperRequest = ({
  history,
  instructions,
  said
}: Pick<WantedTurn, "history" | "instructions" | "said">): boolean =>
  isHelperInstruction(said.content) ||
  (instructions !== null && history.length === 0 && isHelperInstruction(instructions))

/** The user's message if a client ends with the assistant's, as "continue" buttons do. */
const continuation = {
  role: "user",
  content: "Continue your last message from where it ends.",
  files: []
} as const

/** Treats a client's own request in a final system message as the message to answer. */
const withSaidHelper = (given: ReadonlyArray<PlacedMessage>): ReadonlyArray<PlacedMessage> => {
  const last = given.at(-1)
  return last?.message.role === "system" && given.length > 1 && isHelperInstruction(last.message.content)
    ? [...given.slice(0, -1), { ...last, message: { ...last.message, role: "user", files: [] } }]
    : given
}

/** A field that is a plain string has no separate content field. */
const contentParam = (param: string, field: string): string => (param === field ? field : `${param}.content`)

/** Splits the messages into instructions, history and the message to answer. */
const partsOf = (
  given: ReadonlyArray<PlacedMessage>,
  field: string
): Read<Pick<WantedTurn, "history" | "instructions" | "said">> => {
  const spoken = withSaidHelper(given)
  const isContinued =
    spoken.findLast(({ message }) => message.role !== "system")?.message.role === "assistant"
  const placed = isContinued ? [...spoken, { message: continuation, param: field }] : spoken
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
    // A reminder after the question moves before it, so that the question is last.
    history: [...messages.slice(first, last), ...messages.slice(last + 1)],
    said
  })
}

// Parses a request for a chat completion.

/** A parsed chat completion. */
export interface WantedCompletion extends WantedTurn {
  readonly isStreamed: boolean
  readonly isUsageWanted: boolean
  /** The conversation to continue, where the body names one. */
  readonly conversation: string | null
}

/** Parses a request that matches the contract. */
export const readCompletion = (input: CompletionInput): Read<WantedCompletion> =>
  Result.gen(function* () {
    yield* checkFields(unkept, (field) => input[field])
    const messages: Array<PlacedMessage> = []
    for (const [index, message] of input.messages.entries()) {
      const param = `messages[${index}]`
      messages.push({ message: yield* readMessage(message, param), param })
    }
    const spoken = yield* partsOf(messages, "messages")
    // Open WebUI marks its own tasks, where a proxy forwards the mark.
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

/** Fields that would change the meaning of an answer, and why they are unsupported. */
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
      return Result.map(readFiles(message.content, param, readFile), (files): WantedMessage => ({
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

/** The text of a message of either API: its text parts and refusals, one a line. */
const textOf = (content: string | ReadonlyArray<CompletionPart | ResponsePart | Refusal>): string =>
  typeof content === "string"
    ? content
    : content
        .flatMap((part) => ("text" in part ? [part.text] : "refusal" in part ? [part.refusal] : []))
        .join("\n")

type Refusal = { readonly type: "refusal"; readonly refusal: string }

/** The files of a message of either API; `read` reads one part. */
const readFiles = <Part>(
  content: string | ReadonlyArray<Part>,
  param: string,
  read: (part: Part, param: string) => Read<WantedFile | undefined>
): Read<ReadonlyArray<WantedFile>> =>
  Result.gen(function* () {
    const files: Array<WantedFile> = []
    if (typeof content === "string") return files
    for (const [index, part] of content.entries()) {
      const file = yield* read(part, `${param}.content[${index}]`)
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

// Parses a request for a response.
//
// Pure. Items of earlier responses come as references, which were resolved before.

/** A parsed response request. */
export interface WantedResponse extends WantedTurn {
  /** The system messages before all others; the rest of `instructions` applies to this response only. */
  readonly leading: string | null
  readonly own: string | null
}

/** Parses a request that matches the contract, given the text of the items that it refers to; null is an item without text. */
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

/** Fields that would change the meaning of a response, and why they are unsupported. */
const unsupportedInResponses: ReadonlyArray<Unkept<Field>> = [
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

/** Refuses unsupported fields before any look-up. */
export const checkResponse = (input: ResponseInput): Read<void> =>
  Result.gen(function* () {
    yield* checkFields(unsupportedInResponses, (field) =>
      field === "text.format" ? input.text?.format : input[field]
    )
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

/** Items of earlier responses without text for the user. */
const passedOver: ReadonlySet<string> = new Set(["mcp_call", "mcp_list_tools", "reasoning"])

const readItem = (
  item: ResponseInputItem,
  referenced: ReadonlyMap<string, string | null>,
  param: string
): Read<WantedMessage | undefined> => {
  if ("role" in item) return readResponseMessage(item, param)
  if (isReference(item)) {
    const content = referenced.get(item.id) ?? null
    return Result.succeed(content === null ? undefined : { role: "assistant", content })
  }
  return passedOver.has(item.type) ? Result.succeed(undefined) : Result.fail(ownTools(`${param}.type`))
}

const readResponseMessage = ({ content, role }: ResponseMessage, param: string): Read<WantedMessage> => {
  if (role === "assistant") return Result.succeed({ role, content: textOf(content) })
  if (role !== "user") return Result.succeed({ role: "system", content: textOf(content) })
  return Result.map(readFiles(content, param, readResponseFile), (files): WantedMessage => ({
    role,
    content: textOf(content),
    files
  }))
}

const readResponseFile = (part: ResponsePart, param: string): Read<WantedFile | undefined> => {
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
