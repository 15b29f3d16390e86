/**
 * One simulation: servers, people, time and faults, all drawn from one seed.
 *
 * A project of its own is made, agents are set up, and then everything happens
 * at once: people write and review, servers work and die, others start on what
 * the database holds. When nothing is left to do the rows are read and every
 * checker looks at them. What is answered says what broke, with the seed that
 * repeats it.
 */
import type { Agent, AgentInput } from "@tropism/domain/agent"
import type { ProjectId, UserId } from "@tropism/domain/ids"
import { type Context, Effect, Exit, Cause, Queue } from "effect"
import { Agents } from "../src/agent/agents.ts"
import { Database } from "../src/database/database.ts"
import { Projects } from "../src/database/projects.ts"
import type { Models } from "../src/model/models.ts"
import * as agents from "./agents.ts"
import { type Chance, chanceOf } from "./chance.ts"
import { check } from "./checkers.ts"
import { type Conductor, makeConductor } from "./conductor.ts"
import { type Deed, drawFaults, type Fault, followFaults } from "./faults.ts"
import { drained, leaseLapseMs, nightMs, pass } from "./passing-time.ts"
import { type Acknowledged, askInProject, cancel, type Person, review, talk, write } from "./people.ts"
import { makeProgram } from "./program.ts"
import type { Complaint, Remains } from "./remains.ts"
import { readRows } from "./rows.ts"
import { newSalt, seededIds } from "./seeded-ids.ts"
import { type Ground, runtimeOf, type Server, type WholeServer, startServer } from "./server-life.ts"
import { sqlLayer } from "./sql-seam.ts"
import type { Lender } from "./line.ts"

/** What all simulations of one process share. */
export interface Surroundings {
  readonly models: Context.Context<Models>
  /** Logs in as the server's role. */
  readonly serverLender: Lender
  /** Logs in as the owner. */
  readonly ownerLender: Lender
  readonly isBlocked: (processId: number) => Promise<boolean>
}

export interface Report {
  readonly seed: number
  readonly complaints: ReadonlyArray<Complaint>
  readonly faults: ReadonlyArray<Fault>
  readonly turns: number
  /** Whether the seed alone decided everything: false when several statements waited for one lock. */
  readonly isRepeatable: boolean
  readonly project: { readonly id: ProjectId; readonly remains: Remains } | undefined
}

/** What to tell of a seed that broke something. */
export const reportText = ({ seed, complaints, faults, turns, isRepeatable }: Report): string =>
  [
    `seed ${seed}: ${complaints.length} complaints after ${turns} turns`,
    ...complaints.slice(0, mostComplaintsTold).map(({ checker, detail }) => `  ${checker}: ${detail}`),
    ...faults.map((fault) => `  fault: ${JSON.stringify(fault)}`),
    `  alone: npm run simulate -- --seed ${seed} --trace${isRepeatable ? "" : " (repeat it: several statements waited for one lock)"}`
  ].join("\n")

const mostComplaintsTold = 20

/** Far more than any seed needs; whatever reaches it goes round in circles. */
const maxTurns = 60_000
const drainLooks = 500
const scheduleMs = 300_000

/** Simulates one seed. */
export const simulate = async (
  surroundings: Surroundings,
  seed: number,
  trace?: (line: string) => void
): Promise<Report> => {
  const chance = chanceOf(String(seed))
  const deeds = Effect.runSync(Queue.unbounded<Deed>())
  const plan = followFaults(drawFaults(chance.fork("faults")), (deed) => void Queue.offerUnsafe(deeds, deed))
  const conductor = makeConductor({
    chance: chance.fork("turns"),
    fateOf: ({ program }) => (program.name === "world" ? "go" : plan.statement()),
    isBlocked: surroundings.isBlocked,
    trace
  })
  const errors: Array<string> = []
  const ground: Ground = {
    conductor,
    plan,
    ids: seededIds(conductor.clock.nowMs, newSalt()),
    models: surroundings.models,
    lender: surroundings.serverLender,
    chance,
    hearError: (line) => {
      trace?.(`ERROR ${line}`)
      errors.push(line)
    }
  }
  const program = makeProgram("world")
  let outcome: Exit.Exit<Played> | undefined
  const world = makeWorld(ground, deeds, plan.begin, chance.fork("world"))
  Effect.runForkWith(runtimeOf(conductor, program, chance))(
    Effect.provide(world, sqlLayer(conductor, program, surroundings.ownerLender))
  ).addObserver((exit) => void (outcome = exit))
  const stuck = await conductor
    .play(() => outcome !== undefined, maxTurns)
    .then(
      () => undefined,
      (error: unknown) => String(error)
    )
  await conductor.endAll()
  const told = { seed, faults: plan.struck, turns: conductor.turns(), isRepeatable: !conductor.hasRaced() }
  if (outcome === undefined || Exit.isFailure(outcome)) {
    const broken = outcome === undefined ? (stuck ?? "") : Cause.pretty(outcome.cause)
    const complaints = [broken, ...errors].map((detail) => ({ checker: "drained", detail }))
    return { ...told, project: undefined, complaints }
  }
  const { projectId, acknowledged, isDrained } = outcome.value
  const rows = await Effect.runPromise(readRows(surroundings.ownerLender, projectId))
  const remains: Remains = { ...rows, acknowledged, errors, hasBrokenLines: plan.struck.some(breaksLines) }
  const undone = isDrained ? [] : [{ checker: "drained", detail: "Work was left that nobody did" }]
  return { ...told, project: { id: projectId, remains }, complaints: [...undone, ...check(remains)] }
}

