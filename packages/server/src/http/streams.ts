/**
 * Streams a log as server-sent events: everything after an id, then new events.
 *
 * Ids are the log's own numbers, so a client that reconnects with Last-Event-ID misses nothing and gets nothing twice; the start position
 * is sent as an id before any event. An id of another log is ignored. Without a position a stream begins with new events (S004-R04).
 */
import type { LogPlace } from "@tropism/api/page"
import { type ContextName, eventNumber } from "@tropism/domain/context-event"
import type { ProjectId, RunId } from "@tropism/domain/ids"
import type { LoggedJson } from "@tropism/domain/logged-event"
import { isTerminal } from "@tropism/domain/run"
import { Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { Contexts } from "../contexts/contexts.ts"
import { TextDeltas, makeDeltaOrder } from "../contexts/text-deltas.ts"
import { Database } from "../database/database.ts"
import { Runs } from "../runs/run-store.ts"
import { currentPermit } from "./access.ts"
import { LiveLogs, type LiveSource } from "./live-logs.ts"
import { pageByNumber } from "./paging.ts"

/** No proxy caches or buffers a stream, and a stopping server takes no further request on its connection. */
export const streamHeaders = {
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
  connection: "close"
}

/** Whether the client accepts an event stream: it names the type with a weight other than 0. */
export const wantsStream = Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) =>
  (headers["accept"] ?? "")
    .toLowerCase()
    .split(",")
    .map((range) => range.split(";").map((part) => part.trim()))
    .some(([type, ...parts]) => type === "text/event-stream" && !parts.some((part) => zeroWeight.test(part)))
)

const zeroWeight = /^q=0(?:\.0{0,3})?$/

/**
 * Streams a log after the last received event, otherwise after the given one.
 *
 * Last-Event-ID is the number that the stream sent as id, the event's id in the log, or the id of a later delta (`{name}:{n}.d{k}`). A
 * number beyond the log's end belongs to another log.
 */
export const sseResponse = Effect.fn("sseResponse")(function* (
  source: LiveSource,
  after: LogPlace | undefined
) {
  const logs = yield* LiveLogs
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const heard = yield* heardIn(source, headers["last-event-id"] ?? "")
  const place = heard ?? (after === undefined || after === "now" ? yield* source.end : pageStart(after))
  return HttpServerResponse.stream(logs.watch(source, place, yield* currentPermit(source.projectId)), {
    contentType: "text/event-stream",
    headers: streamHeaders
  })
})

/** The number after which a page begins. */
export const pageStart = (after: LogPlace = "start"): number =>
  after === "start" ? 0 : after === "now" ? Number.MAX_SAFE_INTEGER : after

const idPattern = /^(?:(?<name>[^:]+):)?(?<digits>\d{1,15})(?<piece>\.d\d{1,15})?$/

/** The number of the event with an id; undefined when this log has none. */
const heardIn = Effect.fnUntraced(function* (source: LiveSource, id: string) {
  const { digits, name, piece } = idPattern.exec(id)?.groups ?? {}
  if (digits === undefined || (piece !== undefined && name === undefined)) return undefined
  const number = Number(digits)
  if (number === 0) return name === undefined || name === source.name ? 0 : undefined
  const [event] = yield* source.read(number - 1, 1)
  if (event?.number !== number) return undefined
  // A fork shares events of its origin, which keep their ids.
  return name === undefined || name === source.name || `${name}:${digits}` === event.id ? number : undefined
})

// The log of a context as a page or a stream, for runs and conversations.

const numberOf = (event: LoggedJson): number => eventNumber(event.id)

/** The largest PostgreSQL int; there is nothing after it. */
const lastNumber = 2_147_483_647

const readLog = (name: ContextName, after: number, limit: number) =>
  Effect.flatMap(Contexts, (contexts) =>
    after < lastNumber ? contexts.read(name, after, limit) : Effect.succeed([])
  )

/** A page of a context's log, in order. */
export const logPage = (
  name: ContextName,
  query: {
    readonly cursor?: string | undefined
    readonly limit?: number | undefined
    readonly after?: LogPlace | undefined
  }
) => pageByNumber(query, numberOf, (cursor, limit) => readLog(name, cursor ?? pageStart(query.after), limit))

/** A context's log, live: stored events with numbers, deltas without; for a run, until the run has ended. */
export const liveLog = Effect.fnUntraced(function* (
  projectId: ProjectId,
  name: ContextName,
  after: LogPlace | undefined,
  runId: RunId | undefined
) {
  const database = yield* Database
  const contexts = yield* Contexts
  const words = yield* TextDeltas
  const runs = yield* Runs
  const pieces = makeDeltaOrder()
  const topic = `context:${projectId}/${name}` as const
  const log: LiveSource = {
    key: topic,
    projectId,
    topic,
    name,
    end: Effect.map(database.inProject(projectId, contexts.get(name)), (head) => head?.eventCount ?? 0),
    read: (from, limit) =>
      Effect.map(
        Effect.provideService(database.inProject(projectId, readLog(name, from, limit)), Contexts, contexts),
        (events) => {
          pieces.note(events)
          return events.map((event) => ({
            number: numberOf(event),
            id: event.id,
            name: event.type,
            json: event
          }))
        }
      ),
    passing: (show) =>
      words.watch(projectId, name, (delta) => {
        if (pieces.take(delta)) show({ number: undefined, id: delta.id, name: delta.type, json: delta })
      })
  }
  if (runId === undefined) return yield* sseResponse(log, after)
  const isOver = Effect.map(
    database.inProject(projectId, runs.get(runId)),
    (run) => run === undefined || isTerminal(run.status)
  )
  return yield* sseResponse({ ...log, key: `${topic} of run ${runId}`, isOver }, after)
})
