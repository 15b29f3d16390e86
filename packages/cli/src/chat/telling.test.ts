/**
 * What a person reads of an answer while it is made.
 */
import { describe, expect, it } from "@effect/vitest"
import { ContextFeedEvent } from "@tropism/client/feed"
import { Effect, Schema } from "effect"
import { Screen } from "../terminal/screen.ts"
import { plain } from "../terminal/paint.ts"
import { tellLive } from "./telling.ts"

const decode = Schema.decodeUnknownSync(ContextFeedEvent)

const eventOf = (id: string, rest: Record<string, unknown>) =>
  decode({
    id: `talk:${id}`,
    timestamp: "2026-01-01T00:00:00.000Z",
    agentName: "talk",
    parentEventId: null,
    triggersAgentTurn: false,
    ...rest
  })

const piece = (id: string, delta: string) => eventOf(id, { type: "TextDeltaEvent", delta })

const answer = (content: string) =>
  eventOf("4", {
    type: "AssistantMessageEvent",
    content,
    toolCalls: [],
    runId: "0193a000-0000-7000-8000-000000000001",
    model: "scripted:story",
    usage: { inputTokens: 1, outputTokens: 1 }
  })

/** Everything that was written on the screen. */
const seen = (...events: ReadonlyArray<ContextFeedEvent>) =>
  Effect.gen(function* () {
    const written: Array<string> = []
    const tell = tellLive(
      Screen.of({
        paint: plain,
        isLive: false,
        width: Effect.succeed(80),
        print: (...lines) => Effect.sync(() => void written.push(...lines.map((line) => `${line}\n`))),
        write: (text) => Effect.sync(() => void written.push(text)),
        redraw: () => Effect.void
      })
    )
    for (const event of events) yield* tell({ number: undefined, json: null, event })
    return written.join("")
  })

describe("An answer on the screen of whoever talks", () => {
  it.effect.each([
    [
      "word by word, and then what is left",
      [piece("3.d1", "One "), piece("3.d2", "two"), answer("One two three")],
      "One two three\n"
    ],
    [
      "with dots for what was not heard, and whole when it is kept",
      [piece("3.d1", "One "), piece("3.d3", "three"), answer("One two three")],
      "One … three\nOne two three\n"
    ],
    [
      "with dots where its beginning was not heard",
      [piece("3.d2", "two"), answer("One two")],
      "… two\nOne two\n"
    ],
    [
      "on a line of its own where it is begun anew",
      [piece("3.d1", "Hel"), piece("3.d1", "Hi"), answer("Hi")],
      "Hel\nHi\n"
    ]
  ] as ReadonlyArray<readonly [string, ReadonlyArray<ContextFeedEvent>, string]>)(
    "is told %s",
    ([, events, text]) => Effect.map(seen(...events), (written) => expect(written).toBe(text))
  )
})
