/**
 * An answer as it is made, across cut connections: the message is said once, whatever happens to them.
 *
 * A chat's stream has no places to go on from. Behind a cut the same message is
 * sent again under the same key and its answer told from the beginning; what was
 * told before is left out here. A server that stops says so in an event of its own,
 * and what comes behind that is what comes behind a cut.
 */
import { Effect, Stream } from "effect"
import type { FeedText } from "../feed-reading.ts"
import { newKey } from "../retrying.ts"
import type { Asked, Line } from "./asking.ts"
import type { CallOptions } from "./call-shapes.ts"
import { textsOf } from "./live.ts"
import type { ChatAnswer } from "./contract.gen.ts"
import type { ChatEvent } from "./plain-client.ts"
import { iterated } from "./running.ts"
import { TropismUnreachable } from "./problem.ts"

/** The answer to a message, piece by piece, `done` with the whole of it last. */
export const chatEventsOf = (
  line: Line,
  asked: Effect.Effect<Asked, Error>,
  options: CallOptions
): AsyncIterable<ChatEvent> => {
  const key = newKey()
  const keyed = (call: Asked): Asked => ({ ...call, headers: { "idempotency-key": key, ...call.headers } })
  const events = Stream.suspend(() => {
    const tell = makeTeller()
    return textsOf(line, Effect.map(asked, keyed)).pipe(
      Stream.filter((event) => !isLeaving(event)),
      Stream.takeUntil(({ name }) => name === "done" || name === "error"),
      Stream.mapEffect(({ name, text }) =>
        name === "error"
          ? Effect.fail<Error>(new TropismUnreachable(JSON.parse(text).detail))
          : Effect.succeed(tell(name, JSON.parse(text)))
      ),
      Stream.flattenIterable
    )
  })
  return iterated(events, options.signal)
}

/** Whether a server says that it stops, and that the answer goes on elsewhere. */
const isLeaving = ({ name, text }: FeedText): boolean =>
  name === "error" && JSON.parse(text).type === "/problems/unavailable"

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
