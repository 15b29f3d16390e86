/**
 * Which of the resources that somebody wants to watch are there for that person.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * What is missing, another project's or another person's is left out alike, and so
 * is what cannot be watched.
 */
import type { Principal } from "@tropism/api/authorization"
import type { ContextName } from "@tropism/domain/context-event"
import type { ObjectId, RunId, UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { mayRead } from "../http/owned.ts"
import { watchableAt } from "./resource-addresses.ts"
import type { Watched } from "./resource-readers.ts"

interface LogRow {
  readonly id: RunId
  readonly contextName: ContextName
  readonly owner: UserId | null
}

/** Answers those of the addresses at which there is something for the principal to watch. */
export const makeVisibleResources = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const objectsOf = Effect.fnUntraced(function* (ids: ReadonlyArray<ObjectId>, withDeleted: boolean) {
    if (ids.length === 0) return []
    const { projectId } = yield* ProjectTransaction
    return yield* sql<{ readonly id: ObjectId }>`
      select id from kb.graph_objects where project_id = ${projectId} and id = any(${ids}::uuid[])
        and (${withDeleted}::boolean or deleted_at is null)`
  }, orDie)

  const logsOf = Effect.fnUntraced(function* (ids: ReadonlyArray<RunId>) {
    if (ids.length === 0) return []
    const { projectId } = yield* ProjectTransaction
    return yield* sql<LogRow>`
      select run.id, run.context_name, context.owner from kb.agent_runs run
      join kb.contexts context on context.project_id = run.project_id and context.name = run.context_name
      where run.project_id = ${projectId} and run.id = any(${ids}::uuid[])`
  }, orDie)

  /** `withDeleted` keeps what was there once: that it was deleted is something to be told. */
  return Effect.fnUntraced(function* (
    principal: Principal,
    uris: ReadonlyArray<string>,
    withDeleted: boolean
  ) {
    const wanted = uris.flatMap((uri) => {
      const watchable = watchableAt(uri)
      return watchable === undefined ? [] : [{ uri, watchable }]
    })
    const objects = new Set(
      (yield* objectsOf(
        wanted.flatMap(({ watchable }) => (watchable.kind === "object" ? [watchable.id] : [])),
        withDeleted
      )).map(({ id }) => id)
    )
    const logs = new Map(
      (yield* logsOf(wanted.flatMap(({ watchable }) => (watchable.kind === "log" ? [watchable.id] : []))))
        .filter(({ owner }) => mayRead(principal, owner))
        .map(({ contextName, id }) => [id, contextName] as const)
    )
    const visible = new Map<string, Watched>()
    for (const { uri, watchable } of wanted) {
      if (watchable.kind === "object") {
        if (objects.has(watchable.id)) visible.set(uri, watchable)
        continue
      }
      const contextName = logs.get(watchable.id)
      if (contextName !== undefined) visible.set(uri, { kind: "log", contextName })
    }
    return visible
  })
})
