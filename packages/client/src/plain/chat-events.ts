/**
 * An answer as it is made, across cut connections: the message is said once, whatever happens to them.
 *
 * A chat's stream has no places to go on from. Behind a cut the same message is
 * sent again under the same key and its answer told from the beginning; what was
 * told before is left out here. A server that stops, or fails, says so in an event of
 * its own, and what comes behind that is what comes behind a cut, as often as a feed
 * is taken up again; then the event is the problem that the caller is told.
 */
import { Effect, Stream } from "effect"
import type { FeedText } from "../feed-reading.ts"
import { newKey } from "../retrying.ts"
import { type Asked, type Line, problemOf } from "./asking.ts"
import type { CallOptions } from "./call-shapes.ts"
import { textsOf } from "./live.ts"
import type { ChatAnswer } from "./contract.gen.ts"
import type { ChatEvent } from "./plain-client.ts"
import { iterated } from "./running.ts"

/** The answer to a message, piece by piece, `done` with the whole of it last; whoever reads it again says nothing twice. */
export const chatEventsOf = (
  line: Line,
  asked: Effect.Effect<Asked, Error>,
  options: CallOptions
): AsyncIterable<ChatEvent> => {
  const key = newKey()
  const keyed = (call: Asked): Asked => ({ ...call, headers: { "idempotency-key": key, ...call.headers } })
  const events = Stream.suspend(() => {
    const tell = makeTeller()
    return textsOf(line, Effect.map(asked, keyed), { breaksOff }).pipe(
      Stream.takeUntil(({ name }) => name === "done" || name === "error"),
      Stream.mapEffect(({ name, response, text }) =>
        name === "error"
          ? Effect.fail<Error>(problemOf(response, text))
          : Effect.succeed(tell(name, JSON.parse(text)))
      ),
      Stream.flattenIterable
    )
  })
  return iterated(events, options.signal)
}

/** Whether a server says that it stops, or cannot go on: the answer does, at another one or a moment later. */
const breaksOff = ({ name, text }: FeedText): boolean => name === "error" && JSON.parse(text).status >= 500

/** Leaves out what was told of the answer on an earlier connection. */
export const makeTeller = () => {
  let told = ""
  let again: string | undefined
  let begun: ChatEvent | undefined
  const calls = new Set<string>()

  const words = (text: string): ReadonlyArray<ChatEvent> => {
    if (again === undefined) {
      told += text
      return [{ type: "words", text }]
    }
    again += text
    if (told.startsWith(again)) return []
    const isMore = again.startsWith(told)
    const rest = isMore ? again.slice(told.length) : again
    told = again
    again = undefined
    return [...(isMore || !begun ? [] : [begun]), { type: "words", text: rest }]
  }

  return (name: string, json: Readonly<Record<string, unknown>>): ReadonlyArray<ChatEvent> => {
    if (name === "begun") {
      if (begun) {
        again = ""
        return []
      }
      begun = { type: "begun", conversationId: String(json["conversationId"]) }
      return [begun]
    }
    if (name === "words") return words(String(json["text"]))
    if (name === "toolCall") {
      const call = `${String(json["callId"])} ${String(json["status"])}`
      if (calls.has(call)) return []
      calls.add(call)
      return [{ type: "toolCall", callId: "", status: "", ...json }]
    }
    return name === "done" ? [{ type: "done", answer: json as typeof json & ChatAnswer }] : []
  }
}
