/**
 * Reads, answers and cancels runs as MCP tasks.
 *
 * The run is the only state of a task, so a task survives its connection, client and server. An answer does what the other endpoints do:
 * answer a question, decide a suggestion by its digest, resume a paused run. Each answer is its own transaction.
 */
import { CurrentPrincipal, type Principal } from "@tropism/api/authorization"
import type { Page } from "@tropism/api/page"
import { Conflict, type Forbidden, type InvalidInput, type NotFound } from "@tropism/api/problems"
import { AnswerInput } from "@tropism/api/runs-api"
import { Rejection } from "@tropism/api/tasks-api"
import type { RunId, TaskId, UserId } from "@tropism/domain/ids"
import { isTerminal, type Run } from "@tropism/domain/run"
import { schemaFaults } from "@tropism/domain/schema-faults"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { BroughtContexts, Conversations } from "../chat/conversations.ts"
import { Contexts } from "../contexts/contexts.ts"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { inProject, reading, readableRun, spokenRun, mayRead } from "../http/access.ts"
import { pageById } from "../http/paging.ts"
import { answerProblem, invalid, keepable } from "../http/problems.ts"
import { approving, rejecting } from "../http/review-routes.ts"
import { Resumptions } from "../reactions/manual-retries.ts"
import { QuestionTasks } from "../review/questions.ts"
import { Tasks } from "../review/tasks.ts"
import { RunCancellation } from "../runs/cancellation.ts"
import { Answers } from "../runs/questions.ts"
import { Runs } from "../runs/run-store.ts"
import { Descendants } from "../runs/sub-runs.ts"
import { Projects } from "../tenancy/projects.ts"
import { Denials } from "../tools/denials.ts"
import {
  DeclinedInputs,
  type Asked,
  askedBy,
  type DetailedTask,
  keyOf,
  taskOf,
  taskBounds,
  type TaskCaller,
  termsOf,
  keysOf,
  type ListedTask,
  listedTaskOf
} from "./run-task.ts"

/** A person's answer to one input request. */
export const InputResponse = Schema.Struct({
  action: Schema.Literals(["accept", "decline", "cancel"]),
  content: Schema.optional(Schema.NullOr(Schema.Record(Schema.String, Schema.Json)))
})
export type InputResponse = typeof InputResponse.Type

type Problem = Conflict | Forbidden | InvalidInput | NotFound

export class RunTasks extends Context.Service<
  RunTasks,
  {
    /** A run as its caller sees it. */
    readonly get: (caller: TaskCaller, runId: RunId) => Effect.Effect<DetailedTask, NotFound>
    /** The summaries of those of these runs that the caller can see. */
    readonly glance: (
      caller: TaskCaller,
      runIds: ReadonlyArray<RunId>
    ) => Effect.Effect<ReadonlyArray<Glance>, NotFound>
    /** A page of the runs that the caller can see, newest first. */
    readonly list: (
      caller: TaskCaller,
      cursor: string | undefined
    ) => Effect.Effect<Page<Glance>, InvalidInput | NotFound>
    /** Applies answers; an answer to a request that is not open has no effect. */
    readonly answer: (
      caller: TaskCaller,
      runId: RunId,
      responses: Readonly<Record<string, InputResponse>>
    ) => Effect.Effect<void, Problem>
    /** Cancels a run and all runs below it; a finished one stays as it is. */
    readonly cancel: (caller: TaskCaller, runId: RunId) => Effect.Effect<void, Problem>
  }
