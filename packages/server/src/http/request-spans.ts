/**
 * The span of a request, for whoever collects spans.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * It carries the id by which the request's answer and its lines of the log
 * speak of it. A caller that traces gives its own trace (W3C Trace Context),
 * which is told and decides nothing; else the trace follows from the request's id.
 */
import { Clock, Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { Ids } from "../ids.ts"
import { Spans, spanIdOf, traceIdOfText } from "../telemetry/spans.ts"
import type { Visit } from "./visit.ts"

export interface RequestSpan {
  readonly traceId: string
  /** Tells of the request, with the head of its answer. */
  readonly tell: (status: number) => Effect.Effect<void>
}

const traceparent = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}$/

/** Begins the span of a request; undefined while nobody collects any. */
export const makeRequestSpans = Effect.gen(function* () {
  const spans = yield* Spans
  const { next } = yield* Ids
  return Effect.fnUntraced(function* (visit: Visit) {
    if (!spans.isOn) return undefined
    const { headers, method } = yield* HttpServerRequest.HttpServerRequest
    const startMs = yield* Clock.currentTimeMillis
    const [, givenTrace, parentId = null] = traceparent.exec(headers["traceparent"] ?? "") ?? []
    const traceId = givenTrace ?? traceIdOfText(visit.id)
    const id = spanIdOf("request", yield* next)
    const tell = (status: number) =>
      Effect.map(Clock.currentTimeMillis, (endMs) =>
        spans.emit({
          traceId,
          id,
          parentId,
          name: visit.route === undefined ? method : `${method} ${visit.route}`,
          kind: "server",
          startMs,
          endMs,
          attributes: {
            "http.request.method": method,
            "http.route": visit.route,
            "http.response.status_code": status,
            "tropism.request.id": visit.id,
            "error.type": status >= 500 ? String(status) : undefined
          },
          error: status >= 500 ? `Answered with ${status}` : null
        })
      )
    const span: RequestSpan = { traceId, tell }
    return span
  })
})
