/**
 * What the page reads, as query options: the key, the call, and how often it is read again.
 *
 * Every key begins with its project, so a wake-up of one project leaves the
 * others alone. Lists refresh by themselves as well: the feed is only a bell.
 */
import { isTodo, type Task } from "@tropism/domain/task"
import { queryOptions } from "@tanstack/react-query"
import { Effect } from "effect"
import { limits } from "../limits.ts"
import { isMissing } from "./problem.ts"
import * as server from "./request.ts"
import { isHere, principalKey } from "./whose.ts"

/** Who one is and may do what: a role is changed by others, and no feed tells of it. */
export const principalQuery = queryOptions({
  queryKey: principalKey,
  queryFn: ({ client, signal }) =>
    Effect.runPromise(server.readPrincipal, { signal }).then((me) => isHere(client, me)),
  refetchInterval: (query) =>
    query.state.status === "error" ? limits.refreshIntervalMs : limits.principalIntervalMs
})

export const projectsQuery = queryOptions({
  queryKey: ["projects"],
  queryFn: ({ signal }) => Effect.runPromise(server.readProjects, { signal }),
  refetchInterval: (query) => (query.state.data?.items.length === 0 ? limits.refreshIntervalMs : false)
})

/** The pending suggestions; `isWhole` is false when more wait than are listed. */
export interface PendingTasks {
  readonly tasks: ReadonlyArray<Task>
  readonly isWhole: boolean
}

export const pendingTasksKey = (projectId: string) => [projectId, "tasks", "pending"] as const

export const pendingTasksQuery = (projectId: string) =>
  queryOptions({
    queryKey: pendingTasksKey(projectId),
    queryFn: ({ signal }) => Effect.runPromise(readPending(projectId), { signal }),
    refetchInterval: (query) =>
      (query.state.data?.tasks.length ?? 0) > limits.tasksPerPage
        ? limits.longListRefreshIntervalMs
        : limits.refreshIntervalMs
  })

const readPending = Effect.fnUntraced(function* (projectId: string) {
  const tasks: Array<Task> = []
  let cursor: string | undefined
  for (let page = 0; page < limits.maxTaskPages; page++) {
    const { items, nextCursor } = yield* server.readTasks(projectId, {
      status: "pending",
      limit: limits.tasksPerPage,
      cursor
    })
    tasks.push(...items)
    if (nextCursor === null) return { tasks, isWhole: true } satisfies PendingTasks
    cursor = nextCursor
  }
  return { tasks, isWhole: false } satisfies PendingTasks
})

/** One task, decided or not: for a link to a suggestion that waits no more. */
export const taskQuery = (projectId: string, taskId: string) =>
  queryOptions({
    queryKey: [projectId, "tasks", taskId],
    queryFn: ({ signal }) => Effect.runPromise(server.readTask(projectId, taskId), { signal })
  })

/** The task of a number, `t` before it for a todo; null where there is none. */
export const numberedTaskQuery = (projectId: string, name: string) =>
  queryOptions({
    queryKey: [projectId, "tasks", "numbered", name],
    queryFn: ({ signal }) =>
      Effect.runPromise(server.readTasksNumbered(projectId, Number(name.replace("t", ""))), { signal }).then(
        ({ items }) => items.find((task) => isTodo(task) === name.startsWith("t")) ?? null
      )
  })

export const recentRunsQuery = (projectId: string) =>
  queryOptions({
    queryKey: [projectId, "runs", "recent"],
    queryFn: ({ signal }) => Effect.runPromise(server.readRuns(projectId, limits.recentRuns), { signal }),
    refetchInterval: limits.refreshIntervalMs
  })

/** The runs at work now, the latest first. */
export const runsAtWorkQuery = (projectId: string) =>
  queryOptions({
    queryKey: [projectId, "runs", "at-work"],
    queryFn: ({ signal }) =>
      Effect.runPromise(server.readRuns(projectId, limits.countedRuns, "running"), { signal }),
    refetchInterval: limits.refreshIntervalMs
  })

/** An object as it is now; null when it is gone. */
export const objectQuery = (projectId: string, objectId: string) =>
  queryOptions({
    queryKey: [projectId, "object", objectId],
    queryFn: ({ signal }) =>
      Effect.runPromise(nullWhenMissing(server.readObject(projectId, objectId)), { signal })
  })

/** The versions of an object up to its present one; a version never changes, so they are read once. */
export const historyQuery = (projectId: string, objectId: string, currentVersion: number) =>
  queryOptions({
    queryKey: [projectId, "history", objectId, currentVersion],
    queryFn: ({ signal }) =>
      Effect.runPromise(server.readHistory(projectId, objectId, limits.historyPerPage), { signal }),
    staleTime: Infinity
  })

export const relationshipQuery = (projectId: string, relationshipId: string) =>
  queryOptions({
    queryKey: [projectId, "relationship", relationshipId],
    queryFn: ({ signal }) =>
      Effect.runPromise(nullWhenMissing(server.readRelationship(projectId, relationshipId)), { signal })
  })

const nullWhenMissing = <A, E>(read: Effect.Effect<A, E>): Effect.Effect<A | null, E> =>
  read.pipe(Effect.catchIf(isMissing, () => Effect.succeed(null)))
