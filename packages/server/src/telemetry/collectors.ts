/**
 * Where spans and figures go: a collector that takes OTLP over HTTP in JSON, as the standard OTEL_ variables name it.
 *
 * Without a variable there is no collector, and nothing is sent.
 */
import { Config, Effect, Option, Schema } from "effect"

/** What the environment says of a collector. */
export interface Collector {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly serviceName: string
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
  const found: Collector = {
    url: url.value,
    headers: yield* namedHeaders(`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_HEADERS`).pipe(
      Config.orElse(() => namedHeaders("OTEL_EXPORTER_OTLP_HEADERS")),
      Config.withDefault({})
    ),
    serviceName: yield* Config.String("OTEL_SERVICE_NAME").pipe(Config.withDefault("tropism"))
  }
  return found
})
