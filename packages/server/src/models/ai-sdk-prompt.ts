/**
 * Maps a prompt and its tools to the AI SDK's format.
 *
 * Messages keep their order and nothing is cut. It handles three provider rules: Anthropic, Gemini and several local chat templates take no
 * system message in the middle of a conversation; Anthropic refuses blank texts; Gemini wants the results of one answer's calls together.
 * **Invariant**: where a user message carries a system notice in a tag, no other text can contain that tag. A prompt that extends an
 * earlier one is mapped from there on; the provider package processes all of it.
 */
import type {
  JSONValue,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ReasoningPart,
  LanguageModelV4TextPart,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart
} from "@ai-sdk/provider"
import { AnswerPart } from "@tropism/domain/answer-part"
import { foldGrown } from "@tropism/domain/grown"
import { Option, Schema } from "effect"
import type { Prompt } from "effect/ai"
import { safeCallId } from "./storable-parts.ts"

type AssistantPart =
  | LanguageModelV4TextPart
  | LanguageModelV4FilePart
  | LanguageModelV4ReasoningPart
  | LanguageModelV4ToolCallPart

/** The target model and what it accepts. */
export interface Asked {
  /** provider:name; parts of answers go back only to the model that produced them. */
  readonly name: string
  /** Whether it accepts a system message in the middle of a conversation; otherwise a user message carries it. */
  readonly lateSystemMessages: boolean
  /** Whether consecutive messages of one role are joined: several chat templates (Gemma, Mistral, Llama) refuse two in a row. */
  readonly joinsNeighbours: boolean
  /** Whether an assistant message must separate a tool result from the user: Mistral refuses one directly after the other. */
  readonly answersTools: boolean
  /** The call ids that it accepts; any without a pattern. */
  readonly callIds?: RegExp | undefined
  /** Where pictures of tool results go. */
  readonly pictures: PicturePlace
}

/** In the result itself, in a user message after an answer's results, or nowhere. */
export type PicturePlace = "result" | "user" | "none"

/** Maps a prompt for a model. */
export const toAiSdkPrompt = (prompt: Prompt.Prompt, asked: Asked): LanguageModelV4Prompt => {
  const { messages, opening } = translatorOf(asked)(prompt.content)
  // Some chat templates accept only one system message, so the opening ones are joined.
  const instructions = opening.join("\n\n")
  return [
    ...(instructions.trim() === "" ? [] : [{ role: "system" as const, content: instructions }]),
    ...messages.slice(0, -1),
    ...messages.slice(-1).map(trimmed)
  ]
}

/** Whether the turn has calls without their signed reasoning: calls of another model, or of one that did not reason. */
export const hasUnthoughtCalls = (prompt: LanguageModelV4Prompt): boolean => {
  // A notice after tool results does not begin a turn.
  const start = prompt.findLastIndex(
    ({ role }, index) => role === "user" && prompt[index - 1]?.role !== "tool"
  )
  return prompt.slice(start + 1).some(({ content, role }) => {
    if (role !== "assistant" || !content.some(({ type }) => type === "tool-call")) return false
    const [first] = content
    return !(first?.type === "reasoning" && first.providerOptions !== undefined)
  })
}

/** What Google accepts as the signature of a call that it did not sign (ai.google.dev, thought signatures). */
const placeholder = { google: { thoughtSignature: "skip_thought_signature_validator" } }

const isSigned = ({ providerOptions = {} }: AssistantPart): boolean =>
  Object.values(providerOptions).some((options) => options["thoughtSignature"] !== undefined)

const isUnsignedAnswer = (message: LanguageModelV4Message): boolean =>
  message.role === "assistant" &&
  message.content.some(({ type }) => type === "tool-call") &&
  !message.content.some((part) => part.type === "tool-call" && isSigned(part))

/** Whether an answer in the prompt has only calls that the model did not sign. */
export const hasUnsignedCalls = (prompt: LanguageModelV4Prompt): boolean => prompt.some(isUnsignedAnswer)

/** The prompt with signed calls: of parallel calls a model signs only the first, which is enough. */
export const withSignedCalls = (prompt: LanguageModelV4Prompt): LanguageModelV4Prompt =>
  prompt.map((message) =>
    message.role === "assistant" && isUnsignedAnswer(message)
      ? {
          ...message,
          content: message.content.map((part) =>
            part.type === "tool-call"
              ? { ...part, providerOptions: { ...part.providerOptions, ...placeholder } }
              : part
          )
        }
      : message
  )

