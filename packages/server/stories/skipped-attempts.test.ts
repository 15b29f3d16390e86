/**
 * What failed is kept until it is really tried again: a next attempt that never began gives it back.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { limitChains } from "../testing/chain-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { askNow, idsOf, newListener } from "../testing/source-words.ts"
import {
  endedRuns,
  entriesOf,
  entriesWhen,
  isOver,
  make,
  saying,
  silentFor,
  watcher
} from "../testing/story-words.ts"

/** A provider without a key fails a run at once. */
const unreachable = { provider: "anthropic", name: "none" }

/** The next attempt waits for an hour. */
const patient = { retryPolicy: { maxAttempts: 3, backoffMs: 3_600_000 } }

const deadIdsOf = (story: Story, agent: Json): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(story.get(`/agents/${agent.id}/dead-letters`), ({ items }) => items.map(({ id }: Json) => id))

/** How many dead letters the overview of reactions counts of an agent. */
const countedOf = (story: Story, agent: Json): Effect.Effect<number> =>
  Effect.map(
    story.get("/reactions"),
    ({ items }) => items.find(({ id }: Json) => id === agent.id).deadLetters
  )

const redrive = (story: Story, agent: Json, ids?: ReadonlyArray<string>) =>
  story.ask("POST", `/agents/${agent.id}/dead-letters/redrive`, ids === undefined ? {} : { ids })

const retry = (story: Story, agent: Json, entry: Json) =>
  story.ask("POST", `/agents/${agent.id}/processing-log/${entry.id}/retry`)

const set = (story: Story, agent: Json, changes: Json) => story.patch(`/agents/${agent.id}`, changes)

/** The entries, once there are so many and all are over. */
const overOf = (story: Story, agent: Json, count: number) =>
  asTimePasses(1_000, entriesOf(story, agent), (found) => found.length === count && found.every(isOver))

/** Lets the instant of the waiting entry come. */
const pass = (story: Story, agent: Json) =>
  ask(
    story.access,
    "update kb.agent_processing_log set due_at = now() where agent_id = $1 and status = 'pending'",
    [agent.id]
  )

/** An agent whose attempt at a new Person failed, and whose next one waits. */
const newWaiting = Effect.gen(function* () {
  const story = yield* newStoryHere
  const agent = yield* story.post("/agents", watcher({ model: unreachable, ...patient }))
  const person = yield* make(story, "Person")
  const [failed, waiting] = yield* eventually(entriesOf(story, agent), (found) => found.length === 2)
  expect([failed.status, waiting.status]).toEqual(["failed", "pending"])
  expect(yield* deadIdsOf(story, agent)).toEqual([])
  return { story, agent, person, failed }
})

/** The same, where the agent was disabled while the next attempt waited, and is enabled and mended again. */
const newGivenBack = Effect.gen(function* () {
  const { story, agent, person, failed } = yield* newWaiting
  yield* set(story, agent, { enabled: false })
  yield* pass(story, agent)
  yield* overOf(story, agent, 2)
  yield* set(story, agent, { enabled: true, model: saying("Done.") })
  return { story, agent, person, failed }
})

/** Such an entry, of an agent that fails, when it was tried nineteen times. */
const newOftenTried = Effect.gen(function* () {
  const scene = yield* newGivenBack
  const { agent, story } = scene
  yield* set(story, agent, { model: unreachable, retryPolicy: null })
  yield* ask(story.access, "update kb.agent_processing_log set attempt = attempt + 18 where agent_id = $1", [
    agent.id
  ])
  return scene
})

