/**
 * How an attempt writes to its log: guarded by its token, and folding what it wrote.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * The actor knows where its log ended when it folded it, so an append is one
 * question in a transaction of its own, and what is counted with it is part of
 * the same statement, as is the record of each call that it answers without
 * making it. Where somebody else wrote in between, it is done again
 * under the log's lock; where the attempt is lost, that says so. While the
 * database is away it is done again: an answer is paid for. What was kept
 * although nobody heard so is known by its instant and not appended twice.
 */
import { eventNumber, type LoggedEvent, type NewEvent } from "@tropism/domain/context-event"
import { fold, type ReducedContext } from "@tropism/domain/context"
import type { TaintSource } from "@tropism/domain/taint"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import { endOf, type Terms } from "../agent/appending.ts"
import { Contexts } from "../agent/contexts.ts"
import { Database, type ProjectTransaction } from "../database/database.ts"
import { tellingOutages, throughOutages } from "../outbox/outages.ts"
import { makeUnmadeCalls } from "../tool/unmade-calls.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import type { RunNotInState } from "./holding.ts"
import { Runs } from "./runs.ts"
import type { StepUse } from "./spending.ts"

type Alongside = ReadonlyArray<Statement.Fragment>
type Taint = ReadonlyArray<TaintSource>

/** How a run completes. */
interface Completion {
  readonly summary: string
  /** What its last step used, where that is kept with its end. */
  readonly spent?: StepUse
  readonly alongside?: Alongside
}

/** What goes with the last append of a run that is not its end. */
export interface Preparation {
  readonly alongside?: Alongside
  /** Done before the log is held. */
  readonly first?: Effect.Effect<void, RunNotInState, ProjectTransaction>
}

/** What an append answers that has ended its run. */
interface Ended {
  readonly name: string
  readonly ranMs: number | null
}

export const makeWriting = Effect.gen(function* () {
  const database = yield* Database
  const runs = yield* Runs
  const contexts = yield* Contexts
  const { recording } = yield* makeUnmadeCalls

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

  const plan = (
    run: ClaimedRun,
    context: ReducedContext,
    events: ReadonlyArray<NewEvent>,
    alongside: Alongside,
    more: Pick<Terms, "guard" | "taint" | "telling"> = {}
  ) =>
    contexts.plan(run.projectId, run.contextName, endOf(context), events, {
      guard: runs.guard(run),
      alongside,
      ...more
    })

  /** Appends events and answers the state after them; `taint` is what of them is untrusted. */
  const append = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    events: ReadonlyArray<NewEvent>,
    more: Alongside = [],
    taint: Taint = []
  ) {
    const alongside = [...more, ...(yield* recording(run.id, context.pendingCalls, events))]
    const planned = yield* plan(run, context, events, alongside, { taint })
    const { value, wasAway } = yield* tellingOutages(database.ask(run.projectId, planned.statement))
    if (value.length > 0) {
      yield* contexts.grown(run.projectId, run.contextName)
      return fold(planned.events, context)
    }
    // Behind an outage a log that has grown may have grown by these very events.
    if (wasAway && (yield* isKept(run, planned.events))) return yield* catchUp(run, context)
    const appended = yield* guarded(run, contexts.append(run.contextName, events, { alongside, taint }))
    return yield* advance(run, context, appended)
  })

  /** Appends events to a log that still ends as it was folded; where it has grown, they are not kept and the answer is what it says now. */
  const appendUnlessGrown = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    events: ReadonlyArray<NewEvent>
  ) {
    const planned = yield* plan(run, context, events, [])
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
    { alongside = [], first = Effect.void }: Preparation = {}
  ) {
    const calls = yield* recording(run.id, context.pendingCalls, events)
    const planned = yield* plan(run, context, events, [...alongside, ...calls])
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

  /** Appends the last events and completes the run, in one question where no other waits for it; false as above. */
  const appendAndComplete = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    events: ReadonlyArray<NewEvent>,
    { alongside = [], spent, summary }: Completion
  ) {
    if (run.ancestors.length > 0)
      return yield* appendAndEnd(run, context, events, runs.complete(run, summary), {
        alongside: [...(spent === undefined ? [] : runs.counting(run, spent)), ...alongside],
        first: runs.holdBlamed(run)
      })
    const last = runs.completing(run, summary, spent)
    const calls = yield* recording(run.id, context.pendingCalls, events)
    const parts = [...last.alongside, ...alongside, ...calls]
    const planned = yield* plan(run, context, events, parts, { guard: last.guard, telling: last.telling })
    // Whoever finds that the run has ended stops its actor, which tells of the end all the same.
    const completed = Effect.uninterruptible(
      Effect.gen(function* () {
        const statement = planned.statement as Statement.Statement<Ended>
        const [[ended], [line]] =
          last.behind === undefined
            ? [yield* database.ask(run.projectId, statement), []]
            : yield* database.askBoth(run.projectId, statement, last.behind)
        if (!ended) return false
        yield* contexts.grown(run.projectId, run.contextName)
        yield* last.over(ended.ranMs, line?.hasWaiting === true)
        return true
      })
    )
    return yield* throughOutages(completed)
  })

  return { guarded, catchUp, advance, append, appendUnlessGrown, appendAndEnd, appendAndComplete }
})
