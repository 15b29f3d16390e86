/**
 * Servers that call themselves by the same address: one has it, and the others are told so.
 */
import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, Layer, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { AddressTaken, enter, watchForAbsent } from "../src/cluster/absent-servers.ts"
import { nameOf } from "../src/cluster/peers.ts"
import { clusterLimits } from "../src/cluster/limits.ts"
import { poolLayer } from "../src/database/pool.ts"
import { Notifier } from "../src/outbox/notifier.ts"
import { PeerVisibility } from "../src/runs/liveness.ts"
import { StartFailure } from "../src/start-checks.ts"
import { freeAddress } from "../testing/cluster-servers.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { keptLines } from "../testing/kept-lines.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, newProject, startServer, storyKeys } from "../testing/platform.ts"
import { serverSql } from "../testing/server-sql.ts"
import { asTimePasses, passing, patientDatabase } from "../testing/shared-server.ts"
import { runsOf, silentFor, watcher } from "../testing/story-words.ts"

describe("An address of a cluster", () => {
  it.live("is taken by one worker, and by the next at once when that one has left", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const enterAs = (worker: string) => Effect.exit(enter("server-1:4500", worker))
      expect(Exit.isSuccess(yield* Effect.provideService(enterAs("one"), Scope.Scope, scope))).toBe(true)
      const sql = yield* SqlClient.SqlClient
      yield* sql`update kb_cluster.workers set seen_at = 'infinity'`
      const refused = yield* Effect.flip(enter("server-1:4500", "two"))
      expect(refused).toEqual(new AddressTaken({ address: "server-1:4500" }))
      expect(Exit.isSuccess(yield* Effect.exit(enter("server-2:4500", "two")))).toBe(true)
      // Nobody could wait until it is missed: only that it has left lets the next one in.
      yield* sql`update kb_cluster.workers set seen_at = 'infinity'`
      yield* Scope.close(scope, Exit.void)
      expect(Exit.isSuccess(yield* enterAs("two"))).toBe(true)
    }).pipe(Effect.provide(serverSql), Effect.scoped)
  )

  it.live("that another server has is refused at the start, in a sentence, and stays that server's", () =>
    Effect.gen(function* () {
      const access = { ...(yield* freshDatabase), embedded: false }
      const at = yield* freeAddress
      yield* ask(access, "insert into kb_cluster.workers (address, worker_id, seen_at) values ($1, $2, $3)", [
        nameOf(at),
        `${nameOf(at)}#other`,
        "infinity"
      ])
      const exit = yield* Effect.exit(startServer(access, [], undefined, undefined, storyKeys, at))
      const refusal = Exit.isFailure(exit) && Cause.squash(exit.cause)
      expect(refusal).toBeInstanceOf(StartFailure)
      for (const value of [nameOf(at), "TROPISM_CLUSTER_ADDRESS"])
        expect(refusal).toHaveProperty("message", expect.stringContaining(value))
      expect(yield* ask(access, "select worker_id from kb_cluster.workers")).toEqual([
        [`${nameOf(at)}#other`]
      ])
    }).pipe(Effect.scoped)
  )

  it.live("at which the others do not reach a server is told in its log, and when they do again", () =>
    Effect.gen(function* () {
      const access = { ...(yield* freshDatabase), embedded: false }
      const at = yield* freeAddress
      const { codes, logger, said } = keptLines()
      // What those who look say of it stands in its row.
      for (const statement of [
        "create function kb_cluster.unreached() returns trigger language plpgsql as $$ begin new.healthy := false; return new; end $$",
        "create trigger unreached before insert or update on kb_cluster.tropism_runners for each row execute function kb_cluster.unreached()"
      ])
        yield* ask(access, statement)
      yield* startServer(access, [logger], undefined, undefined, storyKeys, at)
      const told = (code: string) =>
        Effect.sync(() => said.filter((line, index) => codes[index] === code && line.includes(nameOf(at))))
      yield* eventually(told("unreached"), ({ length }) => length === 1)
      yield* ask(access, "drop trigger unreached on kb_cluster.tropism_runners")
      yield* ask(access, "update kb_cluster.tropism_runners set healthy = true")
      yield* eventually(told("reached"), ({ length }) => length === 1)
      expect(yield* told("unreached")).toHaveLength(1)
    }).pipe(Effect.scoped)
  )

  it.live(
    "that another server took meanwhile is missed by the one that had it, until the other is gone",
    () =>
      Effect.gen(function* () {
        const access = { ...(yield* freshDatabase), embedded: false }
        const at = yield* freeAddress
        const { codes, logger } = keptLines()
        const doors = yield* startServer(access, [logger], undefined, undefined, storyKeys, at)
        const story = yield* newProject(doors, access)
        const agent = yield* story.post("/agents", watcher({ triggerType: "manual", reactionConfig: null }))
        const displace = (seenAt: string) =>
          ask(access, "update kb_cluster.workers set worker_id = $1, seen_at = $2 where address = $3", [
            `${nameOf(at)}#other`,
            seenAt,
            nameOf(at)
          ])
        yield* displace("infinity")
        const warnings = Effect.sync(() => codes.filter((code) => code === "addressTaken"))
        yield* eventually(warnings, ({ length }) => length === 1)
        yield* eventually(
          Effect.sync(() => codes),
          (told) => told.includes("unseen")
        )
        const run = yield* story.post(`/agents/${agent.id}/trigger?wait=false`, {})
        yield* eventually(
          ask(
            access,
            "select from kb.agent_runs where id = $1 and status = 'queued' and created_at < now() - interval '2 s'",
            [run.id]
          ),
          ({ length }) => length === 1
        )
        yield* displace("-infinity")
        yield* eventually(story.get(`/runs/${run.id}`), ({ status }) => status === "completed")
        expect(yield* warnings).toHaveLength(1)
      }).pipe(Effect.scoped)
  )
})

