/** Endpoints for runs: read, watch and stop them. */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal, type Principal } from "@tropism/api/authorization"
import type { KillSwitchInput } from "@tropism/api/kill-switch-api"
import { Conflict } from "@tropism/api/problems"
import { ResumeInput, type ToolCallRecord } from "@tropism/api/runs-api"
import type { ContextName } from "@tropism/domain/context-event"
import type { ProjectId, RunId } from "@tropism/domain/ids"
import { findFault } from "@tropism/domain/json"
import type { Stop } from "@tropism/domain/kill-switch"
import { isResumable, type LimitOverrides, type Run, isTerminal } from "@tropism/domain/run"
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Contexts, replayContext } from "../contexts/contexts.ts"
import { CrashPoint } from "../crash-point.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { Resumptions, whyNotResumed } from "../reactions/manual-retries.ts"
import { RunCancellation } from "../runs/cancellation.ts"
import { KillSwitches } from "../runs/kill-switches.ts"
import { Answers } from "../runs/questions.ts"
import { Runs, type Cancellation } from "../runs/run-store.ts"
import { ModelCallReading, OpenRequestReading, RunObjectReading, StepReading } from "../runs/step-queries.ts"
import { Descendants } from "../runs/sub-runs.ts"
import { type RecordedCall, ToolCalls } from "../tools/tool-calls.ts"
import {
  inProject,
  reading,
  readableRun,
  shownRun,
  spokenRun,
  looking,
  requireServerAdmin
} from "./access.ts"
import { optionalBody } from "./optional-body.ts"
import { pageById, pageByNumber } from "./paging.ts"
import { answerProblem, keepable, orNotFound, triggerProblem, invalid } from "./problems.ts"
import { liveLog, logPage, wantsStream } from "./streams.ts"

const knownRun = orNotFound("run")

/** A text search finds only runs whose text the caller may read; otherwise guesses would reveal it. */
const readableWords = ({ role, userId }: Principal, { query }: { readonly query?: unknown }) =>
  query === undefined || query === null || role === "admin" ? {} : { readableBy: userId }

/** A call as the API shows it, without the recorded reads, which are evidence only. */
const shownCall = ({ reads: _reads, ...call }: RecordedCall): ToolCallRecord => call