>()("@tropism/server/mcp/RunTasks") {
  static readonly layer = Layer.effect(
    RunTasks,
    Effect.gen(function* () {
      const services = yield* Effect.context<
        BroughtContexts | Contexts | Conversations | Database | Denials | Projects | Runs | Tasks
      >()
      const tasks = yield* Tasks
      const questions = yield* QuestionTasks
      const answers = yield* Answers
      const resumptions = yield* Resumptions
      const endings = yield* RunCancellation
      const descendants = yield* Descendants
      const declined = yield* DeclinedInputs
      const runs = yield* Runs
      const glanceAt = yield* makeGlancing

      /** Runs an effect as the caller, with the rights of any other endpoint. */
      const as = <A, E, R>({ principal }: TaskCaller, effect: Effect.Effect<A, E, R>) =>
        effect.pipe(Effect.provideContext(services), Effect.provideService(CurrentPrincipal, principal))

      const look = Effect.fnUntraced(function* (caller: TaskCaller, run: Run) {
        const terms = termsOf(caller)
        const asks = terms.canElicit && (run.status === "paused" || isTerminal(run.status))
        const waits = {
          questions: asks && run.pauseReason === "question" ? yield* questions.pending(run.id) : [],
          suggestions:
            asks && terms.mayWrite ? yield* tasks.undecidedOf(run.id, taskBounds.suggestionsAtOnce) : []
        }
        const refused = asks ? yield* declined.of(run.id, caller.principal.userId) : new Set<string>()
        return taskOf(run, waits, { ...terms, declined: refused })
      })

      const get = Effect.fn("RunTasks.get")((caller: TaskCaller, runId: RunId) =>
        as(
          caller,
          reading(
            caller.projectId,
            Effect.flatMap(readableRun(runId), (run) => look(caller, run))
          )
        )
      )

      const glance = Effect.fn("RunTasks.glance")((caller: TaskCaller, runIds: ReadonlyArray<RunId>) =>
        as(
          caller,
          reading(
            caller.projectId,
            Effect.flatMap(runs.among(runIds), (found) => glanceAt(caller, found))
          )
        )
      )

      const list = Effect.fn("RunTasks.list")((caller: TaskCaller, cursor: string | undefined) => {
        const { role, userId } = caller.principal
        const filter = role === "admin" ? {} : { readableBy: userId }
        const request = {
          list: "tasks",
          limit: taskBounds.listedTasks,
          ...(cursor === undefined ? {} : { cursor })
        }
        return as(
          caller,
          reading(
            caller.projectId,
            Effect.gen(function* () {
              const page = yield* pageById(request, (before, limit) => runs.list(filter, before, limit))
              return { items: yield* glanceAt(caller, page.items), nextCursor: page.nextCursor }
            })
          )
        )
      })

      const stop = (caller: TaskCaller, runId: RunId) =>
        Effect.gen(function* () {
          yield* inProject(caller.projectId, "editor", ({ userId: by }) =>
            Effect.flatMap(readableRun(runId), (run) =>
              // It had already ended: there is nothing to cancel.
              Effect.catchTag(endings.cancel(run, { by }), "RunNotInState", () => Effect.void)
            )
          )
          yield* descendants.cancelBelow(caller.projectId, runId)
        })

      const resume = (caller: TaskCaller, runId: RunId) =>
        inProject(caller.projectId, "editor", ({ userId }) =>
          Effect.flatMap(spokenRun(runId), (run) =>
            resumptions.resume(run, { limits: {}, by: userId }).pipe(
              Effect.catchTags({
                TriggerRefused: ({ detail }) => conflict(detail),
                BudgetSpent: ({ detail }) => conflict(detail),
                // It was resumed or ended by another request.
                RunNotInState: () => Effect.void
              })
            )
          )
        )

      const take = Effect.fnUntraced(function* (
        caller: TaskCaller,
        runId: RunId,
        asked: Asked,
        { answer: words = "", decision, reason = null }: Content
      ) {
        const { projectId } = caller
        if (asked.type === "question") {
          const give = ({ userId }: Principal) =>
            Effect.flatMap(spokenRun(runId), (run) =>
              Effect.mapError(answers.give(run, words, asked.taskId, userId), answerProblem)
            )
          return yield* Effect.asVoid(inProject(projectId, "editor", give))
        }
        if (asked.type === "resume")
          return yield* decision === "resume" ? resume(caller, runId) : stop(caller, runId)
        const { digest, taskId } = asked
        yield* decision === "approve"
          ? approving(projectId, taskId, { digest })
          : rejecting(projectId, taskId, { digest, reason })
      })

      const answer = Effect.fn("RunTasks.answer")(function* (
        caller: TaskCaller,
        runId: RunId,
        responses: Readonly<Record<string, InputResponse>>
      ) {
        // An answer to a request that is no longer open is ignored, so a repeat has no effect.
        const { inputRequests = {} } = yield* get({ ...caller, canElicit: true }, runId)
        const taken = Object.entries(responses).filter(([key]) => Object.hasOwn(inputRequests, key))
        const contents = yield* Effect.forEach(taken, ([key, response]) => readContent(key, response))
        for (const { asked, content } of contents) {
          const { userId } = caller.principal
          const key = keyOf(asked)
          yield* as(
            caller,
            content === null
              ? inProject(caller.projectId, "viewer", () => declined.decline(runId, userId, key))
              : take(caller, runId, asked, content)
          ).pipe(Effect.catchIf(isDecided, () => Effect.void))
        }
      })

      const cancel = Effect.fn("RunTasks.cancel")((caller: TaskCaller, runId: RunId) =>
        as(caller, stop(caller, runId))
      )

      return RunTasks.of({ get, glance, list, answer, cancel })
    })
  )
}

const conflict = (detail: string) => Effect.fail(new Conflict({ reason: "state", detail }))

