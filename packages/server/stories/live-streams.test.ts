/**
 * Live streams of a log: whoever comes back, wherever it was cut off, hears everything once.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect, Random } from "effect"
import { TestClock } from "effect/testing"
import { streamLimits } from "../src/http/limits.ts"
import {
  contentsOf,
  countOf,
  isQuiet,
  keptOf,
  logOf,
  newContext,
  passingOf,
  say
} from "../testing/context-words.ts"
import { type Heard, openStream } from "../testing/event-stream.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, scripted, type Story } from "../testing/platform.ts"
import { rawSubscriber } from "../testing/raw-subscriber.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { asUser } from "../testing/token-words.ts"

const pathOf = (story: Story, name = "talk"): string =>
  `/api/projects/${story.projectId}/contexts/${name}/events?after=start`

const upTo = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, index) => index + 1)

/** Adds messages that ask for no answer: behind its beginning, the log is nothing but them. */
const fill = (story: Story, count: number, name = "talk") =>
  Effect.forEach(upTo(count), (number) => say(story, name, `Message ${number}`, false), { concurrency: 4 })

const numbersOf = (heard: ReadonlyArray<Heard>): ReadonlyArray<number> =>
  heard.map((event) => Number(event.id))

/** What a client may say that it heard last, and behind which event the log goes on for it. */
const claims = (last: number, end: number): ReadonlyArray<readonly [string, number]> => [
  [String(last), last],
  [`talk:${last}`, last],
  [`talk:${last}.d7`, last],
  ["rubbish", 0],
  ["", 0],
  ["-3", 0],
  ["1e1", 0],
  [`${last}.d2`, 0],
  [`talk:${last}.d`, 0],
  [`other:${last}`, 0],
  [`other:${last}.d1`, 0],
  [String(end + 1_000), 0],
  [`talk:${end + 1_000}`, 0],
  ["99999999999", 0],
  ["9".repeat(30), 0]
]

