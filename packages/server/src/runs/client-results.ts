/**
 * Delivers the results of client tools to the runs that wait for them, and fails calls that no client answers in time.
 *
 * One transaction updates the call's record, the log and the run that resumes. Locks are taken in the order run, log, call, so a client's
 * answer, the timeout, a cancellation and the running attempt are serialized; the call's state decides, and the first outcome wins.
 */
import type { ContextName, NewEvent } from "@tropism/domain/context-event"
import type { RunId, UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Schema } from "effect"
import { Contexts } from "../contexts/contexts.ts"
import { CrashPoint } from "../crash-point.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { toolLimits } from "../limits.ts"
import { bounded } from "../tools/arguments.ts"
import { type ClientCall, ToolCalls } from "../tools/tool-calls.ts"
import { Runs } from "./run-store.ts"

/** Why a client's answer was refused. */
export class ResultRefused extends Schema.TaggedError<ResultRefused>()("ResultRefused", {
  reason: Schema.Literals(["unknown", "answered", "notWaiting"]),
  detail: Schema.String
}) {}

/** A client's answer: a result or an error. */
export interface ClientOutcome {
  readonly result?: Schema.Json
  readonly error?: Schema.Json
  /** The source is not trusted, so the answer taints the context. */
  readonly isUntrusted: boolean
}

/** A run with client calls that are past their timeout. */
export interface OverdueRun {
  readonly runId: RunId
  readonly contextName: ContextName
}

export class ClientResults extends Context.Service<
  ClientResults,
  {
    /** Records the outcome of a call; the run resumes when none of its calls waits for a client any more. */
    readonly give: (
      name: ContextName,
      callId: string,
      outcome: ClientOutcome,
      by: UserId
    ) => Effect.Effect<void, ResultRefused, ProjectTransaction>
    /** Returns one batch of the project's runs with overdue calls. */
    readonly overdue: Effect.Effect<ReadonlyArray<OverdueRun>, never, ProjectTransaction>
    /** Fails the overdue calls of a run and returns their number; the model reads the timeout. */
    readonly failOverdue: (run: OverdueRun) => Effect.Effect<number, never, ProjectTransaction>
  }
>()("@tropism/server/run/ClientResults") {
  static readonly layer = Layer.effect(
    ClientResults,
    Effect.gen(function* () {
      const runs = yield* Runs
      const contexts = yield* Contexts
      const toolCalls = yield* ToolCalls

      /** Locks the run and its log; false when the run has ended. */
      const hold = Effect.fnUntraced(function* (runId: RunId, name: ContextName) {
        const isOpen = yield* runs.holdOpen(runId).pipe(
          Effect.as(true),
          Effect.catchTag("RunNotInState", () => Effect.succeed(false))
        )
        yield* contexts.lock(name)
        return isOpen
      })

      const wakeIfAnswered = Effect.fnUntraced(function* (runId: RunId) {
        const { length } = yield* toolCalls.awaited(runId)
        if (length === 0) yield* runs.wake(runId, "toolResult")
      })

      const give = Effect.fn("ClientResults.give")(function* (
        name: ContextName,
        callId: string,
        outcome: ClientOutcome,
        by: UserId
      ) {
        const found = yield* toolCalls.findClientCall(name, callId)
        if (found === undefined)
          return yield* refuse("unknown", `No call ${callId} of this context waits for a client, or has`)
        const { runId, tool } = found
        const isOpen = yield* hold(runId, name)
        // Read again under the run's lock: another client, the timeout or a cancellation may have been first.
        const { answeredBy, status } = (yield* toolCalls.findClientCall(name, callId)) ?? found
        if (!isOpen || status !== "started") return yield* notTaken({ answeredBy, status })
        const { event, kept } = outcomeOf(outcome, { callId, tool }, by)
        if (!(yield* toolCalls.end(runId, callId, kept.status, kept.result, by)))
          return yield* refuse("answered", "Another client has answered already")
        const taint = outcome.isUntrusted ? [{ kind: "clientTool" as const, id: tool }] : []
        yield* contexts.append(name, [event], { taint })
        yield* wakeIfAnswered(runId)
        yield* CrashPoint.hit("tool.beforeCommit")
      })

      const failOverdue = Effect.fn("ClientResults.failOverdue")(function* ({
        contextName,
        runId
      }: OverdueRun) {
        const isOpen = yield* hold(runId, contextName)
        const calls = (yield* toolCalls.awaited(runId)).filter(({ isOverdue }) => isOverdue)
        for (const { callId } of calls)
          yield* toolCalls.end(runId, callId, isOpen ? "failed" : "abandoned", timedOut)
        if (!isOpen || calls.length === 0) return calls.length
        yield* contexts.append(
          contextName,
          calls.map(({ callId, tool }): NewEvent => ({
            type: "ToolCallFailedEvent",
            callId,
            tool,
            error: timedOut
          }))
        )
        yield* wakeIfAnswered(runId)
        yield* CrashPoint.hit("tool.beforeCommit")
        return calls.length
      })

      return ClientResults.of({ give, overdue: toolCalls.overdue(toolLimits.overdueBatchRuns), failOverdue })
    })
  )
}

const timedOut = { error: "No client has answered this call in time", reason: "timeout" }

/** Returns the stored form of an answer, for the record and the log. */
const outcomeOf = (
  { error, result = null }: ClientOutcome,
  call: { readonly callId: string; readonly tool: string },
  userId: UserId
): {
  readonly event: NewEvent
  readonly kept: { readonly status: "completed" | "failed"; readonly result: Schema.Json }
} => {
  const json = bounded(error ?? result)
  return error === undefined
    ? {
        event: { type: "ToolCallCompletedEvent", ...call, result: json, userId },
        kept: { status: "completed", result: json }
      }
    : {
        event: { type: "ToolCallFailedEvent", ...call, error: json, userId },
        kept: { status: "failed", result: json }
      }
}

const refuse = (reason: ResultRefused["reason"], detail: string) => new ResultRefused({ reason, detail })

const notTaken = ({ answeredBy, status }: Pick<ClientCall, "answeredBy" | "status">): ResultRefused => {
  if (answeredBy !== null) return refuse("answered", `The call has its result already: ${answeredBy} sent it`)
  return status === "failed"
    ? refuse("notWaiting", "The time for an answer is over: the call has failed")
    : refuse("notWaiting", "The run does not wait for this call any more")
}
