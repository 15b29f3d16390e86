/**
 * What an agent has not handled is listed with the reason, and handled when somebody names it.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { runLimits } from "../src/limits.ts"
import { ask } from "../testing/owner-rows.ts"
import { type Json, scripted, type Story } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  calling,
  endedRuns,
  entriesOf,
  entriesWhen,
  feedOf,
  isOver,
  make,
  runsOf,
  saying,
  silentFor,
  watcher
} from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

const unreachable = { provider: "anthropic", name: "none" }

const changes = (more: Record<string, unknown> = {}) => ({
  objectTypes: ["Person"],
  events: ["created", "updated"],
  ...more
})

/** All pages, as whoever follows the cursors reads them. */
const pendingOf = (story: Story, agent: Json, limit = 200): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.gen(function* () {
    const items: Array<Json> = []
    let cursor: string | null = ""
    while (cursor !== null) {
      const page: Json = yield* story.get(
        `/agents/${agent.id}/pending-events?limit=${limit}${cursor === "" ? "" : `&cursor=${cursor}`}`
      )
      expect(page.items.length).toBeLessThanOrEqual(limit)
      items.push(...page.items)
      cursor = page.nextCursor
    }
    return items
  })

const batch = (story: Story, agent: Json, body: unknown) =>
  story.ask("POST", `/agents/${agent.id}/batch-trigger`, body)

