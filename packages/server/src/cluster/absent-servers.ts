/**
 * Expires the leases of servers that are gone.
 *
 * A dead worker's lease expires by itself after a while. In a cluster this is faster: a server without a heartbeat at two checks has its
 * leases expired, and others take over as after any expiry. A server that was only frozen finds its attempt token invalid and writes
 * nothing. Every server checks, so that the checker cannot be the dead one.
 *
 * Two servers with one address would send the same heartbeats, so each worker also registers itself: an address in use cannot be taken.
 *
 * A server that cannot send heartbeats notices it: while another one can, it claims no runs, and it never judges others. Where no peer is
 * visible, none counts as gone: all continue, and leases expire by themselves.
 */
import { Clock, Effect, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { orDie } from "../database/database.ts"
import { Notifier } from "../outbox/notifier.ts"
import { PeerVisibility } from "../runs/liveness.ts"
import { clusterLimits } from "./limits.ts"

/** Another server is running with this address. */
export class AddressTaken extends Schema.TaggedError<AddressTaken>()("AddressTaken", {
  address: Schema.String
}) {}

/** Advice for servers with the same address. */
export const ownAddresses = (address: string) =>
  `Another server works under the address ${address}: give each server a TROPISM_CLUSTER_ADDRESS of its own, at which the others reach it.`

/** Advice for a server that its peers cannot reach; it processes runs nonetheless. */
export const unreached = (address: string) =>
  `The other servers do not reach this one at ${address}, so nothing that goes on at one server at a time goes on here: set TROPISM_CLUSTER_ADDRESS to where they reach it, and let its port through.`

/**
 * Registers this worker for an address, until the scope ends.
 *
 * A worker that died there a moment ago may still count as alive, so it waits that long before it fails.
 */
export const enter = (address: string, worker: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { lookMs, silenceMs } = clusterLimits
    yield* takeAddress(address, worker).pipe(
      Effect.repeat({
        until: (isTaken) => isTaken,
        schedule: Schedule.max([Schedule.spaced(lookMs), Schedule.recurs(Math.ceil(silenceMs / lookMs) + 2)])
      }),
      Effect.filterOrFail(
        (isTaken) => isTaken,
        () => new AddressTaken({ address })
      )
    )
    // The next server at this address need not wait.
    yield* Effect.addFinalizer(() =>
      Effect.ignoreCause(
        sql`update kb_cluster.workers set seen_at = '-infinity' where address = ${address} and worker_id = ${worker}`
      )
    )
    yield* orDie(sql`
      delete from kb_cluster.workers gone where seen_at < now() - interval '1 day' and not exists (
        select from kb_cluster.tropism_runners server
        where server.address = gone.address and server.last_heartbeat > now() - interval '1 day')`)
  })

/** Takes an address without a recent heartbeat; returns whether it succeeded. */
const takeAddress = (address: string, worker: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql`
      insert into kb_cluster.workers as entered (address, worker_id) values (${address}, ${worker})
      on conflict (address) do update set worker_id = excluded.worker_id, seen_at = now()
      where entered.seen_at < now() - make_interval(secs => ${clusterLimits.silenceMs / 1_000}::float8)
      returning 1`
    return rows.length > 0
  }).pipe(orDie)

/** Watches endlessly for workers whose server is gone and expires their leases; warns when peers miss this server. */
export const watchForAbsent = (address: string, ownWorker: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const presence = yield* PeerVisibility
    let missedBefore: ReadonlySet<string> = new Set()
    // Before this time, the cause of this server's start may also have prevented others' heartbeats.
    let judgesFromMs = (yield* Clock.currentTimeMillis) + clusterLimits.graceMs
    let isDisplaced = false
    let looksUnreached = 0

    const sign = sql`
      update kb_cluster.workers set seen_at = now() where address = ${address} and worker_id = ${ownWorker}
        and seen_at < now() - make_interval(secs => ${clusterLimits.heartbeatMs / 1_000}::float8)`

    const look = Effect.gen(function* () {
      const silence = sql`${clusterLimits.silenceMs / 1_000}::float8`
      const rows = yield* sql<{ worker: string; isSeen: boolean | null; isReached: boolean | null }>`
        with sign as (${sign})
        select entered.worker_id as worker, true as is_seen, null::boolean as is_reached
        from kb_cluster.workers entered join kb_cluster.tropism_runners server on server.address = entered.address
        where server.last_heartbeat > now() - make_interval(secs => ${silence})
        union all select absent.worker, false, null from kb.absent_workers(${silence}) as absent(worker)
        union all select worker_id, null, (select healthy from kb_cluster.tropism_runners server where server.address = ${address})
        from kb_cluster.workers where address = ${address}`
      yield* tellReach(!rows.some(({ isReached }) => isReached === false))
      yield* keepAddress(rows.some(({ isSeen, worker }) => isSeen === null && worker === ownWorker))
      const seen = rows.filter(({ isSeen }) => isSeen)
      const isSeen = seen.some(({ worker }) => worker === ownWorker)
      yield* presence.tell(!isSeen && seen.length > 0)
      const judges = isSeen && (yield* Clock.currentTimeMillis) >= judgesFromMs
      const missed = judges ? rows.filter((row) => row.isSeen === false).map(({ worker }) => worker) : []
      yield* lapse(missed.filter((worker) => missedBefore.has(worker)))
      missedBefore = new Set(missed)
    })

    /** Warns after enough checks without being reached by peers, and when they reach it again; after a pause that takes a few checks. */
    const tellReach = Effect.fnUntraced(function* (isReached: boolean) {
      const before = looksUnreached
      looksUnreached = isReached ? 0 : before + 1
      if (looksUnreached === clusterLimits.unreachedLooks)
        yield* Effect.logWarning(unreached(address), { code: "unreached" })
      if (isReached && before >= clusterLimits.unreachedLooks)
        yield* Effect.logWarning(`This server is taken for reachable at ${address} again`, {
          code: "reached"
        })
    })

    /** A server that took the address while this one was frozen keeps it until it is gone. */
    const keepAddress = Effect.fnUntraced(function* (isOwn: boolean) {
      const isTaken = isOwn || (yield* takeAddress(address, ownWorker))
      if (!isTaken && !isDisplaced) yield* Effect.logWarning(ownAddresses(address), { code: "addressTaken" })
      isDisplaced = !isTaken
    })

    // While the database cannot be queried nothing is known about any server, this one included; afterwards others' heartbeats may have
    // been prevented, too.
    const afterFault = Effect.gen(function* () {
      missedBefore = new Set()
      judgesFromMs = (yield* Clock.currentTimeMillis) + clusterLimits.graceMs
      yield* presence.tell(true)
    })

    // Waits first: a server that has just registered has not sent a heartbeat yet.
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
  yield* (yield* Notifier).signal("runs")
})
