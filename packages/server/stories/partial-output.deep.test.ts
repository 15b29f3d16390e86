/**
 * What an agent had said when its run was ended is there afterwards, whoever ended it.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { runLimits } from "../src/limits.ts"
import { addEvent, firstOf, logWith, newContext, quietLog } from "../testing/context-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { beginAsking, longText, partialOf, reader, runLog } from "../testing/time-words.ts"

const hasEnded = (run: Json) => run.completedAt !== null

const unhurried = { defaultTimeoutMs: null }

/** A run in the middle of its answer, with what its row keeps of it. */
const speaking = Effect.fnUntraced(function* (story: Story, overrides: Record<string, unknown> = {}) {
  const agent = yield* story.post("/agents", reader({ say: "" }, { ...unhurried, ...overrides }))
  const run = yield* beginAsking(story, agent)
  const path = `/runs/${run.id}`
  const partial = yield* asTimePasses(
    500,
    partialOf(story, run),
    (text) => (text ?? "").split(" ").length >= 5
  )
  return { agent, run, path, partial }
})

/** Gives a run to a worker that has died; its lease is over for so many seconds. */
const giveToDead = (story: Story, run: Json, attempt: number, seconds: number) =>
  ask(
    story.access,
    `update kb.agent_runs set attempt_token = gen_random_uuid(), worker_id = 'dead', attempt = $2,
       lease_expires_at = now() - make_interval(secs => $3) where id = $1`,
    [run.id, attempt, seconds]
  )

/** Counts every time that a run's row is given a text that is not complete. */
const countPartials = (story: Story) =>
  Effect.forEach(
    [
      "create table public.partials (run_id uuid, length integer)",
      "grant insert on public.partials to public",
      `create function public.note_partial() returns trigger language plpgsql as $$
       begin insert into public.partials values (new.id, length(new.partial_text)); return new; end $$`,
      `create trigger note_partial after update on kb.agent_runs for each row
       when (new.partial_text is distinct from old.partial_text and new.partial_text is not null)
       execute function public.note_partial()`
    ],
    (statement) => ask(story.access, statement)
  )

