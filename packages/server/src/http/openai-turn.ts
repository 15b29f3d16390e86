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
  /** A chat client asks for itself, beside the conversation. */
  readonly isHelper: boolean
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

/** The conversation of a user, and neither an object of that name nor one with somebody else. */
const conversation =
  String.raw`(?:\b(?:first|user's(?: first)?) message\b|` +
  String.raw`\b(?:the|this|our|your|given|user's) (?:following |given |short |user's |above ){0,2}` +
  String.raw`(?:conversation|chat history|chat|dialogue|discussion|session)\b` +
  String.raw`(?! (?:objects?|records?|types?|paper|pages?|rooms?|groups?|channels?|software|with|about|on)\b))`

/** A name for something, unless it is said to be that of something else. */
const label = String.raw`\b(?:title|name|tags?|follow-?up questions?|emoji)\b(?! (?:for|of|to|on) (?!within\b|\d|${conversation}))`

/** How an instruction begins, whoever the model is told to be before it. */
const beginning = String.raw`^[\s#*-]*(?:you are [^.!?]{0,120}?[.!?,]\s*)?(?:(?:task|goal):\s*)?(?:based on [^,.]{0,60},\s*)?(?:you (?:will|must|should|need to) |your task is to |please )*`

/** The rest of a clause, without what is quoted in it and without anything of the graph. */
const within = String.raw`(?:(?!\b(?:objects?|graph)\b)[^.!?"“„«]){0,80}`

const matches = (...parts: ReadonlyArray<string>): RegExp => new RegExp(parts.join(""), "i")

const labelling = String.raw`(?:generate|give|provide|write|create|suggest|summari[sz]e|analy[sz]e|name|come up with|return|produce|make)\b`

/** Instructions to name a conversation, in either order of the two. */
const namings: ReadonlyArray<RegExp> = [
  matches(beginning, labelling, within, label, within, conversation),
  matches(beginning, labelling, " ", conversation, within, label)
]

/** That a program reads the answer: nobody asks a person so for a name alone. */
const formBound =
  /\b(?:(?:only|just) (?:return|output|give|provide|respond|reply|answer)|(?:return|output|provide|give|respond|reply|answer)(?: with)? only|nothing else|(?:no|without|not using|omitting) (?:any |quotes|quotation|punctuation)|(?:do not|don't) (?:use|add|include|wrap)|json)\b/i

/** Instructions that no person gives, whatever the form of their answer. */
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
  /^\s*you (?:have been|are) (?:given|provided with) (?:a set of )?responses from (?:various|multiple|several|different) models\b/i
]

/** Open WebUI's tasks quote the conversation, wherever in the text. */
const openWebUiTask = /^\s*###\s*Task:[^]*<chat_history>/i

/** An instruction says what it wants in its first words; behind them comes the conversation. */
const instructionChars = 600

/** Whether these words instruct a model to title, name, tag, sum up or illustrate the conversation of somebody else. */
const isHelperInstruction = (content: string): boolean => {
  const first = content
    .trimStart()
    .slice(0, instructionChars)
    .replace(/\s+/g, " ")
    .replace(/ \d+\. /g, " ")
  return (
    openWebUiTask.test(content) ||
    machineMade.some((pattern) => pattern.test(first)) ||
    (formBound.test(first) && namings.some((pattern) => pattern.test(first)))
  )
}

/** Whether a chat client asks for itself and not its user: in the message, or in the instructions before the only one. */
export const isHelperRequest = ({
  history,
  instructions,
  said
}: Pick<WantedTurn, "history" | "instructions" | "said">): boolean =>
  isHelperInstruction(said.content) ||
  (instructions !== null && history.length === 0 && isHelperInstruction(instructions))

/** The user's message where a client ends with the assistant's, as "continue" buttons do. */
const continuation = {
  role: "user",
  content: "Continue your last message from where it ends.",
  files: []
} as const

/** A client's own request may end the conversation as a system message: it is what is said. */
const withSaidHelper = (given: ReadonlyArray<PlacedMessage>): ReadonlyArray<PlacedMessage> => {
  const last = given.at(-1)
  return last?.message.role === "system" && given.length > 1 && isHelperInstruction(last.message.content)
    ? [...given.slice(0, -1), { ...last, message: { ...last.message, role: "user", files: [] } }]
    : given
}

/** Words that are the whole field have no content of their own. */
const contentParam = (param: string, field: string): string => (param === field ? field : `${param}.content`)

/** Splits the messages into the agent's instructions, the history and the message to answer. */
export const partsOf = (
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
    // A reminder behind the question stands before it: the question is said last.
    history: [...messages.slice(first, last), ...messages.slice(last + 1)],
    said
  })
}
