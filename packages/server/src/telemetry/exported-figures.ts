/**
 * Figures on their way to whoever collects them by OTLP, beside those who scrape.
 *
 * A seam: nothing is read or sent unless the environment names a collector.
 * What is sent is what a scrape tells, under the same names, and with a unit
 * that a name keeps on its way to Prometheus; a collector that is gone costs
 * figures and nothing else.
 */
import { Config, Duration, Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpMetrics, OtlpSerialization } from "effect/observability"
import { telemetryLimits } from "../limits.ts"
import { findCollector } from "./collectors.ts"

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
 * The unit of a figure, which its name says.
 *
 * **Details** Whoever makes Prometheus' names of OpenTelemetry's appends units to them (its "Compatibility" specification, and the
 * `translator/prometheus` package of the collector): `s` and `By` add nothing to a name that ends so, what stands in braces adds
 * nothing to any, and `1`, which figures have that say no unit, makes `_ratio` of each gauge.
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

/** Sends figures until the scope ends; `tell` brings up to date what is not counted as it happens. */
export const exportFigures = Effect.fnUntraced(function* <R>(tell: Effect.Effect<void, never, R>) {
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