const breaksLines = (fault: Fault): boolean => fault.kind === "statement" && fault.fate.startsWith("break")

interface Played {
  readonly projectId: ProjectId
  readonly acknowledged: Acknowledged
  readonly isDrained: boolean
}

/** Everything but the servers' own work. */
const makeWorld = (ground: Ground, deeds: Queue.Dequeue<Deed>, beginFaults: () => void, chance: Chance) =>
  Effect.gen(function* () {
    const servers = yield* keepServers(ground, chance.oneIn(2) ? 2 : 1, chance.fork("restarts"))
    const { projectId, casting } = yield* setUp(servers, chance.fork("agents"))
    beginFaults()
    yield* Effect.forkScoped(doDeeds(deeds, servers, ground.conductor, chance.fork("deeds")))
    const acknowledged: Acknowledged = { changes: [], approved: [], rejected: [], said: [] }
    const ask = askInProject(projectId, (effect) => servers.ask(effect))
    const person = (name: string): Person => ({ chance: chance.fork(name), ask, acknowledged })
    const busy = [
      write(person("writer")),
      review("bob", person("bob")),
      review("eve", person("eve")),
      ...(casting.talker ? [talk(casting.talker, person("talker"))] : []),
      ...(casting.riser
        ? [Effect.andThen(Effect.sleep(chance.between(1, 1_000)), pass(ground.conductor.clock, scheduleMs))]
        : []),
      ...(chance.oneIn(5) ? [cancel(person("canceller"))] : [])
    ]
    yield* Effect.all(busy, { concurrency: busy.length, discard: true })
    const isDrained = yield* drained(ground.conductor.clock, projectId, drainLooks)
    return { projectId, acknowledged, isDrained } satisfies Played
  }).pipe(Effect.scoped, Effect.orDie)

interface Servers {
  readonly up: () => ReadonlyArray<Server>
  /** Asks a server that is up; waits for one while there is none. */
  readonly ask: <A, E>(effect: Effect.Effect<A, E, WholeServer>) => Effect.Effect<Exit.Exit<A, E> | "lost">
}

const restartWithinMs = 1_500

/** Keeps so many servers up: where one dies another starts after a while. */
const keepServers = Effect.fnUntraced(function* (ground: Ground, count: number, chance: Chance) {
  const running: Array<Server | undefined> = []
  const keep = Effect.fnUntraced(function* (slot: number) {
    for (let life = 1; ; life++) {
      const server = startServer(ground, `server ${slot + 1}.${life}`)
      running[slot] = server
      yield* server.ended
      running[slot] = undefined
      yield* Effect.sleep(chance.between(1, restartWithinMs))
      if (!chance.oneIn(4)) yield* pass(ground.conductor.clock, leaseLapseMs)
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

interface Casting {
  readonly talker: Agent | undefined
  readonly riser: Agent | undefined
}

/** Makes the project and its agents, before anything goes wrong. */
const setUp = Effect.fnUntraced(function* (servers: Servers, chance: Chance) {
  const done = <A, E>(effect: Effect.Effect<A, E, WholeServer>) =>
    Effect.flatMap(servers.ask(effect), (exit) =>
      exit === "lost" ? Effect.die(new Error("The server died while it was set up")) : exit
    )
  const project = yield* done(
    Effect.flatMap(Projects, (projects) => projects.create("Simulation", "ada" as UserId))
  )
  const make = (input: AgentInput) =>
    done(
      Effect.gen(function* () {
        const database = yield* Database
        return yield* database.inProject(project.id, (yield* Agents).create(input, "ada" as UserId))
      })
    )
  yield* make(agents.suggester(chance))
  if (chance.oneIn(3)) yield* make(agents.executor(chance))
  const casting: Casting = {
    talker: chance.oneIn(3) ? yield* make(agents.talker()) : undefined,
    riser: chance.oneIn(4) ? yield* make(agents.riser()) : undefined
  }
  return { projectId: project.id, casting }
})

/** Does what the fault plan asks for, to a server that is up. */
const doDeeds = Effect.fnUntraced(function* (
  deeds: Queue.Dequeue<Deed>,
  servers: Servers,
  conductor: Conductor,
  chance: Chance
) {
  while (true) {
    const deed = yield* Queue.take(deeds)
    const [first, ...rest] = servers.up()
    const server = first && chance.pick([first, ...rest])
    switch (deed.type) {
      case "lapse":
        conductor.clock.leap(leaseLapseMs)
        break
      case "night":
        conductor.clock.leap(nightMs)
        break
      case "freeze":
        if (server) server.program.sleepsUntilTurn = conductor.turns() + deed.turns
        if (deed.leasesLapse) yield* pass(conductor.clock, leaseLapseMs)
        break
      case "stop":
        if (server) yield* server.stop
        break
    }
  }
})