export const runsHandlers = HttpApiBuilder.group(Api, "runs", (handlers) =>
  handlers
    .handle(
      "list",
      Effect.fn("http.runs.list")(function* ({ params, query }) {
        const runs = yield* Runs
        const { cursor: _cursor, limit: _limit, ...filter } = query
        return yield* reading(
          params.projectId,
          Effect.flatMap(CurrentPrincipal, (principal) =>
            pageById(query, (before, limit) =>
              Effect.map(
                runs.list({ ...filter, ...readableWords(principal, query) }, before, limit),
                (found) => found.map((run) => shownRun(principal, run))
              )
            )
          )
        )
      })
    )
    .handle(
      "get",
      Effect.fn("http.runs.get")(function* ({ params }) {
        const runs = yield* Runs
        return yield* reading(
          params.projectId,
          Effect.flatMap(CurrentPrincipal, (principal) =>
            Effect.map(knownRun(runs.get(params.runId)), (run) => shownRun(principal, run))
          )
        )
      })
    )
    .handleRaw(
      "events",
      Effect.fn("http.runs.events")(function* ({ params, query }) {
        const run = yield* reading(params.projectId, readableRun(params.runId))
        const name = run.contextName as ContextName
        if (yield* wantsStream) return yield* liveLog(params.projectId, name, query.after, run.id)
        return yield* Effect.orDie(
          HttpServerResponse.json(yield* reading(params.projectId, logPage(name, query)))
        )
      })
    )
    .handle(
      "toolCalls",
      Effect.fn("http.runs.toolCalls")(function* ({ params, query }) {
        const toolCalls = yield* ToolCalls
        return yield* reading(
          params.projectId,
          Effect.andThen(
            readableRun(params.runId),
            Effect.map(
              pageById(query, (before, limit) => toolCalls.list(params.runId, before, limit)),
              (page) => ({
                ...page,
                items: page.items.map(shownCall)
              })
            )
          )
        )
      })
    )
    .handle(
      "replay",
      Effect.fn("http.runs.replay")(function* ({ params: { projectId, runId } }) {
        const contexts = yield* Contexts
        const { eventCount, name } = yield* reading(
          projectId,
          Effect.flatMap(readableRun(runId), ({ contextName }) =>
            knownRun(contexts.get(contextName as ContextName))
          )
        )
        return yield* replayContext(projectId, name, eventCount)
      })
    )
    .handle(
      "cancel",
      Effect.fn("http.runs.cancel")(function* ({ params }) {
        const descendants = yield* Descendants
        const cancelled = yield* inProject(params.projectId, "editor", () => cancelling(params.runId))
        // When this answers, no run below writes any more.
        yield* descendants.cancelBelow(params.projectId, cancelled.id)
        return cancelled
      })
    )
    .handleRaw(
      "resume",
      Effect.fn("http.runs.resume")(function* ({ params }) {
        const payload = yield* optionalBody(ResumeInput)
        yield* keepable(payload)
        const runs = yield* Runs
        const resumptions = yield* Resumptions
        const { message, ...limits } = payload
        const resumed = yield* inProject(params.projectId, "editor", ({ userId }) =>
          Effect.gen(function* () {
            const run = yield* spokenRun(params.runId)
            if (run.pauseReason === null || !isResumable(run.pauseReason) || run.backtestId !== null)
              return yield* notResumed(run)
            const resumption = { message: message ?? undefined, limits: saidOf(limits), by: userId }
            yield* resumptions.resume(run, resumption).pipe(
              Effect.catchTags({
                TriggerRefused: triggerProblem,
                BudgetSpent: ({ detail }) =>
                  Effect.fail(
                    new Conflict({ reason: "state", detail: `${detail} Raise it, then resume the run` })
                  ),
                // Another request was faster, so the run is read again.
                RunNotInState: () => Effect.flatMap(knownRun(runs.get(run.id)), notResumed)
              })
            )
            return yield* knownRun(runs.get(run.id))
          })
        )
        return yield* Effect.orDie(HttpServerResponse.json(resumed))
      })
    )
    .handle(
      "answer",
      Effect.fn("http.runs.answer")(function* ({ params, payload }) {
        const { answer, taskId = null } = payload
        yield* keepable(payload)
        const runs = yield* Runs
        const answers = yield* Answers
        const answered = yield* inProject(params.projectId, "editor", ({ userId }) =>
          Effect.gen(function* () {
            const run = yield* spokenRun(params.runId)
            yield* Effect.mapError(answers.give(run, answer, taskId, userId), answerProblem)
            return yield* knownRun(runs.get(run.id))
          })
        )
        yield* CrashPoint.hit("task.afterCommit")
        return answered
      })
    )
)

const notResumed = (run: Run) => Effect.fail(new Conflict({ reason: "state", detail: whyNotResumed(run) }))

/** The limits in the request; null is unset. */
const saidOf = (limits: Omit<ResumeInput, "message">): LimitOverrides =>
  Object.fromEntries(Object.entries(limits).filter(([, limit]) => typeof limit === "number"))

// A run in detail: its steps and each model request and answer.

interface RunPath {
  readonly projectId: ProjectId
  readonly runId: RunId
}

/** Reads a part of an existing run. */
const ofRun = <A, E, R>({ projectId, runId }: RunPath, read: Effect.Effect<A, E, R>) =>
  reading(projectId, Effect.andThen(readableRun(runId), read))

/** A page of a run's numbered items. */
const pageOf = <A extends { readonly number: number }>(
  params: RunPath,
  query: Parameters<typeof pageByNumber>[0],
  list: (
    runId: RunId,
    after: number,
    limit: number
  ) => Effect.Effect<ReadonlyArray<A>, never, ProjectTransaction>
) =>
  ofRun(
    params,
    pageByNumber(
      query,
      ({ number }: A) => number,
      (after, limit) => list(params.runId, after ?? 0, limit)
    )
  )

export const runRecordsHandlers = HttpApiBuilder.group(Api, "runRecords", (handlers) =>
  handlers.handleAll({
    steps: Effect.fn("http.runRecords.steps")(function* ({ params, query }) {
      const steps = yield* StepReading
      return yield* pageOf(params, query, steps.list)
    }),
    objects: Effect.fn("http.runRecords.objects")(function* ({ params }) {
      const objects = yield* RunObjectReading
      return yield* ofRun(params, objects.of(params.runId))
    }),
    modelCalls: Effect.fn("http.runRecords.modelCalls")(function* ({ params, query }) {
      const calls = yield* ModelCallReading
      return yield* pageOf(params, query, calls.list)
    }),
    openRequest: Effect.fn("http.runRecords.openRequest")(function* ({ params }) {
      const requests = yield* OpenRequestReading
      const request = yield* ofRun(params, requests.of(params.runId))
      return { request: request ?? null }
    }),
    modelCall: Effect.fn("http.runRecords.modelCall")(function* ({ params }) {
      const calls = yield* ModelCallReading
      return yield* orNotFound("model call")(ofRun(params, calls.exchange(params.runId, params.number)))
    })
  })
)

