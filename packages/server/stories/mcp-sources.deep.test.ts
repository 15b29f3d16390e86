/**
 * Requirement: a source of foreign events may be dead, lie or repeat itself (issue 7); nothing is lost, nothing is twice.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { freeAddress } from "../testing/cluster-servers.ts"
import { eventOf, eventSource, sessionSource } from "../testing/mcp-event-source.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  addSource,
  askNow,
  idsOf,
  listener,
  listening,
  newListener,
  sourcesOf,
  sourceWhen
} from "../testing/source-words.ts"
import { endedRuns, runsOf } from "../testing/story-words.ts"

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: Sources of foreign events", () => {
    it.effect("a source that no enabled agent hears is not asked for", () =>
      Effect.gen(function* () {
        const { agent, source, story } = yield* newListener()
        yield* story.delete(`/agents/${agent.id}`)
        const asleep = () =>
          Effect.map(
            ask(story.access, "select due_at, cursor from kb.mcp_event_sources where project_id = $1", [
              story.projectId
            ]),
            ([row]) => row
          )
        yield* askNow(story)
        yield* eventually(asleep(), (row) => row?.[0] === null)
        expect(yield* asleep()).toEqual([null, null])
        const asked = source.asked.length
        // Whoever else is asked for goes on: this one has had its turns meanwhile.
        const next = yield* newListener()
        next.source.happen("1")
        yield* endedRuns(next.story, next.agent, 1)
        expect(source.asked.length).toBe(asked)
      })
    )

    it.effect("what a source repeats, takes back, lies about or sends too large does no harm", () =>
      Effect.gen(function* () {
        const { agent, source, story } = yield* newListener()
        const answers: Array<Json> = [
          { events: [eventOf("a"), eventOf("a"), eventOf("b")], cursor: "9", hasMore: true },
          // Goes backwards, and says for ever that there is more.
          { events: [eventOf("b"), eventOf("a")], cursor: "2", hasMore: true },
          { events: [], cursor: "2", hasMore: true },
          // Told a year late: nobody would know whether it was told before.
          { events: [{ ...eventOf("old"), timestamp: "2025-01-01T00:00:00Z" }], cursor: "3", hasMore: true },
          // Told years ahead: it would have to be remembered for as long.
          {
            events: [{ ...eventOf("ahead"), timestamp: "2999-01-01T00:00:00Z" }],
            cursor: "3",
            hasMore: true
          },
          {
            events: [eventOf("big", { text: "x".repeat(70_000) })],
            cursor: "4",
            truncated: true,
            hasMore: true
          },
          { events: [eventOf("odd", { text: "a\u0000b" }), eventOf("c")], cursor: "5", nextPollMs: -7 }
        ]
        source.lie(() => answers.shift() ?? { events: [], cursor: "5", nextPollMs: 1e300 })
        yield* askNow(story)
        const runs = yield* endedRuns(story, agent, 5)
        expect(idsOf(runs).toSorted()).toEqual(["a", "b", "big", "c", "odd"])
        const of = (id: string) => runs.find(({ trigger }) => trigger.mcpEvents[0].eventId === id)
        expect(of("big").summary.trim()).toBe("Look at orders order.placed big:")
        const state = yield* sourceWhen(story, ({ truncatedAt }) => truncatedAt !== null)
        expect(state.status).toBe("listening")
        // However it wishes it, it is asked again within the hour.
        yield* sourceWhen(story, ({ nextPollAt }) => Date.parse(nextPollAt) - Date.now() > 1_800_000)
        expect(yield* runsOf(story, agent)).toHaveLength(5)
      })
    )

    it.effect("an answer that is none is told and asked for again, and nothing is lost", () =>
      Effect.gen(function* () {
        const { agent, source, story } = yield* newListener()
        source.lie(() => ({ events: [eventOf("1", {}, "order.paid")], cursor: "1" }))
        yield* askNow(story)
        const state = yield* sourceWhen(story, ({ status }) => status === "failing")
        expect(state.lastFault).toContain("events/poll")
        expect(state.failedSince).not.toBeNull()
        source.lie(undefined)
        source.happen("1")
        yield* askNow(story)
        expect(idsOf(yield* endedRuns(story, agent, 1))).toEqual(["1"])
      })
    )

    it.effect("a session that the server has forgotten is begun anew, once, and what happened is told", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const source = yield* sessionSource()
        yield* addSource(story, source.url)
        const agent = yield* story.post("/agents", listener())
        yield* listening(story)
        source.state.known.clear()
        source.happen("1")
        yield* askNow(story)
        expect(idsOf(yield* endedRuns(story, agent, 1))).toEqual(["1"])
        expect(source.state.sessions).toBe(2)
        expect(yield* sourcesOf(story)).toMatchObject([{ status: "listening", lastFault: null }])
      })
    )

    it.effect("a server that offers events since the last handshake is heard", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const source = yield* sessionSource({ offers: false })
        yield* addSource(story, source.url)
        const agent = yield* story.post("/agents", listener())
        yield* sourceWhen(story, ({ status }) => status === "failing")
        source.offer()
        yield* askNow(story)
        yield* listening(story)
        source.happen("1")
        yield* askNow(story)
        expect(idsOf(yield* endedRuns(story, agent, 1))).toEqual(["1"])
      })
    )

    it.effect(
      "a server that has no events, that died, or that is removed is told, and heard when it is back",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const silent = yield* eventSource({ offers: false })
          const server = yield* addSource(story, silent.url)
          const agent = yield* story.post("/agents", listener())
          let fault: string | null = null
          /** Waits until the source fails for another reason than before, in which a value is named. */
          const failing = Effect.fnUntraced(function* (value: string) {
            const state = yield* sourceWhen(
              story,
              ({ lastFault }) =>
                typeof lastFault === "string" && lastFault !== fault && lastFault.includes(value)
            )
            fault = state.lastFault
          })
          yield* failing("")
          const at = (url: string) =>
            story.patch(`/mcp-servers/${server.id}`, { transport: { type: "http", url } })
          const { port } = yield* freeAddress
          yield* Effect.scoped(
            Effect.gen(function* () {
              const living = yield* eventSource({ port })
              yield* at(living.url)
              yield* askNow(story)
              yield* listening(story)
              living.happen("1")
              yield* askNow(story)
              yield* endedRuns(story, agent, 1)
            })
          )
          yield* askNow(story)
          yield* sourceWhen(story, ({ status }) => status === "failing")
          const back = yield* eventSource({ port })
          back.happen("before", "2")
          yield* listening(story)
          expect(idsOf(yield* endedRuns(story, agent, 2))).toEqual(["1", "2"])
          yield* story.patch(`/mcp-servers/${server.id}`, { allowedEvents: [] })
          yield* askNow(story)
          yield* failing("allowedEvents")
          yield* story.patch(`/mcp-servers/${server.id}`, { enabled: false })
          yield* askNow(story)
          yield* failing("orders")
        })
    )
  })
})
