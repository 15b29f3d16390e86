/**
 * Group commit: items that arrive while a batch is being written form the next batch.
 *
 * Each project has one batch in progress. Without one an item is written at once, so an idle server adds no delay. A batch that fails for
 * another reason than an unreachable database is written again item by item: one bad row does not fail the rest.
 *
 * **Invariant**: a submitter gets its outcome only after its batch has committed. Interrupting a submitter withdraws an item that is in no
 * batch yet; an item in a batch completes first.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Cause, Deferred, Effect, Exit, FiberSet, Semaphore, Fiber } from "effect"
import { CrashPoint } from "../crash-point.ts"
import { isBrokenByAway } from "./connection-errors.ts"
import { poolLimits } from "./limits.ts"

/** The limits of a batch and of its queue. */
export interface GroupCommitLimits {
  readonly batchItems: number
  readonly batchBytes: number
  /** Items of all projects; further submitters wait. */
  readonly waitingItems: number
}

/** What an item touches. A batch has at most one item that touches a key alone, and then none that shares it. */
export interface Touched {
  readonly alone: ReadonlyArray<string>
  readonly shared: ReadonlyArray<string>
}

export interface GroupCommit<Item, Outcome> {
  /** Adds an item to the next batch of its project and returns its committed outcome. */
  readonly submit: (projectId: ProjectId, item: Item) => Effect.Effect<Outcome>
}

interface Waiting<Item, Outcome> {
  readonly item: Item
  readonly bytes: number
  readonly outcome: Deferred.Deferred<Outcome>
}

