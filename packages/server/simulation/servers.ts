/**
 * The servers of a simulation, on one database: where one dies another starts after a while.
 */
import { Effect, type Exit } from "effect"
import type { Chance } from "./chance.ts"
import { leaseLapseMs, pass } from "./passing-time.ts"
import { type Ground, type Server, startServer, type WholeServer } from "./server-life.ts"

export interface Servers {
  readonly up: () => ReadonlyArray<Server>
  /** Asks a server that is up; waits for one while there is none. */
  readonly ask: <A, E>(effect: Effect.Effect<A, E, WholeServer>) => Effect.Effect<Exit.Exit<A, E> | "lost">
}

const restartWithinMs = 1_500

/** Keeps so many servers up. */
export const keepServers = Effect.fnUntraced(function* (ground: Ground, count: number, chance: Chance) {
  const running: Array<Server | undefined> = []
  const keep = Effect.fnUntraced(function* (slot: number) {
    for (let life = 1; ; life++) {
      const server = startServer(ground, `server ${slot + 1}.${life}`)
      running[slot] = server
      yield* server.ended
      running[slot] = undefined
      yield* Effect.sleep(chance.between(1, restartWithinMs))
      if (chance.oneIn(2)) yield* pass(ground.conductor.clock, leaseLapseMs)
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
  return { up, ask } satisfies Servers
})