/** The prompt with its instructions at the beginning of the first user message: some chat templates have no system role (Gemma's). */
export const withInstructionsByUser = (prompt: LanguageModelV4Prompt): LanguageModelV4Prompt => {
  const [first, second, ...rest] = prompt
  if (first?.role !== "system") return prompt
  const instructions: Array<LanguageModelV4TextPart> = [{ type: "text", text: first.content }]
  return second?.role === "user"
    ? [
        {
          ...second,
          content: joinTexts<LanguageModelV4TextPart | LanguageModelV4FilePart>(instructions, second.content)
        },
        ...rest
      ]
    : [{ role: "user", content: instructions }, ...prompt.slice(1)]
}

/** Claude refuses to continue an answer that ends with white space. */
const trimmed = (message: LanguageModelV4Message): LanguageModelV4Message => {
  const last = message.role === "assistant" ? message.content.at(-1) : undefined
  return message.role === "assistant" && last?.type === "text"
    ? { ...message, content: [...message.content.slice(0, -1), { ...last, text: last.text.trimEnd() }] }
    : message
}

/** An incremental mapping of a prompt. */
interface Translation {
  /** The replacements of call ids of other models, by the id in the log. */
  readonly foreignIds: Map<string, string>
  /** The system messages before all others. */
  readonly opening: Array<string>
  readonly messages: Array<LanguageModelV4Message>
  /** The last messages, if they show pictures of the results before them. */
  shown?: ReadonlyArray<LanguageModelV4Message> | undefined
}

const makeTranslated = (asked: Asked) => {
  const { lateSystemMessages, name, pictures } = asked
  const said = lateSystemMessages ? (text: string) => text : withoutTags
  return foldGrown<Prompt.Message, Translation>(
    () => ({ foreignIds: new Map(), opening: [], messages: [] }),
    (translation, message) => {
      const { foreignIds, messages, opening } = translation
      if (message.role === "system" && messages.length === 0) opening.push(message.content)
      else
        for (const each of message.role === "system"
          ? [toNotice(message.content, lateSystemMessages)]
          : toMessages(message, { foreignIds, name, said, pictures, callIds: asked.callIds }))
          join(messages, each, asked, translation)
      if (pictures === "user" && message.role === "tool")
        showPictures(translation, message, asked.answersTools)
      return translation
    }
  )
}

/** A system message in the middle of a conversation. */
const toNotice = (content: string, lateSystemMessages: boolean): LanguageModelV4Message =>
  lateSystemMessages
    ? { role: "system", content }
    : { role: "user", content: [{ type: "text", text: `<system>\n${withoutTags(content)}\n</system>` }] }

/** Cached per target model, so that a prompt that grew is mapped from there on; agents use few models. */
const translators = new Map<string, ReturnType<typeof makeTranslated>>()
const translatorsMax = 256

const translatorOf = (asked: Asked) => {
  const key = `${asked.lateSystemMessages} ${asked.joinsNeighbours} ${asked.answersTools} ${asked.pictures} ${asked.name}`
  const known = translators.get(key) ?? makeTranslated(asked)
  if (translators.size >= translatorsMax) translators.clear()
  translators.set(key, known)
  return known
}

/** Replaces the opening bracket of anything that a model may read as the notice tag by a look-alike, so no text is lost. */
const withoutTags = (text: string): string => text.replaceAll(/<(?=[\s/]*system\b)/gi, "‹")

/** Results of parallel calls go into one message: Gemini refuses a turn with fewer results than calls. */
const join = (
  messages: Array<LanguageModelV4Message>,
  next: LanguageModelV4Message,
  { answersTools, joinsNeighbours }: Asked,
  translation: Translation
): void => {
  const { shown } = translation
  // A message that follows the results comes after all of them.
  if (shown !== undefined && next.role === "tool") messages.splice(-shown.length)
  const last = messages.at(-1)
  if (answersTools && last?.role === "tool" && next.role === "user") messages.push(nod)
  if (last?.role === "tool" && next.role === "tool")
    messages[messages.length - 1] = { ...last, content: [...last.content, ...next.content] }
  else if (joinsNeighbours && last?.role === "user" && next.role === "user")
    messages[messages.length - 1] = { ...last, content: joinTexts(last.content, next.content) }
  else if (joinsNeighbours && last?.role === "assistant" && next.role === "assistant")
    messages[messages.length - 1] = { ...last, content: joinTexts(last.content, next.content) }
  else messages.push(next)
  if (shown !== undefined && next.role === "tool") messages.push(...shown)
  else translation.shown = undefined
}

