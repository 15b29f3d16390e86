/**
 * Group commit: items that arrive while a batch is being written form the next batch.
 *
 * Each project has one batch under way. An item that comes while none is goes at once, so an idle server adds no delay. A batch
 * that fails for another reason than an unreachable database is written again item by item: one bad row does not fail the rest.
 *
 * **Invariant** An item's submitter gets its outcome only after its batch has been committed. Interrupting the submitter withdraws an item that is
 * in no batch yet; an item in a batch runs to its end first.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Cause, Deferred, Effect, Exit, FiberSet, Semaphore, Fiber } from "effect"
import { CrashPoint } from "../crash-point.ts"
import { isBrokenByAway } from "./connection-errors.ts"
import { poolLimits } from "./limits.ts"

/** What a batch may hold, and how many items may wait for one. */
export interface GroupCommitLimits {
  readonly batchItems: number
  readonly batchBytes: number
  /** Items of all projects; further submitters wait. */
  readonly waitingItems: number
}

/** What an item touches: a batch has one item for each that is touched alone, and then none that shares it. */
export interface Touched {
  readonly alone: ReadonlyArray<string>
  readonly shared: ReadonlyArray<string>
}

export interface GroupCommit<Item, Outcome> {
  /** Hands an item to the next batch of its project and answers its outcome, which is committed. */
  readonly submit: (projectId: ProjectId, item: Item) => Effect.Effect<Outcome>
}

interface Waiting<Item, Outcome> {
  readonly item: Item
  readonly bytes: number
  readonly outcome: Deferred.Deferred<Outcome>
}

export const makeGroupCommit = Effect.fnUntraced(function* <Item, Outcome>(options: {
  /** Writes items in one transaction and answers their outcomes in the same order; dies where it breaks. */
  readonly write: (projectId: ProjectId, items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Outcome>>
  /** About how many bytes an item sends to the database. */
  readonly bytesOf: (item: Item) => number
  /** What an item touches, where two of one batch may be in each other's way: the later one goes to a later batch. */
  readonly touches?: (item: Item) => Touched
  readonly limits: GroupCommitLimits
}) {
  const { batchBytes, batchItems, waitingItems } = options.limits
  const places = yield* Semaphore.make(waitingItems)
  /** The items that wait, by project; a project without a batch under way is not in it. */
  const lines = new Map<ProjectId, Array<Waiting<Item, Outcome>>>()
  // The batches belong to this scope and not to the submitter, whose transaction or interruption is not theirs.
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
      // What must wait is noted too, so that nothing overtakes it.
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

  /** The scope ends: submitters that wait are interrupted, or they would wait forever. */
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
    // What is submitted in the same moment goes together.
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

/** Whether one item may have broken the batch: then the others are written without it. */
const isSplit = (cause: Cause.Cause<never>): boolean => !Cause.hasInterrupts(cause) && !isBrokenByAway(cause)

// Look-ups by key, many in one question: those that arrive while one is under way are the next.
//
// **Invariant** An answer was read after the question came. Nothing is kept between look-ups, so nothing has to be invalidated.

interface Lookup<A> {
  readonly keys: Set<string>
  readonly answer: Deferred.Deferred<ReadonlyMap<string, A>>
}

/** Makes the look-up of a key; `ask` answers what it found, by key, and dies where the database breaks. */
export const makeLookups = Effect.fnUntraced(function* <A>(
  ask: (keys: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, A>>
) {
  // A look-up belongs to all who wait for it, and goes on when one of them goes away.
  const runFork = yield* FiberSet.makeRuntime()
  let next: Lookup<A> | undefined
  let isBusy = false

  const run = ({ answer, keys }: Lookup<A>) =>
    Effect.flatMap(Effect.exit(ask([...keys])), (found) => Deferred.done(answer, found))

  const drain = Effect.gen(function* () {
    // What is asked in the same moment goes together.
    yield* Effect.yieldNow
    while (next !== undefined) {
      const lookup = next
      next = undefined
      // One that takes long holds up nobody who comes later: its connection may be silent.
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
