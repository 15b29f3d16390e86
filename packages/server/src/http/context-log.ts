/**
 * The log of a context as a page or as a stream, for runs and conversations alike.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { type ContextName, eventNumber } from "@tropism/domain/context-event"
import type { ProjectId, RunId } from "@tropism/domain/ids"
import { isTerminal } from "@tropism/domain/run"
import { Effect, Stream } from "effect"
import type { LoggedJson } from "../agent/appending.ts"
import { Contexts } from "../agent/contexts.ts"
import { Database } from "../database/database.ts"
import { Runs } from "../run/runs.ts"
import { pageByNumber } from "./paging.ts"
import { type SseEvent, sseResponse } from "./sse.ts"

const numberOf = (event: LoggedJson): number => eventNumber(event.id)

/** A page of a context's log, in order. */
export const logPage = (
  name: ContextName,
  query: {
    readonly cursor?: string | undefined
    readonly limit?: number | undefined
    readonly after?: number | undefined
  }
) =>
  Effect.flatMap(Contexts, (contexts) =>
    pageByNumber(query, numberOf, (cursor, limit) => contexts.read(name, cursor ?? query.after ?? 0, limit))
  )

/** A context's log, live: kept events with their numbers, pieces of text without. */
export const liveLog = Effect.fnUntraced(function* (
  projectId: ProjectId,
  name: ContextName,
  after: number,
  runId: RunId | undefined
) {
  const database = yield* Database
  const contexts = yield* Contexts
  const runs = yield* Runs
  const ephemeral = Stream.unwrap(
    Effect.map(contexts.deltas, (deltas) =>
      Stream.fromSubscription(deltas).pipe(
        Stream.filter((shown) => shown.projectId === projectId && shown.delta.agentName === name),
        Stream.map(({ delta }): SseEvent => ({ number: undefined, name: delta.type, json: delta }))
      )
    )
  )
  const isOver =
    runId === undefined
      ? Effect.succeed(false)
      : Effect.map(
          database.inProject(projectId, runs.get(runId)),
          (run) => run === undefined || isTerminal(run.status)
        )
  return yield* sseResponse(
    {
      topic: `context:${projectId}/${name}`,
      read: (from, limit) =>
        Effect.map(database.inProject(projectId, contexts.read(name, from, limit)), (events) =>
          events.map((event) => ({ number: numberOf(event), name: event.type, json: event }))
        ),
      isOver,
      ephemeral
    },
    after
  )
})
