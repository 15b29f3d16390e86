/**
 * Counters and gauges of this process, for Prometheus.
 *
 * They start at zero with the process, as Prometheus expects. **Invariant**: labels are bounded: a label from a definition, such as a
 * model's name, has a limited number of values, and the rest share one.
 */
import { monitorEventLoopDelay } from "node:perf_hooks"
import type { Usage } from "@tropism/domain/run"
import { Effect, Metric, Config, Duration, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpMetrics, OtlpSerialization } from "effect/observability"
import { telemetryLimits } from "../limits.ts"
import { findCollector } from "./tracing.ts"

const seconds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600]

const runsEnded = Metric.counter("tropism_runs_total", {
  description: "Runs that came to rest here, by the state that they came to and what woke them."
})
const runSeconds = Metric.histogram("tropism_run_duration_seconds", {
  description: "From the first claim of a run to its rest.",
  boundaries: seconds
})
const modelRequests = Metric.counter("tropism_model_requests_total", {
  description: "Tries of model requests, by how they ended."
})
const modelSeconds = Metric.histogram("tropism_model_request_duration_seconds", {
  description: "From the start of a try to its end.",
  boundaries: seconds
})
const openRequests = Metric.gauge("tropism_model_requests_in_flight", {
  description: "Model requests that this server has open."
})
const queuedRequests = Metric.gauge("tropism_model_requests_waiting", {
  description: "Model requests that wait on this server until fewer are open."
})
const requestLimit = Metric.gauge("tropism_model_concurrency_limit", {
  description:
    "Model requests that this server may have open: fewer after a provider refused them as too many."
})
const tokens = Metric.counter("tropism_model_tokens_total", {
  description: "Tokens read and written by models."
})
const cachedTokens = Metric.counter("tropism_model_cached_input_tokens_total", {
  description: "Those of the tokens that models read which their providers had in a cache."
})
const dollars = Metric.counter("tropism_model_cost_dollars_total", {
  description: "Dollars of model requests whose price is known."
})
const toolCalls = Metric.counter("tropism_tool_calls_total", {
  description: "Tool calls, by how they ended."
})
const toolSeconds = Metric.histogram("tropism_tool_call_duration_seconds", {
  description: "From the start of a tool call to its outcome.",
  boundaries: seconds
})

const reactionSeconds = Metric.histogram("tropism_reaction_lag_seconds", {
  description: "From the write that woke an agent to the claim of its run.",
  boundaries: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
})
const takenOver = Metric.counter("tropism_leases_taken_over_total", {
  description: "Runs that this server took over because their worker had gone silent."
})
const sweptAt = Metric.gauge("tropism_sweep_last_success_seconds", {
  description: "When this server last finished a sweep, or began to sweep, in seconds since 1970."
})
const loopFaults = Metric.counter("tropism_loop_faults_total", {
  description:
    "Rounds of what this server does by itself that broke for another reason than an absent database."
})

const rateLimited = Metric.counter("tropism_rate_limited_requests_total", {
  description: "Requests that were refused because their token, or their address, asked too often."
})

const requests = Metric.counter("tropism_http_requests_total", {
  description: "Requests that were answered, by the route of the contract that they took."
})
const requestSeconds = Metric.histogram("tropism_http_request_duration_seconds", {
  description: "From the head of a request to the head of its answer.",
  boundaries: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
})

/** Bounds the values of a label. */
const makeLabel = () => {
  const known = new Set<string>()
  return (value: string): string => {
    if (known.has(value)) return value
    if (known.size >= telemetryLimits.labelValues) return "other"
    known.add(value)
    return value
  }
}

const modelLabel = makeLabel()
const toolLabel = makeLabel()
const loopLabel = makeLabel()

const add = (metric: Metric.Counter<number>, attributes: Record<string, string>, by = 1) =>
  Metric.update(Metric.withAttributes(metric, attributes), by)

const observe = (metric: Metric.Histogram<number>, attributes: Record<string, string>, ms: number) =>
  Metric.update(Metric.withAttributes(metric, attributes), ms / 1_000)