/** Another answer was first: the request is already decided. */
const isDecided = (problem: Problem): boolean =>
  problem instanceof Conflict && (problem.reason === "alreadyDecided" || problem.reason === "digestMismatch")

interface Content {
  readonly answer?: string
  readonly decision?: string
  readonly reason?: string | null | undefined
}

/** Answers, within the limits of the other endpoints. */
const contents = {
  question: Schema.Struct({ answer: AnswerInput.fields.answer }),
  review: Schema.Struct({
    decision: Schema.Literals(["approve", "reject"]),
    reason: Rejection.fields.reason
  }),
  resume: Schema.Struct({ decision: Schema.Literals(["resume", "stop"]) })
} as const

const wanted: Readonly<Record<Asked["type"], string>> = {
  question: "an answer, as text",
  review: 'a decision, "approve" or "reject"',
  resume: 'a decision, "resume" or "stop"'
}

/** The content of an answer; null if declined. All answers are validated before the first is applied. */
const readContent = Effect.fnUntraced(function* (key: string, { action, content }: InputResponse) {
  const asked = askedBy(key)
  if (asked === undefined) return yield* invalid("/inputResponses", "Nothing is asked by this key")
  if (action !== "accept") return { asked, content: null }
  yield* keepable(content)
  const read: Content = yield* Effect.mapError(
    Schema.decodeUnknownEffect<Schema.ConstraintDecoder<Content>>(contents[asked.type])(content ?? {}),
    ({ issue }) => {
      const faults = schemaFaults(issue).map(({ message, pointer }) => `${pointer}: ${message}`)
      return invalid(
        `/inputResponses/${key}/content`,
        [...faults, `This takes ${wanted[asked.type]}`].join(". ")
      )
    }
  )
  return { asked, content: read }
})

// Summaries of many runs as tasks, for lists and watchers.
//
// Three statements for any number of tasks. A summary has only the keys of open requests; forms and results are read for one task at a
// time.

/** One run's task status and the keys of its open requests. */
interface Glance {
  readonly task: ListedTask
  readonly hasFailed: boolean
  readonly keys: ReadonlyArray<string>
}

interface WaitingRow {
  readonly runId: RunId
  readonly id: TaskId
  readonly type: string
  readonly digest: string
}

/** Reads summaries of runs that a person may read. */
const makeGlancing = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** The first open request of each run. */
  const waiting = Effect.fnUntraced(function* (runs: ReadonlyArray<RunId>) {
    if (runs.length === 0) return []
    const { projectId } = yield* ProjectTransaction
    return yield* sql<WaitingRow>`
      select asked.run_id, task.id, task.type, task.digest from unnest(${runs}::uuid[]) as asked (run_id)
      cross join lateral (
        select id, type, digest from kb.tasks where run_id = asked.run_id and project_id = ${projectId} and status = 'pending'
          and (type = 'question' or type like '%\\_suggestion') and owner = '' and deleted_at is null
        order by type <> 'question', id limit ${taskBounds.suggestionsAtOnce}) task`
  }, orDie)

  const declinedBy = Effect.fnUntraced(function* (by: UserId, runs: ReadonlyArray<RunId>) {
    if (runs.length === 0) return []
    const { projectId } = yield* ProjectTransaction
    return yield* sql<{ readonly runId: RunId; readonly key: string }>`
      select run_id, key from kb.declined_inputs
      where project_id = ${projectId} and run_id = any(${runs}::uuid[]) and user_id = ${by}`
  }, orDie)

  return Effect.fnUntraced(function* (
    caller: TaskCaller,
    found: ReadonlyArray<Run>
  ): Effect.fn.Return<ReadonlyArray<Glance>, never, ProjectTransaction> {
    const terms = termsOf(caller)
    const runs = found.filter(({ owner }) => mayRead(caller.principal, owner))
    const asking = terms.canElicit
      ? runs.filter(({ status }) => status === "paused" || isTerminal(status)).map(({ id }) => id)
      : []
    const waits = Map.groupBy(yield* waiting(asking), ({ runId }) => runId)
    const declined = Map.groupBy(yield* declinedBy(caller.principal.userId, asking), ({ runId }) => runId)
    return runs.map((run) => {
      const rows = waits.get(run.id) ?? []
      const names = {
        questions: rows.filter(({ type }) => type === "question"),
        suggestions: rows.filter(({ type }) => type !== "question")
      }
      const own = { ...terms, declined: new Set(declined.get(run.id)?.map(({ key }) => key)) }
      const hasFailed = run.status === "failed"
      return { task: listedTaskOf(run, names, own), hasFailed, keys: keysOf(run, names, own) }
    })
  })
})
