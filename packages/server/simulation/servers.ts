/**
 * The servers of a simulation, on one database: where one dies another starts after a while.
 *
 * When they settle, some are gone for good and the others stay; where one of
 * those ends after all, the next one starts at once.
 */
import { Deferred, Effect, type Exit } from "effect"
import type { Chance } from "./chance.ts"
import { leaseLapseMs, pass } from "./passing-time.ts"
import { type Ground, type Server, startServer, type WholeServer } from "./server-life.ts"

export interface Servers {
  readonly up: () => ReadonlyArray<Server>
  /** Asks a server that is up; waits for one while there is none. */
  readonly ask: <A, E>(effect: Effect.Effect<A, E, WholeServer>) => Effect.Effect<Exit.Exit<A, E> | "lost">
  /** Lets some die for good and the others stay up, at least one; done when just those are up. */
  readonly settle: Effect.Effect<void>
}

const restartWithinMs = 1_500

/** Keeps so many servers up. */
export const keepServers = Effect.fnUntraced(function* (ground: Ground, count: number, chance: Chance) {
  const running: Array<Server | undefined> = []
  /** How many stay, those in the first places: all until they settle. */
  let staying = count
  const stays = (slot: number): boolean => slot < staying
  const settled = yield* Deferred.make<void>()
  /** A machine that is down comes back after a while, or at once when the servers settle. */
  const downtime = Effect.gen(function* () {
    yield* Effect.sleep(chance.between(1, restartWithinMs))
    if (chance.oneIn(2)) yield* pass(ground.conductor.clock, leaseLapseMs)
  })
  const keep = Effect.fnUntraced(function* (slot: number) {
    for (let life = 1; stays(slot); life++) {
      const server = startServer(ground, `server ${slot + 1}.${life}`)
      running[slot] = server
      yield* server.ended
      running[slot] = undefined
      yield* Effect.raceFirst(downtime, Deferred.await(settled))
    }
  })
  for (let slot = 0; slot < count; slot++) yield* Effect.forkScoped(keep(slot))
  const up = () => running.filter((server) => server?.isUp() === true) as ReadonlyArray<Server>
  const ask: Servers["ask"] = Effect.fnUntraced(function* (effect) {
    while (true) {
      const [first, ...rest] = up()
      if (first !== undefined) {
        const answered = yield* chance.pick([first, ...rest]).ask(effect)
        return answered.type === "lost" ? "lost" : answered.exit
      }
      yield* Effect.sleep(200)
    }
  })
  const settle = Effect.gen(function* () {
    const luck = chance.fork("settling")
    staying = luck.oneIn(2) ? count : luck.between(1, count)
    for (const [slot, server] of running.entries()) {
      if (server === undefined) continue
      if (stays(slot)) server.program.sleepsUntilTurn = 0
      else ground.conductor.doom(server.program)
    }
    yield* Deferred.succeed(settled, undefined)
    while (up().length !== staying) yield* Effect.sleep(1)
  })
  return { up, ask, settle } satisfies Servers
})