/** Counts a run that has paused or ended; `ms` is null for one that was never claimed. */
export const countRun = (status: string, trigger: string, ms: number | null): Effect.Effect<void> =>
  Effect.andThen(
    add(runsEnded, { status, trigger }),
    ms === null ? Effect.void : observe(runSeconds, { status }, ms)
  )

/** Counts one attempt of a model request; `outcome` is `answered` or the failure. */
export const countModelTry = (
  model: { readonly provider: string; readonly name: string },
  outcome: string,
  ms: number
): Effect.Effect<void> => {
  const labels = { provider: model.provider, model: modelLabel(model.name) }
  return Effect.andThen(
    add(modelRequests, { ...labels, outcome }),
    observe(modelSeconds, { provider: model.provider }, ms)
  )
}

/** Open and queued requests of one model. */
interface RequestCounts {
  readonly provider: string
  readonly name: string
  readonly inFlight: number
  readonly waiting: number
  readonly limit: number
}

/** Models used since the start, by their labels. */
const askedModels = new Map<string, { readonly provider: string; readonly model: string }>()

/** Creates a model's series of open and queued requests; an idle model keeps them at zero. */
export const knowModel = (provider: string, name: string): void => {
  const model = modelLabel(name)
  askedModels.set(`${provider}:${model}`, { provider, model })
}

/** Updates the requests of each model; one without requests has zeros and the full limit. */
export const updateModelRequestMetrics = (
  models: ReadonlyArray<RequestCounts>,
  wholeLimit: number
): Effect.Effect<void> => {
  const counted = models.map((model) => ({
    ...model,
    labels: { provider: model.provider, model: modelLabel(model.name) }
  }))
  return Effect.forEach(
    askedModels.values(),
    (labels) => {
      const of = counted.filter(
        (each) => each.labels.model === labels.model && each.labels.provider === labels.provider
      )
      const sum = (key: "inFlight" | "waiting" | "limit") => of.reduce((all, each) => all + each[key], 0)
      return Effect.all([
        Metric.update(Metric.withAttributes(openRequests, labels), sum("inFlight")),
        Metric.update(Metric.withAttributes(queuedRequests, labels), sum("waiting")),
        Metric.update(
          Metric.withAttributes(requestLimit, labels),
          of.length === 0 ? wholeLimit : sum("limit")
        )
      ])
    },
    { discard: true }
  )
}

/** Counts an answer's usage. */
export const countUse = (
  model: { readonly provider: string; readonly name: string },
  use: Usage & { readonly costUsd: number }
): Effect.Effect<void> => {
  const labels = { provider: model.provider, model: modelLabel(model.name) }
  return Effect.andThen(
    Effect.all([
      add(tokens, { ...labels, direction: "input" }, use.inputTokens),
      add(tokens, { ...labels, direction: "output" }, use.outputTokens),
      add(cachedTokens, labels, use.cachedInputTokens ?? 0)
    ]),
    add(dollars, labels, use.costUsd)
  )
}

/** Records how long a write waited for the run that reacts to it. */
export const countReaction = (ms: number): Effect.Effect<void> =>
  observe(reactionSeconds, {}, Math.max(0, ms))

/** Counts runs that were taken over; zero creates the series. */
export const countTakenOver = (runs: number): Effect.Effect<void> => add(takenOver, {}, runs)

/** Records that a sweep has finished, or is about to start. */
export const noteSweep = (sweep: string, nowMs: number): Effect.Effect<void> =>
  Metric.update(Metric.withAttributes(sweptAt, { sweep }), nowMs / 1_000)

/** Counts faults of a loop; zero creates the series. */
export const countLoopFaults = (loop: string, faults: number): Effect.Effect<void> =>
  add(loopFaults, { loop: loopLabel(loop) }, faults)

/** The methods with their own label value: a client may invent others. */
const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])

/** Counts an answered request; one without a route is `none`. */
export const countRequest = (
  method: string,
  route: string | undefined,
  status: number,
  ms: number
): Effect.Effect<void> => {
  const labels = { route: route ?? "none" }
  return Effect.andThen(
    add(requests, { ...labels, method: methods.has(method) ? method : "other", status: String(status) }),
    observe(requestSeconds, labels, ms)
  )
}