// Cancels a run, or the work in a context.
//
// The runs below it are cancelled after its own transaction.

const known = orNotFound("run")

/** Cancels the running or paused run of a context, in the caller's transaction, and returns it. */
export const cancelWorkIn = Effect.fn("http.cancelWorkIn")(function* (
  name: ContextName,
  cancellation: Cancellation
) {
  const runs = yield* Runs
  const endings = yield* RunCancellation
  let met: RunId | undefined
  while (true) {
    const run = yield* runs.newestOn(name)
    if (!run || run.id === met || isTerminal(run.status)) return undefined
    met = run.id
    const isCancelled = yield* Effect.match(endings.cancel({ id: run.id, contextName: name }, cancellation), {
      onSuccess: () => true,
      onFailure: () => false
    })
    if (isCancelled) return run.id
    // It ended a moment ago, and may have queued another run for late messages.
  }
})

/** Cancels an unfinished run in the caller's transaction and returns it. */
export const cancelling = Effect.fn("http.cancelling")(function* (id: RunId) {
  const runs = yield* Runs
  const endings = yield* RunCancellation
  const run = yield* readableRun(id)
  const { userId: by } = yield* CurrentPrincipal
  // It ended before or after it was read, so it is read again.
  yield* Effect.catchTag(endings.cancel(run, { by }), "RunNotInState", () =>
    Effect.flatMap(known(runs.get(id)), ({ status }) =>
      Effect.fail(new Conflict({ reason: "state", detail: `The run is ${status} already` }))
    )
  )
  return yield* known(runs.get(id))
})

// Kill switches of a project and of the server.

const shown = (stop: Stop | undefined) => ({ stopped: stop ?? null })

export const killSwitchHandlers = HttpApiBuilder.group(Api, "killSwitch", (handlers) =>
  handlers.handleAll({
    ofServer: Effect.fn("http.killSwitch.ofServer")(function* () {
      const switches = yield* KillSwitches
      return shown(yield* switches.ofServer)
    }),
    setServer: Effect.fn("http.killSwitch.setServer")(function* ({ payload }) {
      const switches = yield* KillSwitches
      const principal = yield* CurrentPrincipal
      yield* requireServerAdmin(principal)
      yield* turn(null, payload, principal)
      return shown(yield* switches.ofServer)
    }),
    ofProject: Effect.fn("http.killSwitch.ofProject")(function* ({ params }) {
      const switches = yield* KillSwitches
      return shown(yield* reading(params.projectId, switches.find))
    }),
    setProject: Effect.fn("http.killSwitch.setProject")(function* ({ params, payload }) {
      const switches = yield* KillSwitches
      const principal = yield* looking(params.projectId, "admin", Effect.succeed)
      yield* turn(params.projectId, payload, principal)
      return shown(yield* reading(params.projectId, switches.find))
    })
  })
)

/** Never in the caller's transaction: the switch must be committed before runs react. */
const turn = Effect.fnUntraced(function* (
  projectId: ProjectId | null,
  { reason, stopped }: KillSwitchInput,
  { userId }: Principal
) {
  const switches = yield* KillSwitches
  if (!stopped) return yield* switches.release(projectId)
  if (reason === undefined || reason === null)
    return yield* invalid("/reason", "Say why the agents are stopped: whoever meets the switch will read it")
  const fault = findFault(reason)
  if (fault) return yield* invalid("/reason", fault.message)
  return yield* switches.stop(projectId, reason, userId)
})

// The tool calls of a person, for that person and for admins.

export const toolCallsHandlers = HttpApiBuilder.group(Api, "toolCalls", (handlers) =>
  handlers.handle(
    "list",
    Effect.fn("http.toolCalls.list")(function* ({ params, query }) {
      yield* keepable({ userId: query.userId })
      const toolCalls = yield* ToolCalls
      const { userId } = yield* CurrentPrincipal
      const whose = query.userId ?? userId
      return yield* inProject(params.projectId, whose === userId ? "viewer" : "admin", () =>
        Effect.map(
          pageById(query, (before, limit) => toolCalls.ofUser(whose, before, limit)),
          (page) => ({ ...page, items: page.items.map(shownCall) })
        )
      )
    })
  )
)
