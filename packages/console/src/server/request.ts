/**
 * Calls of the server: typed by the contract, signed in by the cookie, failing as problems.
 *
 * The console is served by the server it talks to, so answers are taken to be
 * what the contract says and are not decoded again. It retries nothing: lists
 * are read again anyway, and a decision is repeated by a person.
 */
import type { Page } from "@tropism/api/page"
import type { Me, Project } from "@tropism/api/system-api"
import type { GraphObject, ObjectVersion, Relationship } from "@tropism/domain/graph"
import type { Run, RunStatus } from "@tropism/domain/run"
import type { QuestionTask, SuggestionTask, Task, TaskStatus } from "@tropism/domain/task"
import { Effect } from "effect"
import { limits } from "../limits.ts"
import { Problem, type ProblemDocument, Unreachable } from "./problem.ts"

export type Failure = Problem | Unreachable

interface Request {
  readonly method?: "POST" | "PUT" | "PATCH" | "DELETE"
  /** Sent as JSON. */
  readonly body?: unknown
  /** The version that was shown: the server refuses when there is another one by now. */
  readonly ifMatch?: string | number
  /** Names the press of a button: sent twice with the same key it is done once. */
  readonly idempotencyKey?: string
}

/** Sends one request and reads its JSON answer; an answer without a body is null, and one that does not come in time is none. */
export const call = <A>(path: string, request: Request = {}): Effect.Effect<A, Failure> =>
  Effect.timeoutOrElse(answered<A>(path, request), {
    duration: limits.requestTimeoutMs,
    orElse: () =>
      Effect.fail(new Unreachable({ cause: "No response in time", isOpen: request.method !== undefined }))
  })

const answered = Effect.fnUntraced(function* <A>(path: string, request: Request) {
  const { method, body, ifMatch, idempotencyKey } = request
  const isOpen = method !== undefined
  const response = yield* answerOf(path, {
    headers: {
      accept: "application/json",
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(ifMatch !== undefined && { "if-match": `"${ifMatch}"` }),
      ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey })
    },
    ...(method && { method }),
    ...(body !== undefined && { body: JSON.stringify(body) })
  }).pipe(Effect.mapError(({ cause }) => new Unreachable({ cause, isOpen })))
  if (!response.ok)
    return yield* new Problem({ status: response.status, document: yield* documentOf(response) })
  return yield* Effect.tryPromise({
    try: (): Promise<A> => response.text().then((text) => JSON.parse(text === "" ? "null" : text)),
    catch: (cause) => new Unreachable({ cause, isOpen })
  })
})

/** A request that is answered with nothing. */
const post = (path: string, headers: Readonly<Record<string, string>>): Effect.Effect<void, Failure> =>
  answerOf(path, { method: "POST", headers }).pipe(
    Effect.andThen((response) =>
      response.ok ? Effect.void : Effect.fail(new Problem({ status: response.status, document: {} }))
    )
  )

/** The response as it comes, for what is not JSON: the feed and the sign-in. */
export const answerOf = (path: string, init: RequestInit): Effect.Effect<Response, Unreachable> =>
  Effect.tryPromise({
    try: (signal) => fetch(path, { credentials: "same-origin", ...init, signal }),
    catch: (cause) => new Unreachable({ cause })
  })

/** A body that is no problem document is a proxy's; the status alone then has to do. */
export const documentOf = (response: Response): Effect.Effect<ProblemDocument> =>
  Effect.tryPromise((): Promise<ProblemDocument | null> => response.json()).pipe(
    Effect.map((document) => document ?? {}),
    Effect.orElseSucceed((): ProblemDocument => ({}))
  )

export type Parameters = Readonly<Record<string, string | number | undefined>>

/** The parameters of an address, those that are undefined left out. */
export const queryText = (parameters: Parameters): string => {
  const entries = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]]
  )
  return entries.length === 0 ? "" : `?${new URLSearchParams(entries)}`
}

