/**
 * A local OpenTelemetry collector: it takes what is sent by OTLP over HTTP in JSON, and keeps it.
 */
import { createServer, type IncomingHttpHeaders } from "node:http"
import { Effect, type Scope } from "effect"
import type { Json } from "./platform.ts"

export interface CollectedSpan {
  readonly traceId: string
  readonly id: string
  readonly parentId: string | undefined
  readonly name: string
  readonly kind: number
  readonly tookNanos: bigint
  readonly status: number
  readonly attributes: Readonly<Record<string, Json>>
}

export interface CollectedFigure {
  readonly kind: "sum" | "gauge" | "histogram"
  readonly unit: string
  readonly attributes: Readonly<Record<string, Json>>
  /** Of a histogram: how many were counted. */
  readonly value: number
}

export interface Collector {
  readonly url: string
  readonly paths: ReadonlyArray<string>
  readonly headers: ReadonlyArray<IncomingHttpHeaders>
  /** Everything that was sent, as it came. */
  readonly texts: ReadonlyArray<string>
  readonly spans: () => ReadonlyArray<CollectedSpan>
  /** The figures of the newest export, by name. */
  readonly figures: () => ReadonlyMap<string, ReadonlyArray<CollectedFigure>>
  /** Attributes of whoever sent. */
  readonly resource: () => Readonly<Record<string, Json>>
}

/** Starts a collector, until the scope ends. */
export const startCollector: Effect.Effect<Collector, never, Scope.Scope> = Effect.gen(function* () {
  const paths: Array<string> = []
  const headers: Array<IncomingHttpHeaders> = []
  const texts: Array<string> = []
  const server = createServer((request, response) => {
    const body: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => body.push(chunk))
    request.on("end", () => {
      paths.push(request.url ?? "")
      headers.push(request.headers)
      texts.push(Buffer.concat(body).toString("utf8"))
      response.writeHead(200, { "content-type": "application/json" }).end("{}")
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )
  const address = server.address()
  const sent = (): ReadonlyArray<Json> => texts.flatMap((text) => JSON.parse(text).resourceSpans ?? [])
  return {
    url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
    paths,
    headers,
    texts,
    figures: () => figuresOf(texts.map((text) => JSON.parse(text).resourceMetrics).findLast(Boolean) ?? []),
    resource: () => valuesOf(sent()[0]?.resource.attributes ?? []),
    spans: () => sent().flatMap((each) => each.scopeSpans.flatMap((scope: Json) => scope.spans.map(toSpan)))
  }
})

const figuresOf = (resources: ReadonlyArray<Json>) => {
  const metrics: ReadonlyArray<Json> = resources.flatMap((each) =>
    each.scopeMetrics.flatMap((scope: Json) => scope.metrics)
  )
  return new Map(
    metrics.map((metric): [string, ReadonlyArray<CollectedFigure>] => [metric.name, toFigures(metric)])
  )
}

const kinds = ["sum", "gauge", "histogram"] as const

const toFigures = (metric: Json): ReadonlyArray<CollectedFigure> =>
  kinds.flatMap((kind) =>
    (metric[kind]?.dataPoints ?? []).map((point: Json) => ({
      kind,
      unit: metric.unit,
      attributes: valuesOf(point.attributes),
      value: Number(point.count ?? point.asInt ?? point.asDouble)
    }))
  )

const toSpan = (span: Json): CollectedSpan => ({
  traceId: span.traceId,
  id: span.spanId,
  parentId: span.parentSpanId,
  name: span.name,
  kind: span.kind,
  tookNanos: BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano),
  status: span.status.code,
  attributes: valuesOf(span.attributes)
})

const valuesOf = (attributes: ReadonlyArray<Json>): Readonly<Record<string, Json>> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]))

const valueOf = (value: Json): Json =>
  "arrayValue" in value ? value.arrayValue.values.map(valueOf) : Object.values(value)[0]
