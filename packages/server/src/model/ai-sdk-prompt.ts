/**
 * Turns a prompt and its tools into what the AI SDK's provider packages take.
 *
 * Messages keep their order and nothing is cut. Three habits of providers are
 * met here so that no caller needs to know them: only OpenAI takes a system
 * message in the middle of a conversation (others refuse the request, as do
 * several local chat templates), Anthropic refuses empty texts, and Gemini wants
 * the results of one answer's calls together. Where the user speaks for the system,
 * in a tag, nobody else's words have that tag. A prompt that grew from that of an
 * earlier request is translated from there on; what a provider package makes of
 * it, it makes of the whole.
 */
import type {
  JSONValue,
  LanguageModelV4FilePart,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ReasoningPart,
  LanguageModelV4TextPart,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart
} from "@ai-sdk/provider"
import { foldGrown } from "@tropism/domain/grown"
import { type Prompt, Tool } from "effect/ai"

type AssistantPart =
  | LanguageModelV4TextPart
  | LanguageModelV4FilePart
  | LanguageModelV4ReasoningPart
  | LanguageModelV4ToolCallPart

/** Translates a prompt; without `lateSystemMessages`, a system message in the middle is spoken by the user. */
export const toAiSdkPrompt = (
  prompt: Prompt.Prompt,
  options: { readonly lateSystemMessages: boolean }
): LanguageModelV4Prompt => {
  const { messages, opening } = (options.lateSystemMessages ? translated : translatedForMost)(prompt.content)
  // Some chat templates take one system message only, so the opening ones are joined.
  return opening.length === 0
    ? messages.slice()
    : [{ role: "system", content: opening.join("\n\n") }, ...messages]
}

/** A prompt as far as it is translated. */
interface Translation {
  /** What the system says before anybody else. */
  readonly opening: Array<string>
  readonly messages: Array<LanguageModelV4Message>
}

const makeTranslated = (
  lateSystem: (content: string) => LanguageModelV4Message,
  said: (text: string) => string = (text) => text
) =>
  foldGrown<Prompt.Message, Translation>(
    () => ({ opening: [], messages: [] }),
    (translation, message) => {
      const { messages, opening } = translation
      if (message.role !== "system") for (const each of toMessages(message, said)) join(messages, each)
      else if (messages.length === 0) opening.push(message.content)
      else messages.push(lateSystem(message.content))
      return translation
    }
  )

const translated = makeTranslated((content) => ({ role: "system", content }))

/** The opening bracket of whatever a model may read as the tag of a notice looks the same and is another: nothing is lost. */
const withoutTags = (text: string): string => text.replaceAll(/<(?=[\s/]*system\b)/gi, "‹")

const translatedForMost = makeTranslated(
  (content) => ({
    role: "user",
    content: [{ type: "text", text: `<system>\n${withoutTags(content)}\n</system>` }]
  }),
  withoutTags
)

/** Results of calls that were made side by side go in one message: Gemini refuses fewer in a turn than there were calls. */
const join = (messages: Array<LanguageModelV4Message>, next: LanguageModelV4Message): void => {
  const last = messages.at(-1)
  if (last?.role === "tool" && next.role === "tool")
    messages[messages.length - 1] = { ...last, content: [...last.content, ...next.content] }
  else messages.push(next)
}

const toMessages = (
  message: Exclude<Prompt.Message, Prompt.SystemMessage>,
  said: (text: string) => string
): ReadonlyArray<LanguageModelV4Message> => {
  switch (message.role) {
    case "user": {
      const content = message.content.flatMap((part) => toUserPart(part, said))
      return content.length === 0 ? [] : [{ role: "user", content }]
    }
    case "assistant": {
      const content = message.content.flatMap(toAssistantPart)
      return content.length === 0 ? [] : [{ role: "assistant", content }]
    }
    case "tool": {
      const content = message.content.flatMap((part) =>
        part.type === "tool-result" ? [toToolResult(part)] : []
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

const toText = (text: string): ReadonlyArray<LanguageModelV4TextPart> =>
  text === "" ? [] : [{ type: "text", text }]

const toFile = (part: Prompt.FilePart): LanguageModelV4FilePart => ({
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

/** Arguments that were no JSON object are shown back inside one: every provider demands an object here. */
const toArguments = (params: unknown): unknown =>
  typeof params === "object" && params !== null && !Array.isArray(params)
    ? params
    : { invalidArguments: params ?? null }

const toToolResult = (part: Prompt.ToolResultPart): LanguageModelV4ToolResultPart => ({
  type: "tool-result",
  toolCallId: part.id,
  toolName: part.name,
  output: toOutput(part.result, part.isFailure)
})

const toOutput = (result: unknown, isFailure: boolean): LanguageModelV4ToolResultOutput => {
  if (typeof result === "string") return { type: isFailure ? "error-text" : "text", value: result }
  // A result comes from the log, where everything is JSON.
  return { type: isFailure ? "error-json" : "json", value: (result ?? null) as JSONValue }
}

/** Translates the tools a request offers. */
export const toAiSdkTools = (tools: ReadonlyArray<Tool.Any>): Array<LanguageModelV4FunctionTool> =>
  tools.map((tool) => {
    const description = Tool.getDescription(tool)
    return {
      type: "function",
      name: tool.name,
      ...(description === undefined ? {} : { description }),
      inputSchema: Tool.getJsonSchema(tool)
    }
  })
