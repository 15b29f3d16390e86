/**
 * What failed is tried again when the agent's policy says so, and else waits for a person.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  callsOf,
  entriesOf,
  entriesWhen,
  isOver,
  make,
  runsOf,
  saying,
  silentFor,
  watcher
} from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

/** A provider without a key fails a run at once. */
const unreachable = { provider: "anthropic", name: "none" }

const policy = (maxAttempts: number, backoffMs = 60_000) => ({ retryPolicy: { maxAttempts, backoffMs } })

/** Lets the instant of every waiting entry come. */
const pass = (story: Story) =>
  ask(
    story.access,
    "update kb.agent_processing_log set due_at = now() where project_id = $1 and run_id is null and status = 'pending'",
    [story.projectId]
  )

const deadLettersOf = (story: Story, agent: Json) =>
  Effect.map(story.get(`/agents/${agent.id}/dead-letters`), (page) => page.items)

const secondsBetween = (from: string, to: string): number =>
  Math.round((new Date(to).getTime() - new Date(from).getTime()) / 1_000)

layer(SharedServer.layer)((it) => {
  describe("Open question: retry of failed execute-mode reactions", () => {
    it.effect(
      "S001-F05 an agent with a retry policy tries again after a back-off that doubles, and then no more",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher({ model: unreachable, ...policy(4) }))
          yield* make(story, "Person")
          for (const attempt of [1, 2, 3]) {
            const entries = yield* eventually(
              entriesOf(story, agent),
              (found) => found.length === attempt + 1 && isOver(found[attempt - 1])
            )
            const [failed, next] = [entries[attempt - 1], entries[attempt]]
            expect(failed).toMatchObject({ status: "failed", attempt, deadLetteredAt: null })
            expect(next).toMatchObject({
              status: "pending",
              attempt: attempt + 1,
              runId: null,
              eventId: failed.eventId,
              objectVersion: 1,
              reason: expect.stringContaining(`Attempt ${attempt + 1} of 4`)
            })
            expect(secondsBetween(failed.completedAt, next.dueAt)).toBe(60 * 2 ** (attempt - 1))
            expect(yield* deadLettersOf(story, agent)).toEqual([])
            yield* pass(story)
            yield* asTimePasses(1_000, entriesOf(story, agent), (found) => isOver(found[attempt]))
          }
          const entries = yield* entriesOf(story, agent)
          expect(entries.map((entry) => entry.status)).toEqual(["failed", "failed", "failed", "failed"])
          expect(yield* runsOf(story, agent)).toHaveLength(4)
          const dead = yield* deadLettersOf(story, agent)
          expect(dead).toMatchObject([{ id: entries[3].id, attempt: 4, deadLetteredAt: expect.any(String) }])
        })
    )

    it.effect("S001-F05 an attempt that completes ends the trying", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: unreachable, ...policy(5) }))
        yield* make(story, "Person")
        yield* eventually(entriesOf(story, agent), (found) => found.length === 2)
        yield* story.patch(`/agents/${agent.id}`, { model: saying("At last.") })
        yield* pass(story)
        const entries = yield* asTimePasses(1_000, entriesOf(story, agent), (found) => found.every(isOver))
        expect(entries).toMatchObject([
          { status: "failed", deadLetteredAt: null },
          { status: "completed", attempt: 2, deadLetteredAt: null }
        ])
        expect(yield* deadLettersOf(story, agent)).toEqual([])
      })
    )

    it.effect(
      "S001-F05 what a person asked for is tried again for that person, and what another redrives for that other",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const ann = yield* asUser(story, "editor", null, "ann")
          const noting = { triggerType: "reaction", tools: ["tasks.add_task"], ...policy(2) }
          const agent = yield* story.post(
            "/agents",
            watcher({ model: unreachable, ...noting, enabled: false })
          )
          const person = yield* make(story, "Person")
          yield* story.patch(`/agents/${agent.id}`, { enabled: true })
          yield* ann.post(`/agents/${agent.id}/batch-trigger`, { objectIds: [person.id] })
          yield* eventually(entriesOf(story, agent), (found) => found.length === 2)
          const stumbling = scripted([
            { when: "step == 0", calls: [{ tool: "add_task", arguments: { title: "Noted" } }] },
            { fault: { kind: "error", message: "It stumbles" } }
          ])
          yield* story.patch(`/agents/${agent.id}`, { model: stumbling })
          yield* pass(story)
          const found = yield* asTimePasses(1_000, entriesOf(story, agent), (entries) =>
            entries.every(isOver)
          )
          expect(found).toMatchObject([{ status: "failed" }, { status: "failed", attempt: 2 }])
          const callsOfEntry = ({ runId }: Json) => callsOf(story, { id: runId })
          expect(yield* callsOfEntry(found[1])).toMatchObject([
            { tool: "add_task", userId: "ann", status: "completed" }
          ])
          // What somebody else redrives is not what she asked for.
          yield* story.post(`/agents/${agent.id}/dead-letters/redrive`)
          const [, , last] = yield* asTimePasses(
            1_000,
            entriesOf(story, agent),
            (entries) => entries.length === 3 && entries.every(isOver)
          )
          const { userId } = (yield* story.send("GET", "/api/me")).body
          expect(yield* callsOfEntry(last)).toMatchObject([{ userId, status: "completed" }])
          expect((yield* ann.get("/tasks?type=todo")).items).toMatchObject([{ title: "Noted", owner: "ann" }])
        })
    )

    it.effect("S001-F05 an abandoned entry is tried again too, and one that a person cancelled is not", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: silentFor(600_000), ...policy(2) }))
        yield* make(story, "Person")
        const [held] = yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")
        yield* ask(
          story.access,
          "update kb.agent_runs set attempt_token = gen_random_uuid(), attempt = 3, lease_expires_at = now() - interval '1 second' where id = $1",
          [held.runId]
        )
        const entries = yield* asTimePasses(1_000, entriesOf(story, agent), (found) => found.length === 2)
        expect(entries).toMatchObject([
          { status: "abandoned", deadLetteredAt: null },
          { status: "pending", attempt: 2 }
        ])

        const other = yield* story.post(
          "/agents",
          watcher({ name: "other", model: silentFor(600_000), ...policy(2) })
        )
        yield* make(story, "Person")
        const [begun] = yield* entriesWhen(story, other, 1, (entry) => entry.status === "processing")
        const { body: me } = yield* story.send("GET", "/api/me")
        expect(yield* story.post(`/runs/${begun.runId}/cancel`)).toMatchObject({
          status: "cancelled",
          errorMessage: null,
          cancelledBy: me.userId
        })
        const [cancelled] = yield* entriesOf(story, other)
        // Who cancels a run wanted it so: nothing waits for a person, and a person may still try it again.
        expect(cancelled).toMatchObject({
          status: "failed",
          errorMessage: expect.stringContaining(me.userId),
          deadLetteredAt: null
        })
        expect(yield* deadLettersOf(story, other)).toEqual([])
        expect(yield* story.post(`/agents/${other.id}/processing-log/${cancelled.id}/retry`)).toMatchObject({
          status: "pending",
          attempt: 2
        })
        for (const run of yield* runsOf(story, agent))
          if (run.completedAt === null) yield* story.post(`/runs/${run.id}/cancel`)
      })
    )
  })

  describe("Dead letters", () => {
    it.effect(
      "S001-R59, R43 without a policy what failed is parked, and redriven once, however many ask",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher({ model: unreachable }))
          const count = 4
          for (let made = 0; made < count; made += 1) yield* make(story, "Person")
          const failed = yield* entriesWhen(story, agent, count)
          expect((yield* deadLettersOf(story, agent)).map((entry: Json) => entry.id).toSorted()).toEqual(
            failed.map((entry) => entry.id).toSorted()
          )
          yield* story.patch(`/agents/${agent.id}`, { model: saying("Done.") })

          const path = `/agents/${agent.id}/dead-letters/redrive`
          const answers = yield* Effect.all(
            Array.from({ length: 6 }, () => story.ask("POST", path, {})),
            { concurrency: 6 }
          )
          expect(answers.map((answer) => answer.status)).toEqual(Array(6).fill(200))
          const redriven = answers.flatMap((answer) => answer.body.redriven)
          expect(redriven.map((one: Json) => one.entryId).toSorted()).toEqual(
            failed.map((entry) => entry.id).toSorted()
          )
          const entries = yield* asTimePasses(
            1_000,
            entriesOf(story, agent),
            (found) => found.length === 2 * count && found.every(isOver)
          )
          expect(entries.slice(count).map((entry) => [entry.status, entry.attempt])).toEqual(
            failed.map(() => ["completed", 2])
          )
          expect(yield* deadLettersOf(story, agent)).toEqual([])
          expect(entries.slice(0, count).map((entry) => [entry.status, entry.deadLetteredAt])).toEqual(
            failed.map(() => ["failed", null])
          )
        })
    )

    it.effect("S001-R43 those named are redriven, and of each other one is said why not", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: unreachable }))
        for (let made = 0; made < 3; made += 1) yield* make(story, "Person")
        const [first, second, third] = yield* entriesWhen(story, agent, 3)
        const redrive = (ids: ReadonlyArray<string>) =>
          story.ask("POST", `/agents/${agent.id}/dead-letters/redrive`, { ids })
        yield* ask(story.access, "update kb.agent_processing_log set attempt = 20 where id = $1", [second.id])
        const answer = yield* redrive([first.id, second.id, agent.id])
        expect(answer.body.redriven).toMatchObject([{ entryId: first.id, attempt: 2 }])
        expect(answer.body.skipped).toEqual([
          { entryId: agent.id, reason: expect.any(String) },
          { entryId: second.id, reason: expect.stringMatching(/\b20\b/) }
        ])
        yield* entriesWhen(story, agent, 4)
        expect((yield* deadLettersOf(story, agent)).map((entry: Json) => entry.id)).toContain(third.id)

        expect((yield* redrive([])).status).toBe(422)
        expect((yield* redrive(Array(101).fill(first.id))).status).toBe(422)
        yield* story.patch(`/agents/${agent.id}`, { enabled: false })
        expect(yield* redrive([third.id])).toMatchObject({ status: 409, body: { reason: "agentDisabled" } })
        yield* story.delete(`/agents/${agent.id}`)
        expect((yield* redrive([third.id])).status).toBe(404)
        expect((yield* deadLettersOf(story, agent)).length).toBeGreaterThan(0)
      })
    )
  })
})
