/**
 * Frees the runs of servers that are gone.
 *
 * Flow: everything on the stairs below **cluster**
 *
 * A run's lease ends by itself a while after its worker has died. Where servers
 * know each other the wait is shorter: whose server gave no sign of life, seen at
 * two looks, has its leases ended, and others take over as they do with any
 * lease that has ended. Who was only frozen finds its attempt gone, and writes
 * nothing. Each server looks, so that the one that looks cannot be the one that died.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie } from "../database/database.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import { clusterLimits } from "./cluster-limits.ts"

/** Says who works at an address from now on: whoever did before is gone. */
export const enter = (address: string, worker: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`
      insert into kb_cluster.workers (address, worker_id) values (${address}, ${worker})
      on conflict (address) do update set worker_id = excluded.worker_id`
  }).pipe(orDie)

/** Looks for ever for workers whose server is gone, and ends their leases. */
export const watchForAbsent = (ownWorker: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    let missedBefore: ReadonlySet<string> = new Set()

    const look = Effect.gen(function* () {
      const rows = yield* sql<{
        worker: string
      }>`select kb.absent_workers(${clusterLimits.silenceMs / 1_000}::float8) as worker`
      const missed = rows.map(({ worker }) => worker).filter((worker) => worker !== ownWorker)
      yield* lapse(missed.filter((worker) => missedBefore.has(worker)))
      missedBefore = new Set(missed)
      return clusterLimits.lookMs
    })

    // Who cannot ask knows of nobody, and after that all may have been kept from giving a sign.
    const afterFault = Effect.sync(() => {
      missedBefore = new Set()
      return clusterLimits.graceMs
    })

    return yield* look.pipe(
      Effect.catchCause(() => afterFault),
      Effect.flatMap((pauseMs) => Effect.sleep(pauseMs)),
      Effect.forever
    )
  })

const lapse = Effect.fnUntraced(function* (workers: ReadonlyArray<string>) {
  if (workers.length === 0) return
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ lapsed: number }>`select kb.lapse_workers(${workers}::text[]) as lapsed`
  if (row === undefined || row.lapsed === 0) return
  yield* Effect.logWarning(
    `A server is gone and ${row.lapsed} of its runs are free: ${workers.map((worker) => worker.split("#")[0]).join(", ")}`
  )
  yield* (yield* WakeUps).signal("runs")
})
