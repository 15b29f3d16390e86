/**
 * Frees the runs of servers that are gone.
 *
 * A run's lease ends by itself a while after its worker has died. Where servers
 * know each other the wait is shorter: whose server gave no sign of life, seen at
 * two looks, has its leases ended, and others take over as they do with any
 * lease that has ended. Who was only frozen finds its attempt gone, and writes
 * nothing. Each server looks, so that the one that looks cannot be the one that died.
 *
 * Two servers of one address would give the same signs of life, so each worker says besides that it is the one there: an
 * address is taken by nobody while another one has it.
 *
 * A server that can give no sign of life sees that by itself: while another one
 * does, it takes no runs, and it never judges others. Where nobody is seen, nobody
 * is missed: all go on, and leases end by themselves.
 */
import { Clock, Effect, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { orDie } from "../database/database.ts"
import { Notifier } from "../outbox/notifier.ts"
import { PeerVisibility } from "../runs/liveness.ts"
import { clusterLimits } from "./limits.ts"

/** Another server is at work under the address. */
export class AddressTaken extends Schema.TaggedError<AddressTaken>()("AddressTaken", {
  address: Schema.String
}) {}

/** What to do about servers that call themselves alike. */
export const ownAddresses = (address: string) =>
  `Another server works under the address ${address}: give each server a TROPISM_CLUSTER_ADDRESS of its own, at which the others reach it.`

/** What to do about a server that is where others do not find it; it works on runs all the same. */
export const unreached = (address: string) =>
  `The other servers do not reach this one at ${address}, so nothing that goes on at one server at a time goes on here: set TROPISM_CLUSTER_ADDRESS to where they reach it, and let its port through.`

/**
 * Says that this worker is the one at an address, until the scope ends.
 *
 * **Details** Whoever died there a moment ago may still be taken for alive: so long is waited before it fails.
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
    // Whoever starts here next need not wait.
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

/** Takes an address at which nobody has said for a while that they are there; answers whether it did. */
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

/** Looks for ever for workers whose server is gone, and ends their leases; says when this server is one that others miss. */
export const watchForAbsent = (address: string, ownWorker: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const presence = yield* PeerVisibility
    let missedBefore: ReadonlySet<string> = new Set()
    // Before that all may have been kept from giving a sign, by what also made this server start.
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

    /** What others find when they look whether this server answers: one that has just come back is looked for anew first. */
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

    /** Whoever came to the address while this server stood still has it, until it is gone. */
    const keepAddress = Effect.fnUntraced(function* (isOwn: boolean) {
      const isTaken = isOwn || (yield* takeAddress(address, ownWorker))
      if (!isTaken && !isDisplaced) yield* Effect.logWarning(ownAddresses(address), { code: "addressTaken" })
      isDisplaced = !isTaken
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
  yield* (yield* Notifier).signal("runs")
})