/** A filler where an assistant message is required. */
const nod: LanguageModelV4Message = { role: "assistant", content: [{ type: "text", text: "OK." }] }

/** Shows pictures in a user message where a result accepts none. */
const showPictures = (translation: Translation, message: Prompt.ToolMessage, answersTools: boolean): void => {
  const { messages, shown } = translation
  const content = message.content.flatMap((part) => {
    if (part.type !== "tool-result") return []
    const pictures = picturesOf(part)
    return pictures.length === 0
      ? []
      : [{ type: "text" as const, text: `[Pictures that ${part.name} answered:]` }, ...pictures.map(toFile)]
  })
  if (content.length === 0) return
  if (shown !== undefined) messages.splice(-shown.length)
  const before = (shown ?? []).flatMap((each) => (each.role === "user" ? each.content : []))
  translation.shown = [...(answersTools ? [nod] : []), { role: "user", content: [...before, ...content] }]
  messages.push(...translation.shown)
}

const Pictured = Schema.Struct({
  pictures: Schema.Array(Schema.Struct({ mediaType: Schema.String, data: Schema.String }))
})
const decodePictured = Schema.decodeUnknownOption(Pictured)

/** The pictures of a result with their bytes. */
const picturesOf = ({ options }: Prompt.ToolResultPart): ReadonlyArray<PictureOf> =>
  Option.match(decodePictured(options["tropism"]), { onNone: () => [], onSome: ({ pictures }) => pictures })

type PictureOf = (typeof Pictured.Type)["pictures"][number]

/** Joins adjacent texts, so that a text-only message stays a string on the wire. */
const joinTexts = <Part extends { readonly type: string }>(
  before: ReadonlyArray<Part>,
  after: ReadonlyArray<Part>
): Array<Part> => {
  const [last, first] = [before.at(-1), after[0]]
  return isPlainText(last) && isPlainText(first)
    ? [...before.slice(0, -1), { ...last, text: `${last.text}\n\n${first.text}` }, ...after.slice(1)]
    : [...before, ...after]
}

const isPlainText = <Part extends { readonly type: string }>(
  part: Part | undefined
): part is Part & { readonly type: "text"; readonly text: string } =>
  part?.type === "text" && !("providerOptions" in part && part.providerOptions !== undefined)

const toMessages = (
  message: Exclude<Prompt.Message, Prompt.SystemMessage>,
  {
    callIds,
    foreignIds,
    name,
    pictures,
    said
  }: Pick<Translation, "foreignIds"> &
    Pick<Asked, "callIds" | "name" | "pictures"> & { readonly said: (text: string) => string }
): ReadonlyArray<LanguageModelV4Message> => {
  switch (message.role) {
    case "user": {
      const content = message.content.flatMap((part) => toUserPart(part, said))
      return content.length === 0 ? [] : [{ role: "user", content }]
    }
    case "assistant": {
      const content = answeredBy(message, name) ?? message.content.flatMap(toAssistantPart)
      renameCalls(content, foreignIds, (id) => isAnswerOf(message, name) && (callIds?.test(id) ?? true))
      return content.length === 0 ? [] : [{ role: "assistant", content }]
    }
    case "tool": {
      const content = message.content.flatMap((part) =>
        part.type === "tool-result" ? [toToolResult(part, foreignIds, pictures)] : []
      )
      return content.length === 0 ? [] : [{ role: "tool", content }]
    }
  }
}

const toUserPart = (
  part: Prompt.UserMessagePart,
  said: (text: string) => string
): ReadonlyArray<LanguageModelV4TextPart | LanguageModelV4FilePart> =>
  part.type === "text" ? toText(said(part.text)) : [toFile(part)]

/** Drops blank texts: Anthropic refuses them and no provider needs them. */
const toText = (text: string): ReadonlyArray<LanguageModelV4TextPart> =>
  text.trim() === "" ? [] : [{ type: "text", text }]

const toFile = (
  part: Pick<Prompt.FilePart, "mediaType" | "data"> & { readonly fileName?: string | undefined }
): LanguageModelV4FilePart => ({
  type: "file",
  mediaType: part.mediaType,
  ...(part.fileName === undefined ? {} : { filename: part.fileName }),
  data: part.data instanceof URL ? { type: "url", url: part.data } : { type: "data", data: part.data }
})