layer(SharedServer.layer)((it) => {
  describe("A next attempt that never began", () => {
    const stops = [
      ["disabled", { enabled: false }, { enabled: true }, "agentDisabled"],
      ["given another trigger", { triggerType: "manual" }, { triggerType: "reaction" }, "state"]
    ] as const
    for (const [what, stop, start, refusal] of stops)
      it.effect(`S001-R43, R59 leaves a dead letter, listed and redriven, when the agent was ${what}`, () =>
        Effect.gen(function* () {
          const { story, agent, failed } = yield* newWaiting
          yield* set(story, agent, stop)
          yield* pass(story, agent)
          const [before, skipped] = yield* overOf(story, agent, 2)
          expect(before).toMatchObject({ id: failed.id, status: "failed", attempt: 1 })
          expect(before.deadLetteredAt).toEqual(expect.any(String))
          expect(skipped).toMatchObject({ status: "skipped", attempt: 2, runId: null, deadLetteredAt: null })
          expect(skipped.reason).toBeTypeOf("string")
          expect(yield* deadIdsOf(story, agent)).toEqual([failed.id])

          // Nothing is lost by asking too early, however often.
          for (const ids of [undefined, [failed.id]])
            expect(yield* redrive(story, agent, ids)).toMatchObject({
              status: 409,
              body: { reason: refusal }
            })
          expect(yield* entriesOf(story, agent)).toHaveLength(2)
          expect(yield* deadIdsOf(story, agent)).toEqual([failed.id])

          yield* set(story, agent, { ...start, model: saying("Done.") })
          expect(yield* countedOf(story, agent)).toBe(1)
          const { body } = yield* redrive(story, agent)
          expect(body).toMatchObject({ redriven: [{ entryId: failed.id, attempt: 3 }], skipped: [] })
          const entries = yield* overOf(story, agent, 3)
          expect(entries.map(({ status }) => status)).toEqual(["failed", "skipped", "completed"])
          expect(yield* deadIdsOf(story, agent)).toEqual([])
          expect(yield* countedOf(story, agent)).toBe(0)
        })
      )

    it.effect(
      "S001-R43 leaves the last that failed, also where nobody looked before it was enabled again",
      () =>
        Effect.gen(function* () {
          const { story, agent, failed } = yield* newWaiting
          yield* pass(story, agent)
          const [, last] = yield* asTimePasses(
            1_000,
            entriesOf(story, agent),
            (found) => found.length === 3 && found[1]?.status === "failed"
          )
          yield* set(story, agent, { enabled: false })
          yield* set(story, agent, { enabled: true })
          yield* pass(story, agent)
          const [, , skipped] = yield* overOf(story, agent, 3)
          expect(skipped).toMatchObject({
            status: "skipped",
            reason: expect.any(String)
          })
          expect(yield* deadIdsOf(story, agent)).toEqual([last.id])
          expect((yield* retry(story, agent, failed)).body.detail).toMatch(/\b2\b/)
        })
    )

    it.effect("S001-R43 lets a person retry what failed before it, once", () =>
      Effect.gen(function* () {
        const { story, agent, failed } = yield* newGivenBack
        const answers = yield* Effect.all(
          Array.from({ length: 4 }, () => retry(story, agent, failed)),
          { concurrency: 4 }
        )
        expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409])
        expect(answers.find(({ status }) => status === 201)?.body).toMatchObject({ attempt: 3 })
        for (const { body, status } of answers) if (status === 409) expect(body.detail).toMatch(/\b3\b/)
        const entries = yield* overOf(story, agent, 3)
        expect(entries).toMatchObject([
          { id: failed.id, deadLetteredAt: null },
          { status: "skipped" },
          { status: "completed", attempt: 3 }
        ])
        expect(yield* deadIdsOf(story, agent)).toEqual([])
      })
    )

    it.effect("S001-R43 leaves no second mark when the object is triggered instead", () =>
      Effect.gen(function* () {
        const { story, agent, person, failed } = yield* newGivenBack
        expect(yield* deadIdsOf(story, agent)).toEqual([failed.id])
        const { body } = yield* story.ask("POST", `/agents/${agent.id}/batch-trigger`, {
          objectIds: [person.id]
        })
        expect(body.queued).toHaveLength(1)
        expect(yield* deadIdsOf(story, agent)).toEqual([])
        const entries = yield* overOf(story, agent, 3)
        expect(entries[2]).toMatchObject({ status: "completed", attempt: 3 })
      })
    )

    it.effect("is no try of those that an object may have", () =>
      Effect.gen(function* () {
        const { story, agent, failed } = yield* newOftenTried
        const trigger = story.ask("POST", `/agents/${agent.id}/batch-trigger`, {
          objectIds: [failed.graphObjectId]
        })
        expect((yield* trigger).body).toMatchObject({ queued: [{ id: failed.graphObjectId }], skipped: [] })
        yield* overOf(story, agent, 3)
        expect((yield* trigger).body).toMatchObject({
          queued: [],
          skipped: [{ reason: expect.stringMatching(/\b20\b/) }]
        })
      })
    )

    it.effect("S001-R43 is no try of those that an entry may have", () =>
      Effect.gen(function* () {
        const { story, agent, failed } = yield* newOftenTried
        expect((yield* redrive(story, agent)).body.redriven).toMatchObject([
          { entryId: failed.id, attempt: 21 }
        ])
        const [, , last] = yield* overOf(story, agent, 3)
        expect(last).toMatchObject({ status: "failed", deadLetteredAt: expect.any(String) })
        expect((yield* redrive(story, agent, [last.id])).body.skipped).toEqual([
          { entryId: last.id, reason: expect.stringMatching(/\b20\b/) }
        ])
        expect((yield* retry(story, agent, last)).body.detail).toMatch(/\b20\b/)
        expect(yield* deadIdsOf(story, agent)).toEqual([last.id])
      })
    )

    it.effect("S001-K01 leaves a dead letter as often as its chain has no place for it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: unreachable }))
        yield* make(story, "Person")
        const [failed] = yield* entriesWhen(story, agent, 1)
        yield* limitChains(story, { maxRuns: 1 })
        yield* set(story, agent, { model: saying("Done.") })
        for (const attempt of [2, 3]) {
          expect((yield* redrive(story, agent)).body.redriven).toMatchObject([
            { entryId: failed.id, attempt }
          ])
          const entries = yield* overOf(story, agent, attempt)
          expect(entries[attempt - 1]).toMatchObject({
            status: "skipped",
            reason: expect.any(String)
          })
          expect(yield* deadIdsOf(story, agent)).toEqual([failed.id])
        }
        yield* limitChains(story, { maxRuns: 10 })
        expect((yield* redrive(story, agent)).body.redriven).toMatchObject([{ attempt: 4 }])
        expect((yield* overOf(story, agent, 4))[3]).toMatchObject({ status: "completed" })
        expect(yield* deadIdsOf(story, agent)).toEqual([])
      })
    )

    it.effect("S001-R43 makes no dead letter of what a person cancelled, and lets it be retried", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const reactionConfig = { objectTypes: ["Person"], events: ["created"], maxConcurrency: 1 }
        const agent = yield* story.post("/agents", watcher({ reactionConfig, model: silentFor(600_000) }))
        const first = yield* make(story, "Person")
        const [begun] = yield* entriesWhen(story, agent, 1, ({ status }) => status === "processing")
        yield* story.post(`/runs/${begun.runId}/cancel`)
        yield* make(story, "Person")
        const [cancelled, working] = yield* entriesWhen(story, agent, 2, ({ status }) => status !== "pending")
        const { body } = yield* story.ask("POST", `/agents/${agent.id}/batch-trigger`, {
          objectIds: [first.id]
        })
        expect(body.queued).toMatchObject([{ runId: null }])
        yield* set(story, agent, { triggerType: "manual" })
        const isSkipped = (found: ReadonlyArray<Json>) => found[2]?.status === "skipped"
        yield* asTimePasses(1_000, entriesOf(story, agent), isSkipped)
        expect(yield* deadIdsOf(story, agent)).toEqual([])
        yield* set(story, agent, { triggerType: "reaction" })
        yield* story.post(`/runs/${working.runId}/cancel`)
        yield* set(story, agent, { model: saying("Done.") })
        expect(yield* retry(story, agent, cancelled)).toMatchObject({ status: 201, body: { attempt: 3 } })
        expect((yield* overOf(story, agent, 4))[3]).toMatchObject({ status: "completed" })
      })
    )
  })
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("What a foreign server told and could not be handled", () => {
    it.effect("is kept when its next attempt never began, and handled in the end", () =>
      Effect.gen(function* () {
        const { agent, source, story } = yield* newListener({ model: unreachable, ...patient })
        source.happen("1")
        yield* askNow(story)
        const [failed] = yield* eventually(entriesOf(story, agent), (found) => found.length === 2)
        expect(yield* deadIdsOf(story, agent)).toEqual([])
        yield* set(story, agent, { enabled: false })
        yield* pass(story, agent)
        yield* entriesWhen(story, agent, 2)
        expect(yield* deadIdsOf(story, agent)).toEqual([failed.id])
        yield* set(story, agent, { enabled: true, model: saying("{{ message }}") })
        expect((yield* redrive(story, agent)).body.redriven).toMatchObject([
          { entryId: failed.id, attempt: 3 }
        ])
        const [, handled] = yield* endedRuns(story, agent, 2)
        expect(handled.status).toBe("completed")
        expect(idsOf([handled])).toEqual(["1"])
        expect(yield* deadIdsOf(story, agent)).toEqual([])
      })
    )
  })
})
