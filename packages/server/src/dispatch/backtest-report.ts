/**
 * The figures of a backtest, from what was suggested earlier and now.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * Pure. Only events whose run is over count; a run that failed, or was stopped,
 * has said nothing of what it would not suggest and is left out of agreement.
 */
import type { BacktestReport, BacktestResult, Rate } from "@tropism/domain/backtest"
import { comparedProperties, type Earlier, type Met } from "@tropism/domain/backtest-agreement"
import type { Change } from "@tropism/domain/change"
import type { RunId, TaskId } from "@tropism/domain/ids"
import type { PauseReason } from "@tropism/domain/run"

/** A suggestion that a run made earlier. */
export interface EarlierSuggestion extends Earlier {
  readonly taskId: TaskId
  readonly number: number
  /** What it would change: the type of its object, or of its relationship. */
  readonly objectType: string
}

/** What a run would suggest now. */
export interface WouldBeSuggestion {
  readonly change: Change
  readonly confidence: number | null
  readonly reasoning: string | null
}

/** One event with what was suggested earlier and now. */
export interface EventOutcome {
  readonly row: EventRow
  readonly isOver: boolean
  readonly met: ReadonlyArray<Met<EarlierSuggestion, WouldBeSuggestion>>
  readonly fresh: ReadonlyArray<WouldBeSuggestion>
}

/** An event of a backtest, with its run. */
export interface EventRow extends Pick<
  BacktestResult,
  "number" | "subject" | "runId" | "runStatus" | "errorMessage"
> {
  readonly event: Omit<BacktestResult["event"], "createdAt"> & { readonly createdAt: string }
  readonly handledBy: ReadonlyArray<RunId>
  readonly pauseReason: PauseReason | null
}

type Figures = Omit<BacktestReport, "refusals" | "usage" | "costUsd">

export const reportOf = (outcomes: ReadonlyArray<EventOutcome>): Figures => {
  const answered = outcomes.filter(({ row }) => row.runStatus === "completed")
  const met = answered.flatMap((each) => each.met)
  const decided = met.filter(({ agrees }) => agrees !== undefined)
  const edited = decided.filter(({ isEdited }) => isEdited)
  const countEdited = (...likenesses: ReadonlyArray<string>) =>
    edited.filter(({ likeness }) => likenesses.includes(likeness)).length
  const ended = (status: string) =>
    outcomes.filter(({ isOver, row }) => isOver && row.runStatus === status).length
  return {
    agreement: rateOf(decided),
    byOperation: [...Map.groupBy(decided, ({ earlier }) => `${earlier.objectType} ${earlier.change.type}`)]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .flatMap(([, alike]) => {
        const [first] = alike
        return first
          ? [{ objectType: first.earlier.objectType, operation: first.earlier.change.type, ...rateOf(alike) }]
          : []
      }),
    edited: {
      asEdited: countEdited("edited"),
      asSuggested: countEdited("same"),
      neither: countEdited("different", "none")
    },
    properties: propertiesOf(decided),
    newSuggestions: answered.reduce((sum, { fresh }) => sum + fresh.length, 0),
    undecided: met.length - decided.length,
    runs: {
      completed: ended("completed"),
      failed: ended("failed"),
      cancelled: ended("cancelled"),
      paused: ended("paused")
    }
  }
}

type Decided = EventOutcome["met"]

const rateOf = (decided: Decided): Rate => {
  const agreed = decided.filter(({ agrees }) => agrees === true).length
  return { agreed, judged: decided.length, rate: partOf(agreed, decided.length) }
}

const partOf = (count: number, of: number): number | null => (of === 0 ? null : count / of)

const propertiesOf = (decided: Decided): BacktestReport["properties"] => {
  const accepted = decided.filter(({ earlier }) => earlier.status === "completed").map(comparedProperties)
  const sum = (of: "same" | "suggested" | "accepted") => accepted.reduce((total, each) => total + each[of], 0)
  const [same, suggested, wanted] = [sum("same"), sum("suggested"), sum("accepted")]
  return {
    same,
    suggested,
    accepted: wanted,
    precision: partOf(same, suggested),
    recall: partOf(same, wanted)
  }
}
