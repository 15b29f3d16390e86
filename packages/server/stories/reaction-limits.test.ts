/**
 * How much an agent begins, and what becomes of what must wait for that.
 *
 * The server's clock stands still until a story moves it; a run that thinks for
 * a minute is at work for as long as the story wants.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ask, holding, lockOf } from "../testing/owner-rows.ts"
import { eventually, type Json, startServer, type Story, storyIn } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  change,
  entriesOf,
  entriesWhen,
  feedOf,
  isOver,
  make,
  runsOf,
  saying,
  silentFor,
  versionsOf,
  watcher
} from "../testing/story-words.ts"

const thinkingMs = 60_000

const slow = (reaction: Record<string, unknown>, overrides: Record<string, unknown> = {}) =>
  watcher({
    reactionConfig: {
      objectTypes: ["Person"],
      events: ["created", "updated"],
      concurrencyStrategy: "parallel",
      ...reaction
    },
    model: silentFor(thinkingMs),
    ...overrides
  })

const makePeople = (story: Story, count: number, concurrency = 1) =>
  Effect.forEach(
    Array.from({ length: count }, (_, index) => index),
    (index) => make(story, "Person", { index }),
    { concurrency }
  )

const live = (entries: ReadonlyArray<Json>): number =>
  entries.filter((entry) => entry.runId !== null && !isOver(entry)).length

/** Lets time pass until every entry is over; at no look did more than so many have a live run. */
const overWithNeverMoreThan = Effect.fnUntraced(function* (
  story: Story,
  agent: Json,
  count: number,
  most: number
) {
  let seen = 0
  const entries = yield* asTimePasses(
    thinkingMs / 4,
    Effect.tap(entriesOf(story, agent), (now) => Effect.sync(() => void (seen = Math.max(seen, live(now))))),
    (now) => now.length === count && now.every(isOver)
  )
  expect(seen).toBeLessThanOrEqual(most)
  expect(entries.map((entry) => entry.status)).toEqual(entries.map(() => "completed"))
  return entries
})