export const makeGroupCommit = Effect.fnUntraced(function* <Item, Outcome>(options: {
  /** Writes items in one transaction and returns their outcomes in order; dies on a failure. */
  readonly write: (projectId: ProjectId, items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Outcome>>
  /** The approximate bytes that an item sends to the database. */
  readonly bytesOf: (item: Item) => number
  /** What an item touches, where two of a batch may conflict: the later one goes to a later batch. */
  readonly touches?: (item: Item) => Touched
  readonly limits: GroupCommitLimits
}) {
  const { batchBytes, batchItems, waitingItems } = options.limits
  const places = yield* Semaphore.make(waitingItems)
  /** Queued items by project; a project without a batch in progress is absent. */
  const lines = new Map<ProjectId, Array<Waiting<Item, Outcome>>>()
  // The batches belong to this scope and not to the submitter, whose transaction or interrupt must not affect them.
  const runFork = yield* FiberSet.makeRuntime()

  const nextBatch = (line: Array<Waiting<Item, Outcome>>) => {
    const batch: Array<Waiting<Item, Outcome>> = []
    const later: Array<Waiting<Item, Outcome>> = []
    const [alone, shared] = [new Set<string>(), new Set<string>()]
    let bytes = 0
    let place = 0
    for (; place < line.length; place++) {
      const waiting = line[place] as Waiting<Item, Outcome>
      if (batch.length > 0 && (batch.length >= batchItems || bytes + waiting.bytes > batchBytes)) break
      const touched = options.touches?.(waiting.item) ?? touchesNothing
      const isInTheWay =
        touched.alone.some((what) => alone.has(what) || shared.has(what)) ||
        touched.shared.some((what) => alone.has(what))
      // A deferred item is recorded too, so that no later item overtakes it.
      for (const what of touched.alone) alone.add(what)
      for (const what of touched.shared) shared.add(what)
      if (isInTheWay) later.push(waiting)
      else {
        batch.push(waiting)
        bytes += waiting.bytes
      }
    }
    line.splice(0, place, ...later)
    return batch
  }

  const write = (projectId: ProjectId, batch: ReadonlyArray<Waiting<Item, Outcome>>) =>
    CrashPoint.hit("batch.beforeCommit").pipe(
      Effect.andThen(
        options.write(
          projectId,
          batch.map(({ item }) => item)
        )
      ),
      Effect.tap(() => CrashPoint.hit("batch.afterCommit"))
    )

  /** When the scope ends, waiting submitters are interrupted, because they would wait forever. */
  const abandon = (left: ReadonlyArray<Waiting<Item, Outcome>>) =>
    Effect.sync(() => {
      for (const { outcome } of left) Deferred.doneUnsafe(outcome, Exit.interrupt())
    })

  const settle = Effect.fnUntraced(function* (
    projectId: ProjectId,
    batch: ReadonlyArray<Waiting<Item, Outcome>>
  ): Effect.fn.Return<void> {
    const written = yield* Effect.onInterrupt(Effect.exit(write(projectId, batch)), () => abandon(batch))
    if (Exit.isFailure(written) && batch.length > 1 && isSplit(written.cause)) {
      for (const waiting of batch) yield* settle(projectId, [waiting])
      return
    }
    batch.forEach(({ outcome }, index) => {
      Deferred.doneUnsafe(
        outcome,
        Exit.map(written, (outcomes) => outcomes[index] as Outcome)
      )
    })
  })

  const drain = Effect.fnUntraced(function* (projectId: ProjectId, line: Array<Waiting<Item, Outcome>>) {
    // Items submitted in the same moment go together.
    yield* Effect.yieldNow
    while (line.length > 0) yield* settle(projectId, nextBatch(line))
    lines.delete(projectId)
  })

  const enqueue = (projectId: ProjectId, waiting: Waiting<Item, Outcome>) => {
    const line = lines.get(projectId)
    if (line !== undefined) return void line.push(waiting)
    const begun = [waiting]
    lines.set(projectId, begun)
    runFork(Effect.onInterrupt(drain(projectId, begun), () => abandon(begun)))
  }

  const withdraw = (projectId: ProjectId, waiting: Waiting<Item, Outcome>): boolean => {
    const line = lines.get(projectId) ?? []
    const index = line.indexOf(waiting)
    if (index < 0) return false
    line.splice(index, 1)
    return true
  }

  const submit = (projectId: ProjectId, item: Item): Effect.Effect<Outcome> =>
    Effect.suspend(() => {
      const waiting = { item, bytes: options.bytesOf(item), outcome: Deferred.makeUnsafe<Outcome>() }
      enqueue(projectId, waiting)
      return Effect.onInterrupt(Deferred.await(waiting.outcome), () =>
        Effect.suspend(() =>
          withdraw(projectId, waiting) ? Effect.void : Effect.ignoreCause(Deferred.await(waiting.outcome))
        )
      )
    }).pipe(places.withPermit)

  const groupCommit: GroupCommit<Item, Outcome> = { submit }
  return groupCommit
})

const touchesNothing: Touched = { alone: [], shared: [] }

/** Whether one item may have failed the batch: then the others are written without it. */
const isSplit = (cause: Cause.Cause<never>): boolean => !Cause.hasInterrupts(cause) && !isBrokenByAway(cause)

// Batches look-ups by key: those that arrive during a query form the next one.
//
// **Invariant**: an answer was read after its request arrived. Nothing is cached, so nothing has to be invalidated.

interface Lookup<A> {
  readonly keys: Set<string>
  readonly answer: Deferred.Deferred<ReadonlyMap<string, A>>
}

/** Creates the look-up of a key; `ask` returns what it found, by key, and dies on a failure. */
export const makeLookups = Effect.fnUntraced(function* <A>(
  ask: (keys: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, A>>
) {
  // A query belongs to all of its callers, and goes on when one is interrupted.
  const runFork = yield* FiberSet.makeRuntime()
  let next: Lookup<A> | undefined
  let isBusy = false

  const run = ({ answer, keys }: Lookup<A>) =>
    Effect.flatMap(Effect.exit(ask([...keys])), (found) => Deferred.done(answer, found))

  const drain = Effect.gen(function* () {
    // Requests of the same moment go together.
    yield* Effect.yieldNow
    while (next !== undefined) {
      const lookup = next
      next = undefined
      // A slow query does not delay later ones: its connection may be dead.
      yield* Effect.timeoutOption(Fiber.await(runFork(run(lookup))), poolLimits.lookupWaitMs)
    }
    isBusy = false
  })

  return (key: string): Effect.Effect<A | undefined> =>
    Effect.suspend(() => {
      next ??= { keys: new Set(), answer: Deferred.makeUnsafe() }
      next.keys.add(key)
      const { answer } = next
      if (!isBusy) {
        isBusy = true
        runFork(drain)
      }
      return Effect.map(Deferred.await(answer), (found) => found.get(key))
    })
})
