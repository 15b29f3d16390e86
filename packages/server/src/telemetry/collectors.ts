/**
 * Where spans and metrics go: a collector that takes OTLP over HTTP, in JSON or protobuf, as the standard OTEL_ variables name it.
 *
 * Without a variable there is no collector, and nothing is sent.
 */
import { Config, Effect, type Layer, Option, Schema } from "effect"
import { OtlpSerialization } from "effect/observability"

/** The encodings of OTLP over HTTP. */
export const protocols = ["http/json", "http/protobuf"] as const

const serializations = {
  "http/json": OtlpSerialization.layerJson,
  "http/protobuf": OtlpSerialization.layerProtobuf
}

/** What the environment says of a collector. */
export interface Collector {
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
