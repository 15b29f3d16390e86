/**
 * Two servers on one database: what one of them does is heard at the other, with no sweep in between.
 *
 * The clock stands still unless a story moves it, so no loop looks by itself:
 * whatever arrives at the other server was told to it.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { outboxLimits } from "../src/limits.ts"
import { countOf, logOf, newContext, say, slowEcho } from "../testing/context-words.ts"
import { openStream } from "../testing/event-stream.ts"
import { eventually, type Story } from "../testing/platform.ts"
import { askAsServer, couriers, isCourier } from "../testing/server-connections.ts"
import { asTimePasses } from "../testing/shared-server.ts"
import { feedOf, make, watcher } from "../testing/story-words.ts"
import { bothDoors, TwoServers } from "../testing/two-servers.ts"

const feedPath = ({ projectId }: Story): string => `/api/projects/${projectId}/events`

layer(TwoServers.layer)((it) => {
  describe("Two servers on one database", () => {
    it.effect("a stream at one server brings what was committed at the other", () =>
      Effect.gen(function* () {
        const { other, story } = yield* bothDoors
        const live = yield* openStream(other, feedPath(story))
        yield* make(story, "Thing", { number: 1 })
        const heard = yield* live.until((events) => events.length >= 1)
        expect(heard[0]?.json.snapshot.properties).toEqual({ number: 1 })
      })
    )

    it.effect("a conversation at one server shows what was said at the other", () =>
      Effect.gen(function* () {
        const { other, story } = yield* bothDoors
        const agent = yield* story.post("/agents", watcher({ triggerType: "manual", reactionConfig: null }))
        yield* story.post("/contexts", { name: "talk", agentId: agent.id })
        const live = yield* openStream(
          other,
          `/api/projects/${story.projectId}/contexts/talk/events?after=start`
        )
        yield* TestClock.adjust(outboxLimits.tellIntervalMs)
        yield* story.post("/contexts/talk/events", { type: "UserMessageEvent", content: "Hello" })
        const heard = yield* live.until((events) => events.length >= 2)
        expect(heard[1]?.json).toMatchObject({ type: "UserMessageEvent", content: "Hello" })
      })
    )

    it.effect("whoever breaks into a turn through the server that does not hold it is noticed at once", () =>
      Effect.gen(function* () {
        const { other, story } = yield* bothDoors
        yield* newContext(story, "talk", slowEcho)
        // Nobody can say which server took the run, so each of them interrupts once and speaks once.
        for (const [turn, doors] of [story, other].entries()) {
          yield* say(story, "talk", "Tell me everything")
          const started = logOf(story, "talk").pipe(
            Effect.map((log) => countOf(log, "AgentTurnStartedEvent"))
          )
          yield* asTimePasses(outboxLimits.tellIntervalMs, started, (count) => count === 2 * turn + 1)
          yield* say(doors, "talk", "And be quick")
          yield* asTimePasses(outboxLimits.tellIntervalMs, started, (count) => count === 2 * turn + 2)
          expect((yield* doors.ask("POST", "/contexts/talk/interrupt")).status).toBe(204)
          const log = logOf(story, "talk")
          const ended = yield* asTimePasses(
            outboxLimits.tellIntervalMs,
            log,
            (events) => countOf(events, "AgentTurnInterruptedEvent") === 2 * (turn + 1)
          )
          const [message, user] = ended
            .filter(({ type }) => type === "AgentTurnInterruptedEvent")
            .slice(2 * turn)
          expect([message.reason, user.reason]).toEqual(["message", "user"])
          const spoken = ended.filter(({ type }) => type === "UserMessageEvent")[2 * turn + 1]
          const asked = ended.filter(({ type }) => type === "InterruptRequestedEvent")[turn]
          for (const [cause, end] of [
            [spoken, message],
            [asked, user]
          ] as const)
            expect(new Date(end.timestamp).getTime() - new Date(cause.timestamp).getTime()).toBeLessThan(500)
        }
      })
    )

    it.effect("subscribers at both servers hear everything that is said at either, in one order", () =>
      Effect.gen(function* () {
        const { other, story } = yield* bothDoors
        const agent = yield* story.post("/agents", watcher({ triggerType: "manual", reactionConfig: null }))
        yield* story.post("/contexts", { name: "crowd", agentId: agent.id })
        const path = `/api/projects/${story.projectId}/contexts/crowd/events?after=start`
        const live = yield* Effect.forEach([story, story, other, other], (doors) => openStream(doors, path))
        const count = 30
        const say = (number: number) =>
          (number % 2 === 0 ? story : other).post("/contexts/crowd/events", {
            type: "UserMessageEvent",
            content: `Message ${number}`,
            triggersAgentTurn: false
          })
        const numbers = Array.from({ length: count }, (_, index) => index + 1)
        yield* Effect.forEach(numbers, say, { concurrency: 6 })
        // What was said while a letter was on its way goes out with the next one.
        const isHeard = Effect.sync(() => live.every(({ heard }) => heard.length >= count + 1))
        yield* asTimePasses(outboxLimits.tellIntervalMs, isHeard, (all) => all)
        const log = yield* story.get("/contexts/crowd/events?limit=200")
        for (const { heard } of live) {
          expect(heard.map(({ id }) => id)).toEqual(["1", ...numbers.map((number) => String(number + 1))])
          expect(heard.map(({ json }) => json)).toEqual(log.items)
        }
      })
    )

    it.effect("a server that lost its connection reads what it missed as soon as it has another", () =>
      Effect.gen(function* () {
        const { access, other, story } = yield* bothDoors
        const live = yield* openStream(other, feedPath(story))
        const before = yield* couriers(access)
        yield* askAsServer(
          access,
          `select pg_terminate_backend(pid) from pg_stat_activity where ${isCourier}`
        )
        yield* eventually(couriers(access), (pids) => pids.length === 0)
        yield* make(story, "Thing", { number: 2 })
        yield* feedOf(story, 1)
        expect(live.heard).toEqual([])
        const count = Effect.sync(() => live.heard.length)
        yield* asTimePasses(outboxLimits.reconnectDelayMs, count, (heard) => heard >= 1)
        const after = yield* eventually(couriers(access), (pids) => pids.length === 2)
        expect(after).not.toEqual(before)
      })
    )
  })
})
