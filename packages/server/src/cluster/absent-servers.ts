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
 *
 * A server that can give no sign of life sees that by itself: while another one
 * does, it takes no runs, and it never judges others. Where nobody is seen, nobody
 * is missed: all go on, and leases end by themselves.
 */
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie } from "../database/database.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import { Presence } from "../run/presence.ts"
import { clusterLimits } from "./cluster-limits.ts"

/** Says who works at an address from now on: whoever did before is gone. */
export const enter = (address: string, worker: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`
      insert into kb_cluster.workers (address, worker_id) values (${address}, ${worker})
      on conflict (address) do update set worker_id = excluded.worker_id`
  }).pipe(orDie)

/** Looks for ever for workers whose server is gone, and ends their leases; says when this server is one that others miss. */
export const watchForAbsent = (ownWorker: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const presence = yield* Presence
    let missedBefore: ReadonlySet<string> = new Set()
    let judgesFromMs = 0

    const look = Effect.gen(function* () {
      const silence = sql`${clusterLimits.silenceMs / 1_000}::float8`
      const rows = yield* sql<{ worker: string; isSeen: boolean }>`
        select entered.worker_id as worker, true as is_seen
        from kb_cluster.workers entered join kb_cluster.tropism_runners server on server.address = entered.address
        where server.last_heartbeat > now() - make_interval(secs => ${silence})
        union all select absent.worker, false from kb.absent_workers(${silence}) as absent(worker)`
      const seen = rows.filter(({ isSeen }) => isSeen)
      const isSeen = seen.some(({ worker }) => worker === ownWorker)
      yield* presence.tell(!isSeen && seen.length > 0)
      const judges = isSeen && (yield* Clock.currentTimeMillis) >= judgesFromMs
      const missed = judges ? rows.filter((row) => !row.isSeen).map(({ worker }) => worker) : []
      yield* lapse(missed.filter((worker) => missedBefore.has(worker)))
      missedBefore = new Set(missed)
    })

    // Who cannot ask knows of nobody, not even of itself, and after that all may have been kept from giving a sign.
    const afterFault = Effect.gen(function* () {
      missedBefore = new Set()
      judgesFromMs = (yield* Clock.currentTimeMillis) + clusterLimits.graceMs
      yield* presence.tell(true)
    })

    // The pause comes first: who has just entered has not said yet that it lives.
    return yield* Effect.sleep(clusterLimits.lookMs).pipe(
      Effect.andThen(look),
      Effect.catchCause(() => afterFault),
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