/** An address of the API below a project; what stands in `rest` is encoded already. */
export const inProject = (projectId: string, rest: string): string =>
  `/api/projects/${encodeURIComponent(projectId)}/${rest}`

export const readPrincipal: Effect.Effect<Me, Failure> = call("/api/me")

export const readProjects: Effect.Effect<Page<Project>, Failure> = call(
  `/api/projects${queryText({ limit: 200 })}`
)

export const readTasks = (
  projectId: string,
  parameters: { readonly status: TaskStatus; readonly limit: number; readonly cursor?: string | undefined }
): Effect.Effect<Page<Task>, Failure> => call(inProject(projectId, `tasks${queryText(parameters)}`))

export const readTask = (projectId: string, taskId: string): Effect.Effect<Task, Failure> =>
  call(inProject(projectId, `tasks/${encodeURIComponent(taskId)}`))

export const readTasksNumbered = (projectId: string, number: number): Effect.Effect<Page<Task>, Failure> =>
  call(inProject(projectId, `tasks${queryText({ number })}`))

/** The latest runs, of one state or of all. */
export const readRuns = (
  projectId: string,
  limit: number,
  status?: RunStatus
): Effect.Effect<Page<Run>, Failure> => call(inProject(projectId, `runs${queryText({ limit, status })}`))

export const readRun = (projectId: string, runId: string): Effect.Effect<Run, Failure> =>
  call(inProject(projectId, `runs/${encodeURIComponent(runId)}`))

export const readObject = (projectId: string, objectId: string): Effect.Effect<GraphObject, Failure> =>
  call(inProject(projectId, `objects/${encodeURIComponent(objectId)}`))

export const readHistory = (
  projectId: string,
  objectId: string,
  limit: number
): Effect.Effect<Page<ObjectVersion>, Failure> =>
  call(inProject(projectId, `objects/${encodeURIComponent(objectId)}/history${queryText({ limit })}`))

export const readRelationship = (
  projectId: string,
  relationshipId: string
): Effect.Effect<Relationship, Failure> =>
  call(inProject(projectId, `relationships/${encodeURIComponent(relationshipId)}`))

/** Approves exactly what was shown: the digest binds the decision to that payload. */
export const approve = (projectId: string, task: SuggestionTask): Effect.Effect<SuggestionTask, Failure> =>
  call(inProject(projectId, `tasks/${encodeURIComponent(task.id)}/approve`), {
    method: "POST",
    body: { digest: task.digest }
  })

export const reject = (
  projectId: string,
  task: SuggestionTask,
  reason: string
): Effect.Effect<SuggestionTask, Failure> =>
  call(inProject(projectId, `tasks/${encodeURIComponent(task.id)}/reject`), {
    method: "POST",
    body: { digest: task.digest, ...(reason !== "" && { reason }) }
  })

/** How a task that is told in a line is settled. */
export type Settlement = "complete" | "approve" | "reject"

/** Settles a task; where it has a payload, an approval is bound to what was shown. */
export const settle = (projectId: string, task: Task, how: Settlement): Effect.Effect<Task, Failure> =>
  call(inProject(projectId, `tasks/${encodeURIComponent(task.id)}/${how}`), {
    method: "POST",
    body: how === "approve" && "digest" in task ? { digest: task.digest } : {}
  })

/** Answers the very question that was shown, and no later one of its run. */
export const answer = (projectId: string, task: QuestionTask, text: string): Effect.Effect<Run, Failure> =>
  call(inProject(projectId, `runs/${encodeURIComponent(task.runId)}/answer`), {
    method: "POST",
    body: { answer: text, taskId: task.id }
  })

/** Trades a token for the cookie; it travels in a header, so that no log and no history keeps it. */
export const signIn = (token: string): Effect.Effect<void, Failure> =>
  post("/login", { authorization: `Bearer ${token}` })

export const signOut: Effect.Effect<void, Failure> = post("/logout", {})