layer(SharedServer.layer)((it) => {
  describe("Doors: live streams of a context", () => {
    it.effect(
      "300 reconnects with an id heard, garbage, future, foreign or ephemeral: the full sequence exactly once",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* newContext(story, "talk")
          yield* fill(story, 24)
          const log = yield* logOf(story, "talk")
          const path = pathOf(story)
          // Somebody stays, so that they all come to a log that is being read.
          yield* openStream(story, path)
          const connect = Effect.fnUntraced(function* () {
            const forms = claims(yield* Random.nextIntBetween(1, 23), 24)
            const [claim, place] = forms[yield* Random.nextIntBetween(0, forms.length - 1)] ?? ["", 0]
            const wanted = log.slice(place)
            const raw = yield* rawSubscriber(story, path, claim)
            yield* eventually(
              Effect.sync(() => raw.heard().length),
              (count) => count >= wanted.length
            )
            expect({ claim, heard: raw.heard().map(({ json }) => json) }).toEqual({ claim, heard: wanted })
            // It is cut anywhere, in the middle of an event too, and says honestly what it has.
            const before = raw.heard(yield* Random.nextIntBetween(0, raw.bytes()))
            yield* raw.cut
            const rest = wanted.slice(before.length)
            const again = yield* openStream(story, path, before.at(-1)?.id ?? String(place))
            yield* again.until((heard) => heard.length >= rest.length)
            expect([...before, ...again.heard].map(({ json }) => json)).toEqual(wanted)
            yield* again.cut
          }, Effect.scoped)
          yield* Effect.forEach(upTo(150), connect, { concurrency: 4, discard: true }).pipe(
            Random.withSeed("300 reconnects")
          )
        })
    )

    it.effect("a client that is cut off in the middle of events while others write misses nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk")
        const count = 41
        const listening = Effect.gen(function* () {
          const heard: Array<Heard> = []
          while (heard.length < count) {
            const more = yield* Effect.scoped(
              Effect.gen(function* () {
                const raw = yield* rawSubscriber(story, pathOf(story), heard.at(-1)?.id)
                yield* eventually(
                  Effect.sync(() => raw.heard().length),
                  (length) => length >= 1
                )
                return raw.heard(raw.bytes() - (yield* Random.nextIntBetween(0, 300)))
              })
            )
            heard.push(...more)
          }
          return heard
        }).pipe(Random.withSeed("cut in the middle"))
        const [heard] = yield* Effect.all([listening, fill(story, count - 1)], { concurrency: 2 })
        expect(heard.map(({ json }) => json)).toEqual(yield* logOf(story, "talk"))
      })
    )

    it.effect("an event that a fork shares is a place in it by the id that it has", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk")
        yield* fill(story, 4)
        yield* story.post("/contexts/talk/fork", { name: "other", at: 3 })
        yield* fill(story, 2, "other")
        const log = yield* logOf(story, "other")
        const claimed: ReadonlyArray<readonly [string, number]> = [
          ["talk:2", 2],
          ["other:2.d1", 2],
          ["other:4", 4],
          // The origin's fourth event is not part of the fork.
          ["talk:4", 0]
        ]
        for (const [claim, place] of claimed) {
          const live = yield* openStream(story, pathOf(story, "other"), claim)
          yield* live.until((heard) => heard.length >= log.length - place)
          expect({ claim, heard: live.heard.map(({ json }) => json) }).toEqual({
            claim,
            heard: log.slice(place)
          })
        }
      })
    )

    it.effect(
      "a place in the address counts where Last-Event-ID names none, and one beyond every log is quiet",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* newContext(story, "talk")
          yield* fill(story, 3)
          const live = yield* openStream(story, pathOf(story).replace("start", "2"), "other:1")
          yield* live.until((heard) => heard.length >= 2)
          expect(numbersOf(live.heard)).toEqual([3, 4])
          const page = yield* story.get("/contexts/talk/events?after=99999999999")
          expect(page).toEqual({ items: [], nextCursor: null })
          // Who weighs streams with nothing wants none.
          const weighed = { accept: "text/event-stream;q=0, application/json" }
          const plain = yield* story.send(
            "GET",
            pathOf(story).replace("start", "99999999999"),
            undefined,
            weighed
          )
          expect([plain.status, plain.body]).toEqual([200, { items: [], nextCursor: null }])
          const beyond = yield* openStream(story, pathOf(story).replace("start", "99999999999"))
          yield* fill(story, 1)
          yield* live.until((heard) => heard.length >= 3)
          expect([beyond.status, beyond.heard]).toEqual([200, []])
        })
    )

    it.effect(
      "several clients speak in one context: all hear all of it in one order, and the answer as it is written",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* newContext(story, "talk", scripted([{ say: "I have heard you all.", tokensPerSecond: 2 }]))
          const clients = yield* Effect.forEach(upTo(3), () => openStream(story, pathOf(story)))
          yield* Effect.forEach(
            upTo(3),
            (number) => say(story, "talk", `From client ${number}`, number === 3),
            {
              concurrency: 3
            }
          )
          yield* asTimePasses(
            250,
            story.get("/runs?limit=200"),
            (runs) => runs.items.length > 0 && isQuiet(runs)
          )
          const log = yield* logOf(story, "talk")
          expect(countOf(log, "UserMessageEvent")).toBe(3)
          for (const client of clients) {
            yield* client.until(() => keptOf(client).length >= log.length)
            expect(keptOf(client).map(({ json }) => json)).toEqual(log)
            const pieces = passingOf(client).map(({ json }) => json.delta)
            expect(pieces.length).toBeGreaterThan(1)
            expect([pieces.join("")]).toEqual(contentsOf(log, "AssistantMessageEvent"))
            // What passes by comes before what is kept of it.
            const kinds = client.heard.map(({ name }) => name)
            expect(kinds.lastIndexOf("TextDeltaEvent")).toBeLessThan(kinds.indexOf("AssistantMessageEvent"))
          }
        })
    )

    it.effect("S004-R58 200 subscribers hear every event in order beside 10 that never read", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk")
        const still = yield* Effect.forEach(upTo(10), () => rawSubscriber(story, pathOf(story)))
        yield* Effect.forEach(still, (one) => one.sitStill)
        const live = yield* Effect.forEach(upTo(200), () => openStream(story, pathOf(story)), {
          concurrency: 20
        })
        yield* fill(story, 40)
        for (const subscriber of live) {
          yield* subscriber.until((heard) => heard.length >= 41)
          expect(numbersOf(subscriber.heard)).toEqual(upTo(41))
        }
        expect(live[0]?.heard.map(({ json }) => json)).toEqual(yield* logOf(story, "talk"))
      })
    )

    it.effect("one that takes nothing is cut off, comes back and has it all; the others notice nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk")
        const still = yield* rawSubscriber(story, pathOf(story))
        yield* still.sitStill
        const live = yield* openStream(story, pathOf(story))
        // More than the network's buffers hold: nine megabytes.
        const count = 31
        const large = "漢".repeat(100_000)
        for (const _ of upTo(count - 1)) yield* say(story, "talk", large, false)
        yield* live.until((heard) => heard.length >= count)
        for (let waited = 0; waited <= streamLimits.stallMs * 1.5; waited += 1_000) {
          yield* TestClock.adjust("1 second")
          yield* story.get("/contexts/talk")
        }
        yield* still.goOn
        yield* still.closed
        const before = still.heard()
        expect(before.length).toBeLessThan(count)
        const again = yield* openStream(story, pathOf(story), before.at(-1)?.id)
        yield* again.until((heard) => before.length + heard.length >= count)
        expect(numbersOf([...before, ...again.heard])).toEqual(upTo(count))
        // Whoever reads stays connected.
        yield* say(story, "talk", "Still there?", false)
        yield* live.until((heard) => heard.length === count + 1)
        expect(numbersOf(keptOf(live))).toEqual(upTo(count + 1))
      })
    )

    it.effect("a stream is for those who may read the context, and no longer than they may", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const other = yield* newStoryHere
        yield* newContext(story, "talk")
        const viewer = yield* asUser(story, "viewer", [story.projectId])
        const stranger = yield* asUser(other, "admin", [other.projectId])
        const revoked = yield* rawSubscriber(viewer, pathOf(story))
        const live = yield* openStream(story, pathOf(story))
        const statusOf = (doors: Story, path: string) =>
          Effect.map(openStream(doors, path), ({ status }) => status)
        expect(yield* statusOf(viewer, pathOf(story))).toBe(200)
        expect(yield* statusOf(stranger, pathOf(story))).toBe(404)
        expect(yield* statusOf(other, pathOf(other))).toBe(404)
        yield* say(story, "talk", "For both", false)
        yield* eventually(
          Effect.sync(() => revoked.heard().length),
          (count) => count === 2
        )
        yield* ask(
          story.access,
          "update kb.api_tokens set revoked_at = now() where hash = encode(sha256($1::bytea), 'hex')",
          [viewer.token]
        )
        expect(yield* statusOf(viewer, pathOf(story))).toBe(401)
        yield* TestClock.adjust(streamLimits.permitIntervalMs)
        yield* revoked.closed
        yield* say(story, "talk", "For one", false)
        yield* live.until((heard) => heard.length === 3)
        expect(revoked.heard()).toHaveLength(2)
      })
    )
  })
})
