/**
 * How an attempt writes to its log: guarded by its token, and folding what it wrote.
 *
 * An append goes with the next batch of appends. One that the batch leaves out, because the log has grown or another transaction
 * holds a row that it needs, is made alone under the log's lock, which fails where the attempt is lost. While the database is away an append is tried again: the
 * answer in it is paid for. One that was written although its answer was lost is known by its time and not made twice.
 */
import { eventNumber, type LoggedEvent, type NewEvent } from "@tropism/domain/context-event"
import { fold, type ReducedContext } from "@tropism/domain/context"
import type { TaintSource } from "@tropism/domain/taint"
import { Effect } from "effect"
import { endOf, planAppend } from "../agent/appending.ts"
import { Contexts } from "../agent/contexts.ts"
import { Database, type ProjectTransaction } from "../database/database.ts"
import { tellingOutages, throughOutages } from "../outbox/outages.ts"
import { makeUnmadeCalls } from "../tool/unmade-calls.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import type { RunNotInState } from "./holding.ts"
import { foresights } from "./asking.ts"
import { RunAppends, type RunParts } from "./run-appends.ts"
import { Runs } from "./runs.ts"

type Taint = ReadonlyArray<TaintSource>

/** How a run completes. */
interface Completion {
  readonly summary: string
  readonly parts?: RunParts
}

/** What goes with the last append of a run that is not its end. */
export interface Preparation {
  readonly parts?: RunParts
  /** Done before the log is held. */
  readonly first?: Effect.Effect<void, RunNotInState, ProjectTransaction>
}

export const makeWriting = Effect.gen(function* () {
  const database = yield* Database
  const runs = yield* Runs
  const contexts = yield* Contexts
  const appends = yield* RunAppends
  const { unmade } = yield* makeUnmadeCalls

  /** A transaction in which only the attempt that holds the run may write. */
  const guarded = <A, E>(run: ClaimedRun, effect: Effect.Effect<A, E, ProjectTransaction>) =>
    database.inProject(run.projectId, Effect.andThen(runs.hold(run), effect))

  /** Folds what others wrote; fails when the attempt is lost. */
  const catchUp = (run: ClaimedRun, context: ReducedContext) =>
    guarded(run, contexts.load(run.contextName, context))

  /** Folds what was just appended; reads the log where somebody else wrote in between. */
  const advance = (run: ClaimedRun, context: ReducedContext, appended: ReadonlyArray<LoggedEvent>) => {
    const [first] = appended
    return first && eventNumber(first.id) === context.nextEventNumber
      ? Effect.succeed(fold(appended, context))
      : database.inProject(run.projectId, contexts.load(run.contextName, context))
  }

  /** Whether the first of the events stands in the log: no other has its number and its instant. */
  const isKept = (run: ClaimedRun, [first]: ReadonlyArray<LoggedEvent>) =>
    first === undefined
      ? Effect.succeed(false)
      : Effect.map(
          guarded(run, contexts.read(run.contextName, eventNumber(first.id) - 1, 1)),
          ([found]) => found?.type === first.type && found.timestamp === first.timestamp
        )

  /** Appends events and answers the state after them; `taint` is what of them is untrusted. */
  const append = (
    run: ClaimedRun,
    context: ReducedContext,
    events: ReadonlyArray<NewEvent>,
    parts: RunParts = {},
    taint: Taint = []
  ) => appendKnowing(run, context, events, { parts, taint, foresees: false })

  /** The same before a model request: the batch answers with it what `mayAsk` would read. */
  const appendForeseeing = (
    run: ClaimedRun,
    context: ReducedContext,
    events: ReadonlyArray<NewEvent>,
    parts: RunParts = {},
    taint: Taint = []
  ) => appendKnowing(run, context, events, { parts, taint, foresees: true })

  const appendKnowing = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    events: ReadonlyArray<NewEvent>,
    {
      foresees,
      parts,
      taint
    }: { readonly parts: RunParts; readonly taint: Taint; readonly foresees: boolean }
  ) {
    const all: RunParts = { ...parts, unmade: yield* unmade(context.pendingCalls, events) }
    const planned = yield* planAppend(run.contextName, endOf(context), events, taint)
    const { value, wasAway } = yield* tellingOutages(appends.submit(run, planned, all, foresees))
    if (value.isWritten) {
      yield* contexts.grown(run.projectId, run.contextName)
      const after = fold(planned.events, context)
      if (value.foresight !== undefined) foresights.set(after, value.foresight)
      return after
    }
    // After an outage a log that has grown may have grown by these very events.
    if (wasAway && (yield* isKept(run, planned.events))) return yield* catchUp(run, context)
    const appended = yield* guarded(
      run,
      contexts.append(run.contextName, events, { ...appends.terms(run, all), taint })
    )
    return yield* advance(run, context, appended)
  })

  /** Appends events to a log that still ends as it was folded; where it has grown, they are not kept and the answer is what it says now. */
  const appendUnlessGrown = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    events: ReadonlyArray<NewEvent>
  ) {
    const planned = yield* contexts.plan(run.projectId, run.contextName, endOf(context), events, {
      guard: runs.guard(run)
    })
    const [written] = yield* database.ask(run.projectId, planned.statement)
    if (!written) return yield* catchUp(run, context)
    yield* contexts.grown(run.projectId, run.contextName)
    return fold(planned.events, context)
  })

  /** Appends the last events and ends the run; false, with nothing done, when somebody spoke since the log was read or the attempt is lost. */
  const appendAndEnd = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    events: ReadonlyArray<NewEvent>,
    end: Effect.Effect<void, RunNotInState, ProjectTransaction>,
    { first = Effect.void, parts = {} }: Preparation = {}
  ) {
    const planned = yield* contexts.plan(run.projectId, run.contextName, endOf(context), events, {
      guard: runs.guard(run),
      ...appends.terms(run, { ...parts, unmade: yield* unmade(context.pendingCalls, events) })
    })
    return yield* throughOutages(
      database.inProject(
        run.projectId,
        Effect.gen(function* () {
          yield* runs.holdToEnd(run)
          yield* first
          if (!(yield* contexts.write(run.contextName, planned))) return false
          yield* end
          return true
        })
      )
    )
  })

  /** Appends the last events and completes the run; false as above. */
  const appendAndComplete = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    events: ReadonlyArray<NewEvent>,
    { parts = {}, summary }: Completion
  ) {
    if (run.ancestors.length > 0)
      return yield* appendAndEnd(run, context, events, runs.complete(run, summary), {
        parts,
        first: runs.holdBlamed(run)
      })
    const all: RunParts = { ...parts, unmade: yield* unmade(context.pendingCalls, events), end: { summary } }
    const planned = yield* planAppend(run.contextName, endOf(context), events)
    // When the run is found to have ended, its actor is stopped; the wake-ups are sent all the same.
    const completed = Effect.uninterruptible(
      Effect.gen(function* () {
        const { isWritten } = yield* appends.submit(run, planned, all, false)
        if (!isWritten && !(yield* appends.completeAlone(run, planned, all))) return false
        yield* contexts.grown(run.projectId, run.contextName)
        return true
      })
    )
    return yield* throughOutages(completed)
  })

  return {
    guarded,
    catchUp,
    advance,
    append,
    appendForeseeing,
    appendUnlessGrown,
    appendAndEnd,
    appendAndComplete
  }
})
