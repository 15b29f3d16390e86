/**
 * Runs: read them, watch them live, stop them.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal, type Principal } from "@tropism/api/authorization"
import { Conflict } from "@tropism/api/problems"
import { ResumeInput, type ToolCallRecord } from "@tropism/api/runs-api"
import type { ContextName } from "@tropism/domain/context-event"
import { isResumable, type LimitOverrides, type Run } from "@tropism/domain/run"
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Contexts } from "../agent/contexts.ts"
import { replayContext } from "../agent/replaying.ts"
import { Resumptions, whyNotResumed } from "../dispatch/resumptions.ts"
import { Descendants } from "../run/descendants.ts"
import { CrashPoint } from "../crash-point.ts"
import { Answers } from "../run/questions.ts"
import { Runs } from "../run/runs.ts"
import { type RecordedCall, ToolCalls } from "../tool/tool-calls.ts"
import { inProject, reading } from "./access.ts"
import { cancelling } from "./cancelling.ts"
import { liveLog, logPage } from "./context-log.ts"
import { readableRun, shownRun, spokenRun } from "./owned.ts"
import { pageById } from "./paging.ts"
import { optionalBody } from "./optional-body.ts"
import { answerProblem, keepable, orNotFound, triggerProblem } from "./refusals.ts"
import { wantsStream } from "./sse.ts"

const knownRun = orNotFound("run")

/** Who looks for words finds only the runs whose words they may read: a guess would tell them otherwise. */
const readableWords = ({ role, userId }: Principal, { query }: { readonly query?: unknown }) =>
  query === undefined || query === null || role === "admin" ? {} : { readableBy: userId }

/** A call as the API shows it: what it read is evidence, not part of the answer. */
export const shownCall = ({ reads: _reads, ...call }: RecordedCall): ToolCallRecord => call

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
        // When the answer is there, nothing below the run writes any more.
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
                // Read again: somebody else was faster.
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

/** The limits that somebody has said; null is unsaid. */
const saidOf = (limits: Omit<ResumeInput, "message">): LimitOverrides =>
  Object.fromEntries(Object.entries(limits).filter(([, limit]) => typeof limit === "number"))
