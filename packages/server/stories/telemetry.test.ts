/**
 * Whoever watches the server sees what agents do: spans of the GenAI conventions, and figures.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Collector, type CollectedSpan, startCollector } from "../testing/collector.ts"
import { calls, modelKey, refuses, says, wiredAgent, wiredStory, wireModel } from "../testing/model-words.ts"
import { ask, holding, lockOf } from "../testing/owner-rows.ts"
import { eventually, newStory, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { parsePrometheus, sumOf } from "../testing/prometheus.ts"
import { feedOf, make, watcher } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

/** Waits for so many spans of agents: those of requests come between them. */
const collected = (collector: Collector, count: number) =>
  eventually(
    Effect.sync(() => collector.spans().filter(({ kind }) => kind !== 2)),
    (spans) => spans.length >= count
  )

const named = (spans: ReadonlyArray<CollectedSpan>, name: string) =>
  spans.filter((span) => span.name === name)

const toCollector = (collector: Collector) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=garden,x-key=a%20b",
  OTEL_SERVICE_NAME: "tropism-story",
  OTEL_BSP_SCHEDULE_DELAY: "40"
})

const helper = { ...wiredAgent, prompt: "Say the secret word: plumbago." }

describe("OpenTelemetry", () => {
  it.live("a collector of protobuf receives protobuf", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const collector = yield* startCollector
        const { story } = yield* wiredStory([says("Plumbago.")], {
          ...toCollector(collector),
          OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
          OTEL_METRIC_EXPORT_INTERVAL: "40"
        })
        const agent = yield* story.post("/agents", helper)
        yield* story.post(`/agents/${agent.id}/trigger`)
        const sentTo = (path: string, text: string) =>
          eventually(
            Effect.sync(() =>
              collector.texts.findIndex((sent, at) => collector.paths[at] === path && sent.includes(text))
            ),
            (at) => at >= 0
          )
        const spans = yield* sentTo("/v1/traces", "invoke_agent helper")
        const metrics = yield* sentTo("/v1/metrics", "tropism_")
        for (const at of [spans, metrics])
          expect(collector.headers[at]?.["content-type"]).toBe("application/x-protobuf")
      })
    )
  )

  it.live("S004-R59, R61 a collector receives the spans of a run, its requests and its tool call", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const collector = yield* startCollector
        const { story } = yield* wiredStory(
          [
            refuses(503, `Try later, ${modelKey}`),
            calls({
              id: "c1",
              tool: "create_object",
              arguments: { type: "Note", properties: { word: "plumbago" } }
            }),
            says("It is plumbago."),
            says("The child's answer."),
            says("Another.")
          ],
          toCollector(collector)
        )
        const agent = yield* story.post("/agents", helper)
        const run = yield* story.post(`/agents/${agent.id}/trigger`)
        const own = yield* collected(collector, 5)
        const [root] = named(own, "invoke_agent helper")
        expect(named(own, "chat wire-1")).toHaveLength(3)
        expect(root).toMatchObject({
          traceId: run.id.replaceAll("-", ""),
          parentId: undefined,
          kind: 1,
          status: 1,
          attributes: {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.id": agent.id,
            "gen_ai.agent.name": "helper",
            "gen_ai.agent.version": "1",
            "gen_ai.conversation.id": run.contextName,
            "gen_ai.usage.input_tokens": 22,
            "gen_ai.usage.output_tokens": 14,
            "tropism.run.id": run.id,
            "tropism.run.status": "completed"
          }
        })
        const [failed, answered] = named(own, "chat wire-1")
        expect(failed).toMatchObject({
          traceId: root?.traceId,
          parentId: root?.id,
          kind: 3,
          status: 2,
          attributes: { "gen_ai.operation.name": "chat", "error.type": "unavailable" }
        })
        expect(answered).toMatchObject({
          parentId: root?.id,
          status: 1,
          attributes: {
            "gen_ai.provider.name": "openai-compatible",
            "gen_ai.request.model": "wire-1",
            "gen_ai.request.temperature": 0.25,
            "gen_ai.request.max_tokens": 77,
            "gen_ai.response.model": "wire-1",
            "gen_ai.response.finish_reasons": ["tool-calls"],
            "gen_ai.usage.input_tokens": 11,
            "gen_ai.usage.output_tokens": 7
          }
        })
        const [tool] = named(own, "execute_tool create_object")
        expect(tool).toMatchObject({
          traceId: root?.traceId,
          parentId: root?.id,
          kind: 1,
          status: 1,
          attributes: {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "create_object",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.type": "function"
          }
        })
        expect(new Set(own.map((span) => span.id)).size).toBe(own.length)
        expect(collector.resource()).toMatchObject({ "service.name": "tropism-story" })
        expect(new Set(collector.paths)).toEqual(new Set(["/v1/traces"]))
        expect(collector.headers[0]).toMatchObject({ "x-tenant": "garden", "x-key": "a b" })
        // Neither a key nor a word of what was said leaves the server by itself.
        for (const word of [modelKey, story.token, "plumbago", "secret word"])
          expect(collector.texts.join("\n")).not.toContain(word)
      })
    )
  )

  it.live("a run that a tool call spawned lies under that call, in the same trace", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const collector = yield* startCollector
        const { story } = yield* wiredStory(
          [
            calls({ id: "s1", tool: "spawn_agent", arguments: { agent: "helper", task: "Help." } }),
            says("Helped."),
            says("All done.")
          ],
          toCollector(collector)
        )
        yield* story.post("/agents", helper)
        const lead = yield* story.post("/agents", {
          ...helper,
          name: "lead",
          tools: ["run.*"],
          subAgents: ["helper"]
        })
        yield* story.post(`/agents/${lead.id}/trigger`)
        const spans = yield* collected(collector, 7)
        const [spawning] = named(spans, "execute_tool spawn_agent")
        const [child] = named(spans, "invoke_agent helper")
        // It rests while it waits, and goes on in an attempt of its own.
        const attempts = named(spans, "invoke_agent lead")
        expect(attempts.map((span) => span.parentId)).toEqual([undefined, undefined])
        expect(attempts.map((span) => span.id)).toContain(spawning?.parentId)
        expect(child).toMatchObject({
          parentId: spawning?.id,
          attributes: { "tropism.run.trigger": "agent" }
        })
        expect(named(spans, "chat wire-1").filter((span) => span.parentId === child?.id)).toHaveLength(1)
        expect(new Set(spans.map((span) => span.traceId)).size).toBe(1)
        expect(new Set(spans.map((span) => span.id)).size).toBe(spans.length)
      })
    )
  )

  it.live("prompts, answers and results stand in spans only where the operator asks for them", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const collector = yield* startCollector
        const { story } = yield* wiredStory(
          [calls({ id: "c1", tool: "search_objects", arguments: { type: "Note" } }), says("It is plumbago.")],
          { ...toCollector(collector), OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true" }
        )
        const agent = yield* story.post("/agents", helper)
        yield* story.post(`/agents/${agent.id}/trigger`)
        const spans = yield* collected(collector, 4)
        const [, last] = named(spans, "chat wire-1")
        expect(last?.attributes["gen_ai.input.messages"]).toContain("Say the secret word: plumbago.")
        expect(JSON.parse(last?.attributes["gen_ai.output.messages"])).toEqual([
          { role: "assistant", parts: [{ type: "text", content: "It is plumbago." }] }
        ])
        const [tool] = named(spans, "execute_tool search_objects")
        expect(JSON.parse(tool?.attributes["gen_ai.tool.call.arguments"])).toEqual({ type: "Note" })
        expect(JSON.parse(tool?.attributes["gen_ai.tool.call.result"])).toMatchObject({})
        expect(collector.texts.join("\n")).not.toContain(modelKey)
      })
    )
  )

  it.live("a run that fails and a call that is refused say so", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const collector = yield* startCollector
        const { story } = yield* wiredStory(
          [calls({ id: "c1", tool: "drop_table", arguments: {} }), refuses(400, "No more")],
          toCollector(collector)
        )
        const agent = yield* story.post("/agents", helper)
        yield* story.post(`/agents/${agent.id}/trigger`)
        const spans = yield* collected(collector, 4)
        expect(named(spans, "execute_tool drop_table")).toMatchObject([
          { status: 2, attributes: { "error.type": "refused", "tropism.tool.status": "refused" } }
        ])
        expect(named(spans, "invoke_agent helper")).toMatchObject([
          { status: 2, attributes: { "tropism.run.status": "failed", "error.type": "failed" } }
        ])
      })
    )
  )
})

