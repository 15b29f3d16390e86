/**
 * The log of a context as a page or as a stream, for runs and conversations alike.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import type { LogPlace } from "@tropism/api/page"
import { type ContextName, eventNumber } from "@tropism/domain/context-event"
import type { ProjectId, RunId } from "@tropism/domain/ids"
import { isTerminal } from "@tropism/domain/run"
import { Effect } from "effect"
import type { LoggedJson } from "@tropism/domain/logged-event"
import { Contexts } from "../agent/contexts.ts"
import { PassingWords } from "../agent/passing-words.ts"
import { makePieceOrder } from "../agent/piece-order.ts"
import { Database } from "../database/database.ts"
import { Runs } from "../run/runs.ts"
import type { LiveSource } from "./live-logs.ts"
import { pageByNumber } from "./paging.ts"
import { pageStart, sseResponse } from "./sse.ts"

const numberOf = (event: LoggedJson): number => eventNumber(event.id)

/** PostgreSQL counts no further in an int; a place beyond it has nothing behind it. */
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

/** A context's log, live: kept events with their numbers, pieces of text without; of a run's, until the run has ended. */
export const liveLog = Effect.fnUntraced(function* (
  projectId: ProjectId,
  name: ContextName,
  after: LogPlace | undefined,
  runId: RunId | undefined
) {
  const database = yield* Database
  const contexts = yield* Contexts
  const words = yield* PassingWords
  const runs = yield* Runs
  const pieces = makePieceOrder()
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
