/**
 * Lets runs go on that a limit has stopped, because somebody says so.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * What the person says and the place in the queue are one transaction: a run
 * that goes on has something to answer. It keeps its id, its log and the version
 * of its agent that it began with.
 */
import type { ContextName } from "@tropism/domain/context-event"
import type { AgentId, RunId, UserId } from "@tropism/domain/ids"
import { type LimitOverrides, type PauseReason, type Run, isTerminal } from "@tropism/domain/run"
import { Context, Effect, Layer } from "effect"
import { Contexts } from "../agent/contexts.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { Admission, type TriggerRefused } from "../run/admission.ts"
import type { RunNotInState } from "../run/holding.ts"
import type { BudgetSpent } from "../run/resuming.ts"
import { Runs } from "../run/runs.ts"
import { resumeSentence } from "../run/sentences.ts"

/** What somebody says to a run that may go on. */
export interface Resumption {
  /** What the model reads; a sentence of ours where absent. */
  readonly message?: string | undefined
  /** What the run may use from now on, where that is to be other than it was. */
  readonly limits: LimitOverrides
  readonly by: UserId
}

export class Resumptions extends Context.Service<
  Resumptions,
  {
    /** Queues a run that a limit paused; refused while its agent may not begin a run, and while a budget that it spends is spent. */
    readonly resume: (
      run: { readonly id: RunId; readonly agentId: AgentId; readonly contextName: string },
      resumption: Resumption
    ) => Effect.Effect<void, RunNotInState | BudgetSpent | TriggerRefused, ProjectTransaction>
  }
>()("@tropism/server/dispatch/Resumptions") {
  static readonly layer = Layer.effect(
    Resumptions,
    Effect.gen(function* () {
      const admission = yield* Admission
      const runs = yield* Runs
      const contexts = yield* Contexts

      const resume = Effect.fn("Resumptions.resume")(function* (
        run: { readonly id: RunId; readonly agentId: AgentId; readonly contextName: string },
        { by, limits, message }: Resumption
      ) {
        yield* admission.places(run.agentId)
        yield* runs.resume(run.id, limits)
        yield* contexts.append(run.contextName as ContextName, [
          {
            type: "RunResumedEvent",
            by,
            content: message ?? resumeSentence,
            ...(message === undefined ? {} : { userId: by }),
            triggersAgentTurn: true
          }
        ])
      })

      return Resumptions.of({ resume })
    })
  )
}

const restingSentences: Readonly<Record<PauseReason, string>> = {
  stepLimit: "The run is paused",
  timeout: "The run is paused",
  budget: "The run is paused",
  question: "The run waits for an answer: answer its question, and it goes on",
  subAgents: "The run waits for the runs that it spawned: it goes on by itself when they have ended",
  killSwitch: "The run was stopped by a kill switch: it goes on by itself when that is turned off",
  toolResult:
    "The run waits for a client to answer a tool call: it goes on with the result, or when the time for that is over"
}

/** Why a run cannot be resumed. */
export const whyNotResumed = ({
  backtestId,
  pauseReason,
  status
}: Pick<Run, "backtestId" | "pauseReason" | "status">): string =>
  backtestId !== null && !isTerminal(status)
    ? "The run belongs to a backtest and does not go on: raise the limit, and begin another backtest"
    : pauseReason !== null && status === "paused"
      ? restingSentences[pauseReason]
      : isTerminal(status)
        ? `The run is ${status}: it has ended and does not go on`
        : `The run is ${status} already`