describe("Metrics", () => {
  const scrape = (story: Story) =>
    Effect.map(story.send("GET", "/metrics"), (answer) => {
      expect(answer.status).toBe(200)
      expect(answer.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/)
      return parsePrometheus(answer.body)
    })

  it.live("a scrape after a run counts the run, its requests, tokens, money and tool calls", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { story } = yield* wiredStory([
          refuses(503, "Later"),
          calls(
            { id: "c1", tool: "create_object", arguments: { type: "Note", properties: {} } },
            { id: "c2", tool: "invented_tool_of_the_model", arguments: {} }
          ),
          says("Done.")
        ])
        const before = yield* scrape(story)
        expect(sumOf(before, "tropism_runs_total")).toBe(0)
        const price = { inputPerMillion: 1_000, outputPerMillion: 10_000 }
        const agent = yield* story.post("/agents", { ...helper, model: { ...wireModel, price } })
        const run = yield* story.post(`/agents/${agent.id}/trigger`)
        const after = yield* scrape(story)
        expect(sumOf(after, "tropism_runs_total")).toBe(1)
        expect(sumOf(after, "tropism_runs_total", { status: "completed", trigger: "manual" })).toBe(1)
        const wire = { provider: "openai-compatible", model: "wire-1" }
        expect(sumOf(after, "tropism_model_requests_total", { ...wire, outcome: "answered" })).toBe(2)
        expect(sumOf(after, "tropism_model_requests_total", { ...wire, outcome: "unavailable" })).toBe(1)
        expect(sumOf(after, "tropism_model_tokens_total", { ...wire, direction: "input" })).toBe(22)
        expect(sumOf(after, "tropism_model_tokens_total", { ...wire, direction: "output" })).toBe(14)
        expect(sumOf(after, "tropism_model_cost_dollars_total", wire)).toBeCloseTo(run.costUsd, 9)
        expect(sumOf(after, "tropism_tool_calls_total", { tool: "create_object", status: "completed" })).toBe(
          1
        )
        // What a model invents is no label: there would be no end of them.
        expect(sumOf(after, "tropism_tool_calls_total", { tool: "unknown", status: "refused" })).toBe(1)
        const durations = after.get("tropism_run_duration_seconds")?.samples
        expect(durations?.get('tropism_run_duration_seconds_count{status="completed"}')).toBe(1)
        expect(durations?.get('tropism_run_duration_seconds_sum{status="completed"}')).toBeCloseTo(
          run.durationMs / 1_000,
          2
        )
        expect(after.get("tropism_leases")?.type).toBe("gauge")
        expect(sumOf(after, "tropism_queued_runs")).toBe(0)
        expect(sumOf(after, "tropism_database_connections")).toBeGreaterThan(0)
      })
    )
  )

  it.live(
    "a scrape tells what waits: queued runs, whose wait a kill switch excuses, and leases alive or not",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const story = yield* newStory
          const agent = yield* story.post("/agents", { ...helper, model: null })
          const stopped = yield* story.ask("PUT", "/kill-switch", { stopped: true, reason: "To look" })
          expect(stopped.status).toBe(200)
          // No sweep lets these runs follow the switch before they are counted.
          yield* holding(story.access, lockOf("switches"))
          const row = (id: string, status: string, age: string, lease: string) =>
            `('01990000-0000-7000-8000-0000000000${id}', $1, $2, 1, '${status}', '{"type": "manual"}', '${id}', 0, now() - interval '${age}', 'w', ${lease})`
          yield* ask(
            story.access,
            `insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, trigger, context_name, depth, created_at, worker_id, lease_expires_at)
           values ${row("a1", "running", "1 minute", "now() + interval '1 hour'")},
             ${row("a2", "running", "1 minute", "now() - interval '1 hour'")},
             ${row("a3", "queued", "1 hour", "null")}, ${row("a4", "queued", "1 minute", "null")},
             ${row("a5", "skipped", "1 day", "null")}`,
            [story.projectId, agent.id]
          )
          const seen = yield* scrape(story)
          expect(sumOf(seen, "tropism_leases", { state: "live" })).toBe(1)
          expect(sumOf(seen, "tropism_leases", { state: "lapsed" })).toBe(1)
          expect(sumOf(seen, "tropism_queued_runs")).toBe(2)
          expect(sumOf(seen, "tropism_oldest_queued_run_seconds")).toBe(0)
        })
      )
  )

  it.live("a scrape tells why runs rest, and how many events wait for a run", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const story = yield* newStory
        const agent = yield* story.post("/agents", watcher())
        yield* story.ask("PUT", "/kill-switch", { stopped: true, reason: "To look" })
        yield* ask(
          story.access,
          `insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, pause_reason, trigger, context_name, depth)
           select gen_random_uuid(), $1, $2, 1, 'paused', reason, '{"type": "manual"}', 'run-' || place, 0
           from unnest(array['question', 'subAgents', 'subAgents', 'stepLimit']) with ordinality as resting(reason, place)`,
          [story.projectId, agent.id]
        )
        yield* make(story, "Person")
        yield* feedOf(story, 1)
        const seen = yield* scrape(story)
        expect(sumOf(seen, "tropism_waiting_runs", { reason: "question" })).toBe(1)
        expect(sumOf(seen, "tropism_waiting_runs", { reason: "subAgents" })).toBe(2)
        expect(sumOf(seen, "tropism_waiting_runs", { reason: "stepLimit" })).toBe(1)
        expect(sumOf(seen, "tropism_waiting_runs")).toBe(4)
        // What came in while all was stopped has been told to its agent.
        expect(sumOf(seen, "tropism_waiting_entries")).toBe(1)
        expect(sumOf(seen, "tropism_undispatched_events")).toBe(0)
      })
    )
  )

  it.live("answers 401 without a token", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const story = yield* newStory
        expectProblem(yield* story.send("GET", "/metrics", undefined, { authorization: "" }), 401)
        expectProblem(
          yield* story.send("GET", "/metrics", undefined, { authorization: "Bearer nobody" }),
          401
        )
      })
    )
  )

  it.live("answers 403 to a token that does not reach every project", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const story = yield* newStory
        const inside = yield* asUser(story, "admin", [story.projectId])
        expect((yield* inside.ask("GET", "/objects")).status).toBe(200)
        expectProblem(yield* inside.send("GET", "/metrics"), 403)
      })
    )
  )
})