describe("A server that has just started", () => {
  it.effect("takes nobody for dead who may have been kept from giving a sign, until they could", () =>
    Effect.gen(function* () {
      const access = { ...(yield* patientDatabase), embedded: false }
      const story = yield* newProject(yield* startServer(access), access)
      const agent = yield* story.post(
        "/agents",
        watcher({ triggerType: "manual", reactionConfig: null, model: silentFor(600_000) })
      )
      yield* story.post(`/agents/${agent.id}/trigger?wait=false`, {})
      yield* eventually(runsOf(story, agent), ([run]) => run.status === "running")
      for (const statement of [
        "update kb.agent_runs set worker_id = 'gone:4500#one', lease_expires_at = now() + interval '1 hour'",
        "insert into kb_cluster.workers (address, worker_id) values ('here:4500', 'here:4500#own')",
        "insert into kb_cluster.tropism_runners (address, runner, last_heartbeat) values ('here:4500', '', 'infinity')"
      ])
        yield* ask(access, statement)
      const isFree = Effect.map(
        // Whoever takes it over is another.
        ask(
          access,
          "select lease_expires_at <= now() or worker_id is distinct from 'gone:4500#one' from kb.agent_runs"
        ),
        ([row]) => row?.[0] === true
      )
      yield* watchForAbsent("here:4500", "here:4500#own").pipe(
        Effect.provide(
          PeerVisibility.layer.pipe(
            Layer.provideMerge(Notifier.layer),
            Layer.provideMerge(
              poolLayer({ url: access.serverUrl, startupParameters: access.serverStartupParameters })
            )
          )
        ),
        Effect.forkScoped
      )
      yield* passing(clusterLimits.graceMs - clusterLimits.lookMs, clusterLimits.lookMs / 2)
      expect(yield* isFree).toBe(false)
      yield* asTimePasses(clusterLimits.lookMs / 2, isFree, (free) => free)
    }).pipe(Effect.scoped)
  )
})
