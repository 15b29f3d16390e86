/**
 * Models that send what nobody can keep: the run copes or fails in a sentence, and its log can be read.
 */
import { createHash } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { modelLimits, runLimits } from "../src/limits.ts"
import { chatChunk, chatEnd, events, type FakeAnswer, toEvent } from "../testing/fake-model-server.ts"
import { dumpLimits } from "../src/database/limits.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { answering, newProviderStory } from "../testing/provider-story.ts"
import { logOfRun } from "../testing/question-words.ts"
import { asTimePasses } from "../testing/shared-server.ts"
import { callsOf } from "../testing/story-words.ts"
import { begin } from "../testing/time-words.ts"
import { naming } from "../testing/naming.ts"

/** Says a text in these pieces, to its end. */
const saying = (
  pieces: ReadonlyArray<string>,
  end: ReadonlyArray<unknown> = chatEnd("stop")
): FakeAnswer => ({
  kind: "stream",
  chunks: [...pieces.map((content) => chatChunk({ content })), ...end].map(toEvent),
  ending: "end"
})

/** An id of 7,040 characters that no compression makes shorter than an index can hold. */
const incompressible = (seed: number): string =>
  Array.from({ length: 80 }, (_, n) => createHash("sha512").update(`${seed} ${n}`).digest("base64")).join("")

const finished = (story: Story, run: Json) =>
  eventually(story.get(`/runs/${run.id}`), ({ completedAt }) => completedAt !== null)

describe("An answer that nobody can keep", () => {
  it.effect("is broken off at a bound where it is too long: the run fails, and its log can be read", () =>
    Effect.gen(function* () {
      const piece = "word ".repeat(20_000)
      const { agent, provider, story } = yield* newProviderStory([
        {
          kind: "stream",
          chunks: Array.from({ length: 11 }, () => toEvent(chatChunk({ content: piece }))),
          ending: "hang"
        }
      ])
      const run = yield* finished(story, yield* story.post(`/agents/${agent.id}/trigger`))
      expect(run).toMatchObject({
        status: "failed",
        errorMessage: expect.stringContaining(String(modelLimits.answerMaxChars))
      })
      yield* Deferred.await(provider.hungUp)
      expect(provider.requests).toHaveLength(1)
      expect(JSON.stringify(yield* logOfRun(story, run)).length).toBeLessThan(200_000)
    })
  )

  it.effect("is refused where it asks for too many calls: none of them is made", () =>
    Effect.gen(function* () {
      const { agent, story } = yield* newProviderStory(
        [
          {
            kind: "stream",
            chunks: [
              ...Array.from({ length: modelLimits.answerMaxCalls + 1 }, (_, index) =>
                chatChunk({
                  tool_calls: [
                    {
                      index,
                      id: `c${index}`,
                      type: "function",
                      function: { name: "create_object", arguments: '{"type":"Thing","properties":{}}' }
                    }
                  ]
                })
              ),
              ...chatEnd("tool_calls")
            ].map(toEvent),
            ending: "end"
          }
        ],
        { executionMode: "execute" }
      )
      const run = yield* finished(story, yield* story.post(`/agents/${agent.id}/trigger`))
      expect(run).toMatchObject({
        status: "failed",
        errorMessage: expect.stringContaining(String(modelLimits.answerMaxCalls))
      })
      expect((yield* story.get("/objects?type=Thing")).items).toEqual([])
    })
  )

  it.effect(
    "is kept with U+FFFD where a character cannot be, and a character in two pieces stays whole",
    () =>
      Effect.gen(function* () {
        const { agent, provider, story } = yield* newProviderStory([
          saying(["a\u0000b ", "c\ud800d ", "smile \ud83d", "\ude00 end\ud83d"])
        ])
        const run = yield* finished(story, yield* story.post(`/agents/${agent.id}/trigger`))
        expect(run).toMatchObject({
          status: "completed",
          summary: "a\uFFFDb c\uFFFDd smile \u{1F600} end\uFFFD"
        })
        expect(provider.requests).toHaveLength(1)
      })
  )

  it.effect("is kept with stand-ins for the ids of calls that no index can hold, each its own", () =>
    Effect.gen(function* () {
      const ids = [incompressible(1), incompressible(2)]
      const search = (index: number) => ({ name: "search_objects", arguments: `{"type":"Thing${index}"}` })
      const { agent, provider, story } = yield* newProviderStory([
        events(
          chatChunk({
            tool_calls: ids.map((id, index) => ({ index, id, type: "function", function: search(index) }))
          }),
          ...chatEnd("tool_calls")
        ),
        answering("Done.")
      ])
      const run = yield* finished(story, yield* begin(story, agent))
      expect(run).toMatchObject({ status: "completed", attempt: 1, summary: "Done." })
      const calls = yield* callsOf(story, run)
      expect(calls.map(({ status }) => status)).toEqual(["completed", "completed"])
      const [first, second] = calls.map(({ callId }) => callId)
      expect([first, second]).toEqual(Array(2).fill(expect.stringMatching(/^[A-Za-z0-9]{9}$/)))
      expect(second).not.toBe(first)
      // The model reads the outcomes under the ids by which it is shown its calls.
      const { messages } = Object(provider.requests[1]?.body)
      expect(messages.flatMap((message: Json) => message.tool_calls ?? []).map(({ id }: Json) => id)).toEqual(
        messages.flatMap((message: Json) => message.tool_call_id ?? [])
      )
      expect(JSON.stringify(messages)).toContain(first)
      expect(yield* story.get("/verify")).toMatchObject({ differences: [] })
    })
  )

  it.effect("in a log of an earlier version may have such an id: its run can be ended all the same", () =>
    Effect.gen(function* () {
      const { agent, story } = yield* newProviderStory(
        [
          events(
            chatChunk({
              tool_calls: [
                {
                  index: 0,
                  id: "short",
                  type: "function",
                  function: { name: "ask_user", arguments: '{"question":"Which?"}' }
                }
              ]
            }),
            ...chatEnd("tool_calls")
          )
        ],
        { tools: ["run.ask_user"] }
      )
      const { id } = yield* begin(story, agent)
      yield* eventually(story.get(`/runs/${id}`), ({ status }) => status === "paused")
      const long = incompressible(1)
      yield* ask(
        story.access,
        `update kb.context_events set payload = replace(payload::text, '"short"', $2)::jsonb where project_id = $1`,
        [story.projectId, JSON.stringify(long)]
      )
      yield* story.post(`/runs/${id}/cancel`)
      const run = yield* story.get(`/runs/${id}`)
      expect(run.status).toBe("cancelled")
      expect(yield* logOfRun(story, run)).toContainEqual(
        expect.objectContaining({ type: "ToolCallFailedEvent", callId: long })
      )
    })
  )

  it.effect("is cut in a list between two characters, whatever people see as one", () =>
    Effect.gen(function* () {
      const fits = "a".repeat(runLimits.listedSummaryMaxChars - 3)
      for (const whole of ["👩‍👩‍👧", "👍🏽", "e\u0301\u0301\u0301"]) {
        const { agent, story } = yield* newProviderStory([saying([`${fits}${whole} and more`])])
        const run = yield* finished(story, yield* story.post(`/agents/${agent.id}/trigger`))
        const [{ summary }] = (yield* story.get("/runs")).items
        expect([whole, run.summary]).toEqual([whole, `${fits}${whole} and more`])
        expect([whole, summary.startsWith(`${fits}… (cut: `)]).toEqual([whole, true])
      }
    })
  )

  it.effect("is kept with estimated counts where its usage is beyond any column", () =>
    Effect.gen(function* () {
      const usage = { prompt_tokens: 3_000_000_000, completion_tokens: 1e15, total_tokens: 1e15 }
      const end = chatEnd("stop").map((chunk) =>
        typeof chunk === "object" && chunk !== null && "usage" in chunk ? { ...chunk, usage } : chunk
      )
      const { agent, provider, story } = yield* newProviderStory([saying(["Hello."], end)])
      const run = yield* finished(story, yield* story.post(`/agents/${agent.id}/trigger`))
      expect(run).toMatchObject({
        status: "completed",
        summary: "Hello."
      })
      for (const count of [run.usage.inputTokens, run.usage.outputTokens]) {
        expect(count).toBeGreaterThan(0)
        expect(count).toBeLessThan(10_000)
      }
      expect(provider.requests).toHaveLength(1)
      expect((yield* story.get(`/runs/${run.id}/model-calls`)).items).toMatchObject([
        { status: "answered", usage: run.usage, isUsageEstimated: true }
      ])
    })
  )
})

