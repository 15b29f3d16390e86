/**
 * Sends finished spans to a collector.
 *
 * Off unless the environment names a collector; then a request, an attempt, a model request or a tool call costs one check. Ids derive from
 * a span's subject, so another server, or the same one after a crash, knows a span's parent without storing it. Callers decide which spans
 * exist.
 */
import { createHash } from "node:crypto"
import { Config, Context, Duration, Effect, Layer, Option, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpExporter, OtlpResource, OtlpSerialization } from "effect/observability"
import { telemetryLimits } from "../limits.ts"

export type SpanAttributes = Readonly<
  Record<string, string | number | boolean | ReadonlyArray<string> | null | undefined>
>

/** A finished span. */
export interface Span {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly id: string
  readonly parentId: string | null
  readonly name: string
  readonly kind: "internal" | "server" | "client"
  readonly startMs: number
  readonly endMs: number
  /** Null and undefined are omitted. */
  readonly attributes: SpanAttributes
  /** Why it failed; null when it did not. */
  readonly error: string | null
}

/** The environment's settings of the span collector. */
interface SpanCollector extends Collector {
  readonly exportIntervalMs: number
  readonly showContent: boolean
}

const settings = Effect.gen(function* () {
  const collector = yield* findCollector("traces")
  if (collector === undefined) return undefined
  const found: SpanCollector = {
    ...collector,
    exportIntervalMs: yield* Config.Int("OTEL_BSP_SCHEDULE_DELAY").pipe(
      Config.withDefault(telemetryLimits.exportIntervalMs)
    ),
    showContent: yield* Config.Boolean("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT").pipe(
      Config.withDefault(false)
    )
  }
  return found
})

export class Spans extends Context.Reference<{
  /** Whether spans are collected. */
  readonly isOn: boolean
  /** Whether spans may contain prompts, answers, arguments and results. */
  readonly showContent: boolean
  readonly emit: (span: Span) => void
}>("@tropism/server/telemetry/Spans", {
  defaultValue: () => ({ isOn: false, showContent: false, emit: () => undefined })
}) {
  /** Exports to the collector in the standard OTEL_ variables; without one no span is created. */
  static readonly layer = Layer.unwrap(
    Effect.map(settings, (found) => (found === undefined ? Layer.empty : exporting(found)))
  )
}

/** The id of a span, derived from its subject. */
export const spanIdOf = (...subject: ReadonlyArray<string | number>): string =>
  createHash("sha256").update(JSON.stringify(subject), "utf8").digest("hex").slice(0, 16)

/** The id of a row's trace: its UUID without dashes. */
export const traceIdOf = (uuid: string): string => uuid.replaceAll("-", "")

/** The id of the trace of a name without a UUID. */
export const traceIdOfText = (name: string): string =>
  createHash("sha256").update(name, "utf8").digest("hex").slice(0, 32)

const exporting = ({
  exportIntervalMs,
  headers,
  serialization: encoding,
  serviceName,
  showContent,
  url
}: SpanCollector) =>
  Layer.effect(
    Spans,
    Effect.gen(function* () {
      const serialization = yield* OtlpSerialization.OtlpSerialization
      const resource = yield* OtlpResource.fromConfig({ serviceName })
      const { push } = yield* OtlpExporter.make({
        label: "Tropism",
        url,
        headers,
        exportInterval: Duration.millis(exportIntervalMs),
        maxBatchSize: telemetryLimits.batchSpans,
        shutdownTimeout: Duration.millis(telemetryLimits.shutdownTimeoutMs),
        body: (spans) => [
          serialization.traces({
            resourceSpans: [{ resource, scopeSpans: [{ scope: { name: "tropism" }, spans }] }]
          }),
          Effect.void
        ]
      })
      return { isOn: true, showContent, emit: (span: Span) => push(toOtlp(span)) }
    })
  ).pipe(Layer.provide([OtlpExporter.layerFlusher, encoding, FetchHttpClient.layer]))

const toOtlp = ({ attributes, endMs, error, id, kind, name, parentId, startMs, traceId }: Span) => ({
  traceId,
  spanId: id,
  parentSpanId: parentId ?? undefined,
  name,
  kind: kinds[kind],
  startTimeUnixNano: nanosOf(startMs),
  endTimeUnixNano: nanosOf(endMs),
  attributes: OtlpResource.entriesToAttributes(
    Object.entries(attributes).filter(([, value]) => value !== null && value !== undefined)
  ),
  droppedAttributesCount: 0,
  events: [],
  droppedEventsCount: 0,
  status: error === null ? { code: 1 } : { code: 2, message: error },
  links: [],
  droppedLinksCount: 0
})

/** OTLP's numbers. */
const kinds = { internal: 1, server: 2, client: 3 } as const

const nanosOf = (ms: number): string => String(BigInt(Math.round(ms)) * 1_000_000n)

// The telemetry collector: OTLP over HTTP, in JSON or protobuf, configured by the standard OTEL_ variables.
//
// Without a variable there is no collector, and nothing is sent.

/** The encodings of OTLP over HTTP. */
export const protocols = ["http/json", "http/protobuf"] as const

const serializations = {
  "http/json": OtlpSerialization.layerJson,
  "http/protobuf": OtlpSerialization.layerProtobuf
}

/** The environment's settings of a collector. */
interface Collector {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly serviceName: string
  readonly serialization: Layer.Layer<OtlpSerialization.OtlpSerialization>
}

const namedHeaders = (name: string) => Config.Record(Schema.String, Schema.StringFromUriComponent, name)

const endpointOf = (signal: string) =>
  Config.URL(`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`).pipe(
    Config.map((url) => url.toString()),
    Config.orElse(() =>
      Config.URL("OTEL_EXPORTER_OTLP_ENDPOINT").pipe(
        Config.map((url) => `${url.toString().replace(/\/$/, "")}/v1/${signal}`)
      )
    )
  )

/** The collector of one kind of telemetry; undefined where there is none. */
export const findCollector = Effect.fnUntraced(function* (signal: "traces" | "metrics") {
  const isDisabled = yield* Config.Boolean("OTEL_SDK_DISABLED").pipe(Config.withDefault(false))
  const exporter = yield* Config.String(`OTEL_${signal.toUpperCase()}_EXPORTER`).pipe(
    Config.withDefault("otlp")
  )
  const url = yield* Config.option(endpointOf(signal))
  if (isDisabled || !exporter.split(",").includes("otlp") || Option.isNone(url)) return undefined
  const protocol = yield* Config.Literals(
    protocols,
    `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_PROTOCOL`
  ).pipe(
    Config.orElse(() => Config.Literals(protocols, "OTEL_EXPORTER_OTLP_PROTOCOL")),
    Config.withDefault("http/json" as const)
  )
  const found: Collector = {
    url: url.value,
    serialization: serializations[protocol],
    headers: yield* namedHeaders(`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_HEADERS`).pipe(
      Config.orElse(() => namedHeaders("OTEL_EXPORTER_OTLP_HEADERS")),
      Config.withDefault({})
    ),
    serviceName: yield* Config.String("OTEL_SERVICE_NAME").pipe(Config.withDefault("tropism"))
  }
  return found
})