/** Counts a request refused by a rate limit. */
export const countRateLimited = (policy: string): Effect.Effect<void> => add(rateLimited, { policy })

/** Counts a tool call; a tool that the agent does not have is `unknown`. */
export const countToolCall = (tool: string, status: string, ms: number): Effect.Effect<void> => {
  const labels = { tool: toolLabel(tool) }
  return Effect.andThen(add(toolCalls, { ...labels, status }), observe(toolSeconds, labels, ms))
}

// Sends metrics to an OTLP collector, beside the Prometheus endpoint.
//
// Nothing is read or sent unless the environment names a collector. It sends the same metrics as a scrape, under the same names, with units
// that keep a name unchanged on its way to Prometheus. A missing collector costs only metrics.

const settings = Effect.gen(function* () {
  const collector = yield* findCollector("metrics")
  if (collector === undefined) return undefined
  return {
    ...collector,
    intervalMs: yield* Config.Int("OTEL_METRIC_EXPORT_INTERVAL").pipe(
      Config.withDefault(telemetryLimits.figuresIntervalMs)
    ),
    temporality: yield* Config.Literals(
      ["cumulative", "delta"],
      "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
    ).pipe(Config.withDefault("cumulative" as const))
  }
})

/**
 * The unit of a metric, derived from its name.
 *
 * Converters from OpenTelemetry to Prometheus append units to names (its "Compatibility" specification, and the collector's
 * `translator/prometheus` package): `s` and `By` add nothing to a name with that suffix, a unit in braces adds nothing to any, and `1`, the
 * default, appends `_ratio` to each gauge.
 */
const unitOf = (name: string): string =>
  /_seconds(_total)?$/.test(name) ? "s" : /_bytes(_total)?$/.test(name) ? "By" : "{figure}"

/** Adds units to the metrics that are sent. */
const withUnits = Layer.effect(
  OtlpSerialization.OtlpSerialization,
  Effect.map(OtlpSerialization.OtlpSerialization, (encoding) => ({
    ...encoding,
    metrics: (data: OtlpMetrics.MetricsData) => {
      for (const { scopeMetrics } of data.resourceMetrics)
        for (const { metrics } of scopeMetrics)
          for (const metric of metrics) metric.unit = unitOf(metric.name)
      return encoding.metrics(data)
    }
  }))
)

/** Sends metrics until the scope ends; `tell` updates the gauges. */
export const exportMetrics = Effect.fnUntraced(function* <R>(tell: Effect.Effect<void, never, R>) {
  const found = yield* settings
  if (found === undefined) return
  const { headers, intervalMs, serialization, serviceName, temporality, url } = found
  yield* tell
  yield* Layer.build(
    OtlpMetrics.layer({
      url,
      headers,
      resource: { serviceName },
      exportInterval: Duration.millis(intervalMs),
      shutdownTimeout: Duration.millis(telemetryLimits.shutdownTimeoutMs),
      temporality
    }).pipe(Layer.provide([Layer.provide(withUnits, serialization), FetchHttpClient.layer]))
  )
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(intervalMs), tell)))
})

// Metrics of the process: memory and event loop lag.
//
// The lag is the longest since the last scrape, so one long pause appears in the next scrape only.

const resident = Metric.gauge("process_resident_memory_bytes", {
  description: "Memory that this program holds, without its database."
})
const lag = Metric.gauge("tropism_event_loop_lag_seconds", {
  description: "The longest pause of this program's event loop since it was told last."
})

const delay = monitorEventLoopDelay({ resolution: telemetryLimits.lagResolutionMs })

/** Updates the metrics; the lag is measured from the first scrape on. */
export const updateProcessMetrics: Effect.Effect<void> = Effect.suspend(() => {
  const lagSeconds = delay.enable() ? 0 : delay.max / 1e9
  delay.reset()
  return Effect.andThen(Metric.update(resident, process.memoryUsage.rss()), Metric.update(lag, lagSeconds))
})