layer(SharedServer.layer)((it) => {
  describe("Pending events", () => {
    it.effect(
      "are the objects that the agent has not handled at their newest version, each with the reason",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const old = yield* make(story, "Person", { name: "old" })
          yield* make(story, "Company")
          yield* feedOf(story, 2)
          const agent = yield* story.post("/agents", watcher({ reactionConfig: changes() }))
          const handled = yield* make(story, "Person", { name: "handled" })
          yield* entriesWhen(story, agent, 1)
          yield* story.patch(`/agents/${agent.id}`, { model: unreachable })
          const failed = yield* make(story, "Person", { name: "failed" })
          yield* entriesWhen(story, agent, 2)
          yield* story.patch(`/agents/${agent.id}`, { model: silentFor(60_000) })
          const busy = yield* make(story, "Person", { name: "busy" })
          yield* entriesWhen(story, agent, 3, (entry) => entry.status !== "pending")
          yield* story.patch(`/objects/${busy.id}`, { properties: { age: 1 } })
          yield* feedOf(story, 6)
          expect(yield* pendingOf(story, agent)).toMatchObject([
            { objectId: busy.id, version: 2, why: "skipped", reason: expect.any(String) },
            { objectId: failed.id, version: 1, why: "failed", reason: expect.stringContaining("anthropic") },
            {
              objectId: old.id,
              objectType: "Person",
              version: 1,
              why: "notEnabled",
              reason: expect.any(String),
              entryId: null
            }
          ])
          // Read page by page it is the same, and what was handled since is gone.
          expect((yield* pendingOf(story, agent, 1)).map((item) => item.objectId)).toEqual([
            busy.id,
            failed.id,
            old.id
          ])
          yield* story.delete(`/objects/${failed.id}`)
          expect((yield* pendingOf(story, agent)).map((item) => item.objectId)).not.toContain(failed.id)
          expect(handled.id).not.toBe(old.id)
          yield* asTimePasses(30_000, entriesOf(story, agent), (found) => found.every(isOver))
        })
    )

    it.effect(
      "leave out what the agent's own rule leaves out, and what was forgotten after it was handled",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const writing = calling({
            tool: "update_object",
            arguments: { objectId: "{{ input.object.id }}", properties: { seen: true } }
          })
          const agent = yield* story.post(
            "/agents",
            watcher({
              model: writing,
              reactionConfig: changes({
                where: { properties: [{ property: "name", op: "exists", value: true }] }
              })
            })
          )
          const seen = yield* make(story, "Person", { name: "Ada" })
          yield* make(story, "Person", { title: "nobody" })
          yield* endedRuns(story, agent, 1)
          yield* feedOf(story, 3)
          // The newest version is the agent's own; the other object does not meet the condition.
          expect((yield* story.get(`/objects/${seen.id}`)).version).toBe(2)
          expect(yield* pendingOf(story, agent)).toEqual([])

          const plain = yield* story.post("/agents", watcher({ name: "plain" }))
          const person = yield* make(story, "Person", { title: "x" })
          const [entry] = yield* entriesWhen(story, plain, 1)
          yield* ask(
            story.access,
            "update kb.agent_processing_log set created_at = created_at - interval '40 days', completed_at = completed_at - interval '40 days' where id = $1",
            [entry.id]
          )
          yield* asTimePasses(
            runLimits.forgetIntervalMs,
            entriesOf(story, plain),
            (found) => found.length === 0
          )
          expect((yield* pendingOf(story, plain)).map((item) => item.objectId)).not.toContain(person.id)
          expect((yield* batch(story, plain, { objectIds: [person.id] })).body).toMatchObject({
            queued: [],
            skipped: [{ id: person.id, reason: expect.any(String) }]
          })
        })
    )
  })

  describe("Batch trigger", () => {
    it.effect(
      "runs the agent for each object named that it has not handled, once, however many ask at once",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const count = 12
          for (let made = 0; made < count; made += 1) yield* make(story, "Person")
          const company = yield* make(story, "Company")
          yield* feedOf(story, count + 1)
          const agent = yield* story.post("/agents", watcher({ model: saying("Done.") }))
          const objectIds = (yield* pendingOf(story, agent)).map((item) => item.objectId)
          expect(objectIds).toHaveLength(count)

          const answers = yield* Effect.all(
            Array.from({ length: 5 }, () =>
              batch(story, agent, { objectIds: [...objectIds, company.id, agent.id] })
            ),
            { concurrency: 5 }
          )
          expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200, 200, 200])
          const queued = answers.flatMap((answer) => answer.body.queued)
          expect(queued.map((one: Json) => one.id).toSorted()).toEqual(objectIds.toSorted())
          const reasons = new Map(answers[0]?.body.skipped.map((one: Json) => [one.id, one.reason]))
          expect([company.id, agent.id].map((id) => typeof reasons.get(id))).toEqual(["string", "string"])

          const entries = yield* entriesWhen(story, agent, count)
          expect(entries.map((entry) => [entry.status, entry.attempt])).toEqual(
            entries.map(() => ["completed", 1])
          )
          const runs = yield* runsOf(story, agent)
          // Each is the root of a chain of its own.
          expect(runs.map((run) => [run.rootEventId, run.depth])).toEqual(runs.map((run) => [run.id, 0]))
          expect(runs.map((run) => run.id).toSorted()).toEqual(
            queued.map((one: Json) => one.runId).toSorted()
          )
          expect(yield* pendingOf(story, agent)).toEqual([])
          expect((yield* batch(story, agent, { objectIds })).body.skipped).toHaveLength(count)
        })
    )

    it.effect("tries again what was skipped or failed, as the next attempt, named by its event too", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: unreachable }))
        yield* make(story, "Person")
        const [failed] = yield* entriesWhen(story, agent, 1)
        yield* story.patch(`/agents/${agent.id}`, { model: saying("Done.") })
        const answer = yield* batch(story, agent, { eventIds: [failed.eventId] })
        expect(answer.body.queued).toMatchObject([{ id: failed.eventId }])
        const entries = yield* entriesWhen(story, agent, 2)
        expect(entries).toMatchObject([
          { status: "failed", deadLetteredAt: null },
          { status: "completed", attempt: 2, eventId: failed.eventId }
        ])
      })
    )

    it.effect(
      "lets wait what maxConcurrency or rateLimit holds back, with the reason, and handles it in time",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          for (let made = 0; made < 4; made += 1) yield* make(story, "Person")
          yield* feedOf(story, 4)
          const held = (name: string, limits: Record<string, unknown>) =>
            story.post("/agents", watcher({ name, reactionConfig: changes(limits) }))
          const single = yield* held("single", { maxConcurrency: 1 })
          const limited = yield* held("limited", { rateLimit: { maxRuns: 2, perSeconds: 1 } })
          for (const [agent, runs, sentence] of [
            [single, 1, "maxConcurrency"],
            [limited, 2, "rateLimit"]
          ] as const) {
            const objectIds = (yield* pendingOf(story, agent)).map((item) => item.objectId)
            const { queued, skipped } = (yield* batch(story, agent, { objectIds })).body
            expect(skipped).toEqual([])
            expect(queued).toEqual(
              objectIds.map((id, index) => ({
                id,
                entryId: expect.any(String),
                runId: index < runs ? expect.any(String) : null,
                reason: index < runs ? null : expect.stringContaining(sentence)
              }))
            )
            // Asked once more, nobody waits twice.
            expect((yield* batch(story, agent, { objectIds })).body.queued).toEqual([])
            const entries = yield* asTimePasses(
              20_000,
              entriesOf(story, agent),
              (found) => found.length === 4 && found.every(isOver)
            )
            expect(entries.map((entry) => [entry.status, entry.attempt])).toEqual(
              entries.map(() => ["completed", 1])
            )
            expect(entries.map((entry) => entry.id).toSorted()).toEqual(
              queued.map((one: Json) => one.entryId).toSorted()
            )
          }
        })
    )

    it.effect("is done for whoever asked for it, also where it waited for its place", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ann = yield* asUser(story, "editor", null, "ann")
        for (let made = 0; made < 2; made += 1) yield* make(story, "Person")
        yield* feedOf(story, 2)
        const noting = scripted([
          { when: "step == 0", calls: [{ tool: "add_task", arguments: { title: "Noted" } }] },
          { say: "Done." }
        ])
        const reactionConfig = changes({ maxConcurrency: 1 })
        const agent = yield* story.post(
          "/agents",
          watcher({ model: noting, tools: ["tasks.add_task"], reactionConfig })
        )
        const objectIds = (yield* pendingOf(story, agent)).map((item) => item.objectId)
        const { queued } = (yield* batch(ann, agent, { objectIds })).body
        expect(queued).toMatchObject([{ reason: null }, { runId: null }])
        yield* asTimePasses(
          1_000,
          entriesOf(story, agent),
          (found) => found.length === 2 && found.every(isOver)
        )
        const noted = (yield* ann.get("/tasks?type=todo")).items
        expect(noted).toMatchObject([{ owner: "ann" }, { owner: "ann" }])
      })
    )

    it.effect("respects the strategy and the caps, and refuses what it cannot do with the place", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        for (let made = 0; made < 4; made += 1) yield* make(story, "Person")
        yield* feedOf(story, 4)
        const agent = yield* story.post(
          "/agents",
          watcher({ maxPendingRuns: 3, model: silentFor(60_000), reactionConfig: changes() })
        )
        const objectIds = (yield* pendingOf(story, agent)).map((item) => item.objectId)
        const first = yield* batch(story, agent, { objectIds })
        expect(first.body.queued).toHaveLength(3)
        expect(first.body.skipped).toEqual([
          { id: objectIds[3], reason: expect.stringContaining("maxPendingRuns") }
        ])
        expect(yield* batch(story, agent, { objectIds: [objectIds[3]] })).toMatchObject({
          status: 429,
          body: { reason: "pendingRuns" }
        })
        yield* story.patch(`/agents/${agent.id}`, { maxPendingRuns: 100 })
        yield* story.patch(`/objects/${objectIds[0]}`, { properties: { age: 1 } })
        yield* feedOf(story, 5)
        // The agent is at work on the object's first version: the second one is not begun beside it.
        expect((yield* pendingOf(story, agent))[0]).toMatchObject({ objectId: objectIds[0], why: "skipped" })
        expect((yield* batch(story, agent, { objectIds: [objectIds[0]] })).body).toMatchObject({
          queued: [],
          skipped: [{ id: objectIds[0], reason: expect.any(String) }]
        })
        yield* asTimePasses(30_000, entriesOf(story, agent), (found) => found.every(isOver))

        const bad = (body: unknown) =>
          Effect.map(batch(story, agent, body), ({ status, body: told }) => [
            status,
            told.errors?.[0].pointer
          ])
        expect(yield* bad({})).toEqual([422, "/objectIds"])
        expect(yield* bad({ objectIds, eventIds: [objectIds[0]] })).toEqual([422, "/eventIds"])
        expect(yield* bad({ objectIds: [] })).toEqual([422, "/objectIds"])
        expect(yield* bad({ objectIds: Array.from({ length: 101 }, () => objectIds[0]) })).toEqual([
          422,
          "/objectIds"
        ])
        expect(yield* bad({ objectIds: ["x"] })).toEqual([422, "/objectIds/0"])
        const manual = yield* story.post(
          "/agents",
          watcher({ name: "manual", triggerType: "manual", reactionConfig: null })
        )
        expect(yield* batch(story, manual, { objectIds })).toMatchObject({
          status: 409,
          body: { reason: "state" }
        })
        expect((yield* story.get(`/agents/${manual.id}/pending-events`)).items).toEqual([])
        expect((yield* story.ask("GET", `/agents/${agent.id}/pending-events?cursor=x`)).status).toBe(422)
        yield* story.patch(`/agents/${agent.id}`, { enabled: false })
        expect(yield* batch(story, agent, { objectIds })).toMatchObject({
          status: 409,
          body: { reason: "agentDisabled" }
        })
      })
    )
  })
})