const toAssistantPart = (part: Prompt.AssistantMessagePart): ReadonlyArray<AssistantPart> => {
  switch (part.type) {
    case "text":
      return toText(part.text)
    case "reasoning":
      return part.text === "" ? [] : [{ type: "reasoning", text: part.text }]
    case "file":
      return [toFile(part)]
    case "tool-call":
      return [
        { type: "tool-call", toolCallId: part.id, toolName: part.name, input: toArguments(part.params) }
      ]
    default:
      return []
  }
}

const Answered = Schema.Struct({
  model: Schema.String,
  parts: Schema.optionalKey(Schema.Array(AnswerPart))
})
const decodeAnswered = Schema.decodeUnknownOption(Answered)

/** Whether the target model produced this answer; an answer without a model counts as its own. */
const isAnswerOf = ({ options }: Prompt.AssistantMessage, name: string): boolean =>
  Option.match(decodeAnswered(options["tropism"]), {
    onNone: () => true,
    onSome: ({ model }) => model === name
  })

/** Replaces call ids of other models and those that this one would refuse: Mistral takes only nine letters and digits. */
const renameCalls = (
  content: Array<AssistantPart>,
  foreignIds: Translation["foreignIds"],
  isTaken: (id: string) => boolean
): void =>
  content.forEach((part, index) => {
    if (part.type !== "tool-call" || isTaken(part.toolCallId)) return
    const id = safeCallId(part.toolCallId)
    foreignIds.set(part.toolCallId, id)
    content[index] = { ...part, toolCallId: id }
  })

/** An answer in its original form: reasoning, text and calls in order, with the provider's metadata. */
const answeredBy = (
  { content, options }: Prompt.AssistantMessage,
  name: string
): Array<AssistantPart> | undefined => {
  const answered = Option.getOrUndefined(decodeAnswered(options["tropism"]))
  if (answered?.parts === undefined || answered.model !== name) return undefined
  const text = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("")
  const calls = new Map(
    content.flatMap((part) => (part.type === "tool-call" ? [[part.id, part] as const] : []))
  )
  let from = 0
  const parts = answered.parts.flatMap((part): ReadonlyArray<AssistantPart> => {
    const attached = part.metadata === undefined ? {} : { providerOptions: part.metadata }
    if (part.type === "reasoning") return [{ type: "reasoning", text: part.text, ...attached }]
    if (part.type === "text") {
      const piece = text.slice(from, from + part.chars)
      from += part.chars
      // A blank text may carry a signature.
      if (part.metadata !== undefined && piece !== "") return [{ type: "text", text: piece, ...attached }]
      return toText(piece)
    }
    const call = calls.get(part.id)
    return call === undefined ? [] : toAssistantPart(call).map((each) => ({ ...each, ...attached }))
  })
  const isWhole =
    from === text.length && parts.filter(({ type }) => type === "tool-call").length === calls.size
  return isWhole ? parts : undefined
}

/** Arguments that were not a JSON object are wrapped in one: every provider requires an object here. */
const toArguments = (params: unknown): unknown =>
  typeof params === "object" && params !== null && !Array.isArray(params)
    ? params
    : { invalidArguments: params ?? null }

const toToolResult = (
  part: Prompt.ToolResultPart,
  foreignIds: Translation["foreignIds"],
  place: PicturePlace
): LanguageModelV4ToolResultPart => {
  const pictures = picturesOf(part)
  return {
    type: "tool-result",
    toolCallId: foreignIds.get(part.id) ?? part.id,
    toolName: part.name,
    output:
      pictures.length === 0 || place === "user"
        ? toOutput(part.result, part.isFailure)
        : withPictures(part.result, pictures, place)
  }
}

const withPictures = (
  result: unknown,
  pictures: ReadonlyArray<PictureOf>,
  place: "result" | "none"
): LanguageModelV4ToolResultOutput => {
  const text = typeof result === "string" ? result : JSON.stringify(result)
  return place === "none"
    ? { type: "text", value: `${text}\n[You are not shown the pictures.]` }
    : { type: "content", value: [{ type: "text", text }, ...pictures.map(toFile)] }
}

const toOutput = (result: unknown, isFailure: boolean): LanguageModelV4ToolResultOutput => {
  if (typeof result === "string") return { type: isFailure ? "error-text" : "text", value: result }
  // A result comes from the log, where everything is JSON.
  return { type: isFailure ? "error-json" : "json", value: (result ?? null) as JSONValue }
}