layer(SharedServer.layer)((it) => {
  describe("Requirement: Agent Run Lifecycle Tracking", () => {
    it.effect(
      "S002-R16, R17 Scenario: Cancelled execution: status cancelled, and the summary is what it had said so far",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { partial, path, run } = yield* speaking(story)
          const cancelled = yield* story.post(`${path}/cancel`)
          expect(cancelled).toMatchObject({ status: "cancelled", completedAt: expect.any(String) })
          expect(cancelled.summary.startsWith(partial)).toBe(true)
          expect(longText.startsWith(cancelled.summary)).toBe(true)
          expect(firstOf(yield* runLog(story, run), "AgentTurnInterruptedEvent")).toMatchObject({
            reason: "cancelled",
            partialText: cancelled.summary
          })
        })
    )

    it.effect(
      "S002-R17 what an earlier step had said is the summary where the present one said nothing yet",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const calls = [{ tool: "create_object", arguments: { type: "Note", properties: {} } }]
          const model = scripted([
            { when: "step == 0", say: "First a note.", calls },
            { say: "Then more.", latencyMs: 600_000 }
          ])
          const agent = yield* story.post("/agents", reader({}, { ...unhurried, model }))
          const run = yield* beginAsking(story, agent)
          yield* eventually(runLog(story, run), (log) =>
            log.some(({ type }) => type === "ToolCallCompletedEvent")
          )
          expect(yield* story.post(`/runs/${run.id}/cancel`)).toMatchObject({
            status: "cancelled",
            summary: "First a note."
          })
        })
    )

    it.effect("S002-R17 a run that has said nothing has no summary, also where another spoke before it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newContext(story, "talk")
        yield* addEvent(story, "talk", "One")
        yield* logWith(story, "talk", "AgentTurnCompletedEvent")
        yield* quietLog(story, "talk")
        yield* story.patch(`/agents/${agent.id}`, { model: scripted([{ say: "Two.", latencyMs: 600_000 }]) })
        yield* addEvent(story, "talk", "Two")
        yield* logWith(story, "talk", "AgentTurnStartedEvent", 2)
        const [run] = (yield* story.get("/runs?status=running")).items
        expect(yield* story.post(`/runs/${run.id}/cancel`)).toMatchObject({
          status: "cancelled",
          summary: null
        })
      })
    )

    it.effect(
      "S002-R13, R14, R15 an answer that breaks off fails the run, and what was said of it is kept",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const fault = { kind: "cut", message: "The line went dead" }
          const model = scripted([{ say: longText, tokensPerSecond: 2, fault }])
          const agent = yield* story.post("/agents", reader({}, { ...unhurried, model }))
          const run = yield* beginAsking(story, agent)
          const failed = yield* asTimePasses(1_000, story.get(`/runs/${run.id}`), hasEnded)
          expect(failed).toMatchObject({
            status: "failed",
            errorMessage: expect.stringContaining("The line went dead"),
            durationMs: expect.any(Number)
          })
          expect(longText.startsWith(failed.summary)).toBe(true)
          expect(failed.summary.length).toBeGreaterThan(100)
        })
    )
  })

  describe("A run whose worker is gone for good", () => {
    it.effect("keeps what it had said when its attempts are spent", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { partial, path, run } = yield* speaking(story)
        yield* giveToDead(story, run, runLimits.maxAttempts, 1)
        const failed = yield* asTimePasses(500, story.get(path), hasEnded)
        expect(failed).toMatchObject({ status: "failed", errorMessage: expect.any(String) })
        expect(failed.summary.startsWith(partial)).toBe(true)
      })
    )

    it.effect("keeps what its last step had said where the present one said nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const calls = [{ tool: "create_object", arguments: { type: "Note", properties: {} } }]
        const model = scripted([
          { when: "step == 0", say: "First a note.", calls },
          { say: "Then more.", latencyMs: 600_000 }
        ])
        const agent = yield* story.post("/agents", reader({}, { ...unhurried, model }))
        const run = yield* beginAsking(story, agent)
        yield* eventually(runLog(story, run), (log) =>
          log.some(({ type }) => type === "ToolCallCompletedEvent")
        )
        yield* giveToDead(story, run, runLimits.maxAttempts, 1)
        expect(yield* asTimePasses(500, story.get(`/runs/${run.id}`), hasEnded)).toMatchObject({
          status: "failed",
          summary: "First a note."
        })
      })
    )
  })

  describe("A run that another worker took over", () => {
    it.effect(
      "has said nothing until its new attempt does: what a crash broke off is not told as its own",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const model = scripted([{ say: longText, latencyMs: 60_000, tokensPerSecond: 2 }])
          const { path, run } = yield* speaking(story, { model })
          yield* giveToDead(story, run, 1, 1)
          yield* asTimePasses(
            500,
            runLog(story, run),
            (log) => log.filter(({ type }) => type === "AgentTurnStartedEvent").length === 2
          )
          expect(yield* story.post(`${path}/cancel`)).toMatchObject({ status: "cancelled", summary: null })
          const ends = (yield* runLog(story, run)).filter(({ type }) => type === "AgentTurnInterruptedEvent")
          expect(ends).toMatchObject([{ reason: "crash" }, { reason: "cancelled" }])
          expect(ends[1]).not.toHaveProperty("partialText")
        })
    )
  })

  describe("A run that rests before it asks its model again", () => {
    it.effect("has no summary but what its log tells, though an answer had been broken off", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const quick = scripted([{ say: "Hello." }])
        const agent = yield* story.post("/agents", reader({}, { ...unhurried, model: quick }))
        yield* story.post(`/agents/${agent.id}/trigger`, {})
        yield* story.patch(`/agents/${agent.id}`, {
          model: scripted([{ say: longText, tokensPerSecond: 1 }])
        })
        const run = yield* beginAsking(story, agent)
        yield* asTimePasses(500, partialOf(story, run), (text) => (text ?? "") !== "")
        // The answer is broken off and kept in the row; before it is asked for again, the agent's day is spent.
        yield* story.ask("PUT", "/kill-switch", { stopped: true, reason: "A rehearsal" })
        yield* story.patch(`/agents/${agent.id}`, { budget: { perDay: { maxTokens: 1 } } })
        yield* story.ask("PUT", "/kill-switch", { stopped: false })
        const rested = yield* eventually(
          story.get(`/runs/${run.id}`),
          ({ pauseReason }) => pauseReason === "budget"
        )
        expect(rested).toMatchObject({ status: "paused", summary: null })
        expect(firstOf(yield* runLog(story, run), "AgentTurnInterruptedEvent")).not.toHaveProperty(
          "partialText"
        )
        expect(yield* partialOf(story, run)).toBeNull()
      })
    )
  })

  describe("The text of an answer that still comes", () => {
    it.effect("is kept with its first piece, then at most twice a second, and not once it is complete", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* countPartials(story)
        const text = Array.from({ length: 40 }, (_, index) => `p${index}`).join(" ")
        const slow = yield* story.post(
          "/agents",
          reader({}, { ...unhurried, name: "slow", model: scripted([{ say: text, tokensPerSecond: 10 }]) })
        )
        const run = yield* beginAsking(story, slow)
        yield* asTimePasses(100, partialOf(story, run), (found) => found !== null)
        yield* asTimePasses(100, story.get(`/runs/${run.id}`), hasEnded)
        const rows = yield* ask(
          story.access,
          "select length from public.partials where run_id = $1 order by length",
          [run.id]
        )
        const lengths = rows.map(([length]) => Number(length))
        expect(lengths[0]).toBe(2)
        // Forty words of which one comes each tenth of a second.
        expect([lengths.length >= 4, lengths.length <= 11]).toEqual([true, true])
        expect(
          yield* ask(story.access, "select partial_text from kb.agent_runs where id = $1", [run.id])
        ).toEqual([[null]])

        const quick = yield* story.post(
          "/agents",
          reader({}, { ...unhurried, name: "quick", model: scripted([{ say: text }]) })
        )
        const { id } = yield* story.post(`/agents/${quick.id}/trigger`, {})
        expect(
          yield* ask(story.access, "select length from public.partials where run_id = $1", [id])
        ).toEqual([])
        yield* ask(story.access, "drop trigger note_partial on kb.agent_runs")
      })
    )
  })
})
