/**
 * What was said elsewhere before a context began, as whoever begins it tells it.
 *
 * A client that keeps its conversations by itself brings all of one with each
 * request. It is one event: nothing of it was asked of a model here, so it has no
 * run and no cost, and it triggers nothing. All of it counts as said by whoever brought it.
 */
import { Option, Schema } from "effect"
import { Digest, filePartOf, MimeType } from "./attachment.ts"
import { base } from "./event-base.ts"
import { type Message, quoted, type UserPart } from "./message.ts"

/** A file of a message; its bytes lie under their digest. */
export const GivenFile = Schema.Struct({
  digest: Digest,
  mimeType: MimeType,
  fileName: Schema.NullOr(Schema.String),
  /** Nobody vouches for what it says; absent is false. */
  untrusted: Schema.optionalKey(Schema.Boolean)
})
export type GivenFile = typeof GivenFile.Type

export const GivenMessage = Schema.Union([
  Schema.Struct({
    role: Schema.Literal("user"),
    content: Schema.String,
    /** Shown before the words. */
    files: Schema.optionalKey(Schema.Array(GivenFile))
  }),
  Schema.Struct({ role: Schema.Literals(["assistant", "system"]), content: Schema.String })
])
export type GivenMessage = typeof GivenMessage.Type

/** A conversation that was begun elsewhere goes on here. */
export class HistoryGivenEvent extends Schema.Class<HistoryGivenEvent>("HistoryGivenEvent")({
  type: Schema.tag("HistoryGivenEvent"),
  ...base,
  /** What the agent is told to be, behind its own system prompt. */
  instructions: Schema.NullOr(Schema.String),
  /** Earlier instructions at the end of the prompt, which these ones replace; absent where they come after them. */
  replaces: Schema.optionalKey(Schema.String),
  messages: Schema.Array(GivenMessage)
}) {}

/** A prompt, if there is one, with what a client says behind it. */
export const withInstructions = (
  prompt: Option.Option<string>,
  { instructions, replaces }: Pick<HistoryGivenEvent, "instructions" | "replaces">
): Option.Option<string> => {
  const own = replaces === undefined ? prompt : Option.flatMap(prompt, (text) => withoutEnd(text, replaces))
  return instructions === null
    ? own
    : Option.some(
        Option.match(own, { onNone: () => instructions, onSome: (text) => `${text}\n\n${instructions}` })
      )
}

/** A prompt without the instructions at its end; one that was replaced since has none of them. */
const withoutEnd = (prompt: string, end: string): Option.Option<string> => {
  if (prompt === end) return Option.none()
  return Option.some(prompt.endsWith(`\n\n${end}`) ? prompt.slice(0, -end.length - 2) : prompt)
}

/** The messages as a model is shown them; who says nothing in one is not shown. */
export const messagesGiven = ({ messages }: Pick<HistoryGivenEvent, "messages">): ReadonlyArray<Message> =>
  messages.flatMap(shown)

const shown = (given: GivenMessage): ReadonlyArray<Message> => {
  const { content, role } = given
  if (role === "user" && given.files !== undefined && given.files.length > 0)
    return [{ role, content: [...given.files.map(filePartOf), ...textOf(content)] }]
  if (content === "") return []
  return [role === "assistant" ? { role, content: textOf(content), options: quoted } : { role, content }]
}

const textOf = (text: string): ReadonlyArray<Extract<UserPart, { readonly type: "text" }>> =>
  text === "" ? [] : [{ type: "text", text }]