layer(SharedServer.layer)((it) => {
  describe("Risk: high-frequency events overwhelm agents, mitigated by limits", () => {
    it.effect("S001-K03 no more runs of an agent are at work than its maxConcurrency allows", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", slow({ maxConcurrency: 2 }))
        yield* makePeople(story, 5)
        const entries = yield* eventually(
          entriesOf(story, agent),
          (seen) => seen.length === 5 && seen.filter((entry) => entry.status === "processing").length === 2
        )
        expect(entries.map((entry) => entry.status)).toEqual([
          "processing",
          "processing",
          "pending",
          "pending",
          "pending"
        ])
        for (const entry of entries.slice(2))
          expect(entry).toMatchObject({ runId: null, reason: expect.stringContaining("maxConcurrency") })
        yield* overWithNeverMoreThan(story, agent, 5, 2)
        expect(yield* runsOf(story, agent)).toHaveLength(5)
      })
    )

    it.effect("S001-K03 beyond maxPendingRuns events wait, and none is dropped", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", slow({}, { maxPendingRuns: 2 }))
        yield* makePeople(story, 6)
        yield* feedOf(story, 6)
        const entries = yield* entriesOf(story, agent)
        expect(live(entries)).toBe(2)
        expect(entries.slice(2).map((entry) => [entry.status, entry.reason])).toEqual(
          Array.from({ length: 4 }, () => ["pending", expect.stringContaining("maxPendingRuns")])
        )
        yield* overWithNeverMoreThan(story, agent, 6, 2)
      })
    )

    it.effect("S001-F03 a skipping agent that may not begin gathers what comes of the object meanwhile", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", slow({ maxConcurrency: 1, concurrencyStrategy: "skip" }))
        const first = yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")
        const second = yield* make(story, "Person")
        yield* change(story, second, { name: "Ada" }, { name: "Grace" })
        yield* change(story, first, { name: "skipped" })
        yield* feedOf(story, 5)
        const entries = yield* asTimePasses(
          thinkingMs,
          entriesOf(story, agent),
          (seen) => seen.length === 5 && seen.every(isOver)
        )
        expect(entries.map((entry) => entry.status)).toEqual([
          "completed",
          "completed",
          "completed",
          "completed",
          "skipped"
        ])
        expect((yield* runsOf(story, agent)).map(versionsOf)).toEqual([[1], [1, 2, 3]])
      })
    )

    it.effect(
      "S001-F02, K03 two servers that release at once keep the order of each object and the limit",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const second = storyIn(yield* startServer(story.access), story.access, story.projectId)
          const agent = yield* story.post(
            "/agents",
            slow({ concurrencyStrategy: "queue", maxConcurrency: 3 }, { model: saying("Seen.") })
          )
          const people = yield* makePeople(story, 4)
          yield* Effect.forEach(
            people,
            (person, index) =>
              change(
                index % 2 === 0 ? story : second,
                person,
                ...Array.from({ length: 4 }, (_, n) => ({ n }))
              ),
            { concurrency: "unbounded" }
          )
          yield* overWithNeverMoreThan(story, agent, 20, 3)
          const runs = yield* runsOf(story, agent)
          for (const person of people) {
            const own = runs.filter((run) => run.trigger.events[0].objectId === person.id)
            expect(own.flatMap(versionsOf)).toEqual([1, 2, 3, 4, 5])
            for (const [index, run] of own.slice(1).entries())
              expect(Date.parse(run.startedAt)).toBeGreaterThanOrEqual(Date.parse(own[index].completedAt))
          }
        })
    )
  })

  describe("What waits for an agent that reacts no more", () => {
    const stops = [
      ["disabled", (story: Story, path: string) => story.patch(path, { enabled: false })],
      [
        "given another trigger (S001-R58)",
        (story: Story, path: string) => story.patch(path, { triggerType: "manual" })
      ],
      ["deleted", (story: Story, path: string) => story.delete(path)]
    ] as const
    for (const [what, stop] of stops) {
      it.effect(`S001-F01 ends as skipped, with the reason, when the agent is ${what}`, () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", slow({ debounceMs: 3_600_000 }))
          const person = yield* make(story, "Person")
          yield* change(story, person, { name: "Ada" })
          const [first] = yield* feedOf(story, 2)
          const waiting = yield* entriesWhen(story, agent, 2, (entry) => entry.status === "pending")
          yield* stop(story, `/agents/${agent.id}`)
          const seen = yield* eventually(
            ask(story.access, "select status, reason from kb.agent_processing_log where agent_id = $1", [
              agent.id
            ]),
            (rows) => rows.every(([status]) => status !== "pending")
          )
          expect(seen).toEqual(waiting.map(() => ["skipped", expect.any(String)]))
          expect(first.refusals).toEqual([])
        })
      )
    }

    it.effect(
      "S001-F01 enabling the agent again replays nothing of it, also where nobody looked meanwhile",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", slow({ debounceMs: 3_600_000 }))
          yield* make(story, "Person")
          yield* entriesWhen(story, agent, 1, (entry) => entry.status === "pending")
          const path = `/agents/${agent.id}`
          yield* story.patch(path, { enabled: false })
          yield* story.patch(path, {
            enabled: true,
            reactionConfig: { ...agent.reactionConfig, debounceMs: 0 }
          })
          const [entry] = yield* entriesWhen(story, agent, 1)
          expect(entry).toMatchObject({ status: "skipped", runId: null })
          expect(yield* runsOf(story, agent)).toEqual([])
        })
    )
  })
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Open question: rate limiting per agent", () => {
    it.effect("S001-F03 a run counts from when it began, however long it was queued before", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          slow({ rateLimit: { maxRuns: 1, perSeconds: 3_600 } }, { model: saying("Seen.") })
        )
        yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1)
        yield* ask(
          story.access,
          "update kb.agent_runs set created_at = created_at - interval '2 hours' where agent_id = $1",
          [agent.id]
        )
        yield* make(story, "Person")
        yield* feedOf(story, 2)
        const [, second] = yield* entriesOf(story, agent)
        expect(second).toMatchObject({ status: "pending", runId: null })
        expect(second?.reason).toContain("rateLimit")
      })
    )

    it.effect(
      "S001-F03 within any window, no more runs begin than the rate limit says; the others wait",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post(
            "/agents",
            slow({ rateLimit: { maxRuns: 3, perSeconds: 3 } }, { model: saying("Seen.") })
          )
          // The window of the first ones begins when the story has looked at the others.
          const claims = yield* holding(story.access, lockOf("claims"))
          yield* makePeople(story, 8, 8)
          yield* feedOf(story, 8)
          const waiting = (yield* entriesOf(story, agent)).filter((entry) => entry.runId === null)
          expect(waiting).toHaveLength(5)
          for (const entry of waiting) expect(entry.reason).toContain("rateLimit")
          yield* claims.query("commit")
          yield* entriesWhen(story, agent, 8)
          const began = (yield* runsOf(story, agent)).map((run) => Date.parse(run.startedAt)).toSorted()
          expect(began).toHaveLength(8)
          for (const [index, at] of began.slice(3).entries())
            expect(at - (began[index] ?? at)).toBeGreaterThanOrEqual(3_000)
        })
    )
  })
})
