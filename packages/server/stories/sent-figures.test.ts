/**
 * Whoever collects by OTLP is sent every figure that a scrape tells, and needs no scrape.
 */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type CollectedFigure, startCollector } from "../testing/collector.ts"
import { calls, says, wiredAgent, wiredStory } from "../testing/model-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually } from "../testing/platform.ts"
import { parsePrometheus } from "../testing/prometheus.ts"

/** The name under which a collector's exporter tells Prometheus of a figure, as its documentation says. */
const inPrometheus = (name: string, { kind, unit }: CollectedFigure): string => {
  const words: Readonly<Record<string, string>> = {
    s: "seconds",
    By: "bytes",
    "1": kind === "gauge" ? "ratio" : ""
  }
  const word = unit.startsWith("{") ? "" : (words[unit] ?? unit)
  const bare = name.replace(/_total$/, "")
  const withUnit = word === "" || bare.endsWith(`_${word}`) ? bare : `${bare}_${word}`
  return kind === "sum" ? `${withUnit}_total` : withUnit
}

const kinds: Readonly<Record<string, string>> = { counter: "sum", gauge: "gauge", histogram: "histogram" }

it.live("a collector receives the figures of a scrape, and gauges of the database as they change", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const collector = yield* startCollector
      const { story } = yield* wiredStory(
        [
          calls({ id: "c1", tool: "create_object", arguments: { type: "Note", properties: {} } }),
          says("Done.")
        ],
        {
          OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
          OTEL_EXPORTER_OTLP_METRICS_HEADERS: "x-tenant=figures",
          OTEL_TRACES_EXPORTER: "none",
          OTEL_METRIC_EXPORT_INTERVAL: "40"
        }
      )
      const agent = yield* story.post("/agents", wiredAgent)
      yield* story.post(`/agents/${agent.id}/trigger`)
      const sent = (name: string, attributes: Readonly<Record<string, string>> = {}) =>
        collector
          .figures()
          .get(name)
          ?.filter((figure) =>
            Object.entries(attributes).every(([key, value]) => figure.attributes[key] === value)
          )
          .reduce((sum, { value }) => sum + value, 0)
      const arrives = (name: string, attributes: Readonly<Record<string, string>>, value: number) =>
        eventually(
          Effect.sync(() => sent(name, attributes)),
          (now) => now === value
        )
      yield* arrives("tropism_runs_total", { status: "completed", trigger: "manual" }, 1)
      yield* arrives("tropism_model_requests_total", { outcome: "answered" }, 2)
      yield* arrives("tropism_tool_call_duration_seconds", { tool: "create_object" }, 1)

      // Nobody has scraped so far.
      yield* arrives("tropism_waiting_runs", { reason: "question" }, 0)
      yield* ask(
        story.access,
        `insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, pause_reason, trigger, context_name, depth)
         values (gen_random_uuid(), $1, $2, 1, 'paused', 'question', '{"type": "manual"}', 'run-q', 0)`,
        [story.projectId, agent.id]
      )
      yield* arrives("tropism_waiting_runs", { reason: "question" }, 1)

      const scrape = parsePrometheus((yield* story.send("GET", "/metrics")).body)
      const told = [...scrape].map(([name, { type }]) => `${name} ${kinds[type]}`)
      yield* eventually(
        Effect.sync(() => {
          const collected = new Set(
            [...collector.figures()].map(([name, [first]]) => `${name} ${first?.kind}`)
          )
          return told.filter((figure) => !collected.has(figure))
        }),
        (missing) => missing.length === 0
      )
      expect(told.length).toBeGreaterThan(20)
      const renamed = [...collector.figures()].filter(
        ([name, [first]]) => first && inPrometheus(name, first) !== name
      )
      expect(renamed.map(([name]) => name)).toEqual([])
      expect(new Set(collector.paths)).toEqual(new Set(["/v1/metrics"]))
      expect(collector.headers[0]?.["x-tenant"]).toBe("figures")
      expect(collector.texts.join()).not.toContain(story.projectId)
      expect(collector.texts[0]).toContain('"stringValue":"tropism"')
    })
  )
)
