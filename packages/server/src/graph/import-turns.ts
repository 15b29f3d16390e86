/**
 * How much of all imports a server works on at once, whatever is imported.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * A lockfile is in memory as a whole while it is read and carried out, and a
 * batch holds a connection; a server has little of both. Nothing of a lockfile is
 * read before its turn has come.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Semaphore } from "effect"
import { makeTurns } from "../database/slow-readers.ts"
import { transferLimits } from "../limits.ts"

export class ImportTurns extends Context.Service<
  ImportTurns,
  {
    /** Commits a batch of any import. */
    readonly batch: <A, E, R>(commit: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    /** Reads a lockfile and carries it out, one of a project at a time. */
    readonly lockfile: <A, E, R>(projectId: ProjectId, work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  }
>()("@tropism/server/graph/ImportTurns") {
  static readonly layer = Layer.effect(
    ImportTurns,
    Effect.gen(function* () {
      const batches = yield* Semaphore.make(transferLimits.concurrentBatches)
      const lockfile = yield* makeTurns(transferLimits.concurrentLockfiles)
      return ImportTurns.of({ batch: batches.withPermits(1), lockfile })
    })
  )
}