/** Lets PostgreSQL refuse every step of runs, from now on with this SQLSTATE. */
const refuseSteps = (story: Story, code: string) =>
  Effect.forEach(
    [
      `create or replace function public.refuse_step() returns trigger language plpgsql as $$
       begin raise exception 'the count is out of range' using errcode = '${code}'; end $$`,
      `create or replace trigger refuse_step before update on kb.agent_runs for each row
       when (new.step_count > old.step_count) execute function public.refuse_step()`
    ],
    (statement) => ask(story.access, statement)
  )

describe("A run whose database refuses what it writes", () => {
  it.effect("fails at its first attempt where it would be refused for ever, and says so", () =>
    Effect.gen(function* () {
      const { agent, provider, story } = yield* newProviderStory([answering("Hello.")])
      for (const [index, code] of ["22003", "23514", "42703", "54000"].entries()) {
        yield* refuseSteps(story, code)
        const run = yield* finished(story, yield* story.post(`/agents/${agent.id}/trigger`))
        expect(run).toMatchObject({
          status: "failed",
          attempt: 1,
          errorMessage: expect.stringContaining("the count is out of range")
        })
        expect(provider.requests).toHaveLength(index + 1)
        const log = yield* logOfRun(story, run)
        expect(log.map(({ type }) => type)).toContain("AgentTurnFailedEvent")
      }
    })
  )

  it.effect(
    "is tried again where that may pass, and says in the end what broke it and not that its worker died",
    () =>
      Effect.gen(function* () {
        const { agent, story } = yield* newProviderStory([answering("Hello.")])
        for (const code of ["53200", "57014", "08006", "23505"]) {
          yield* refuseSteps(story, code)
          const { id } = yield* begin(story, agent)
          // A code by which PostgreSQL says that it is away is waited for, half a minute in each attempt.
          const seen = story.get(`/runs/${id}`)
          const run = yield* asTimePasses(500, seen, ({ completedAt }) => completedAt !== null)
          expect(run).toMatchObject({
            status: "failed",
            attempt: runLimits.maxAttempts,
            errorMessage: naming(runLimits.maxAttempts, "the count is out of range")
          })
        }
      })
  )
})

describe("A row that is too large to be read", () => {
  it.effect("is a fault of the server, and not of a database that is away", () =>
    Effect.gen(function* () {
      const { agent, story } = yield* newProviderStory([answering("Hello.")])
      const run = yield* finished(story, yield* story.post(`/agents/${agent.id}/trigger`))
      yield* ask(story.access, "update kb.agent_runs set summary = repeat('x', $2) where id = $1", [
        run.id,
        dumpLimits.messageMaxBytes
      ])
      expectProblem(yield* story.ask("GET", `/runs/${run.id}`), 500)
    })
  )
})
