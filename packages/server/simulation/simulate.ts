/**
 * One simulation: servers, people, time and faults, all drawn from one seed.
 *
 * A project of its own is made, agents are set up, and then everything happens
 * at once: people write and review, servers work and die, others start on what
 * the database holds. That is the phase of safety; in that of liveness nothing
 * goes wrong any more, and everything becomes final (`phases.ts`). Then the rows
 * are read and every checker looks at them. What is answered says what broke,
 * with the seed that repeats it.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Cause, Context, Effect, Exit, Queue } from "effect"
import { Models } from "../src/models/models.ts"
import { chanceOf } from "./chance.ts"
import { check } from "./checkers.ts"
import { makeConductor } from "./conductor.ts"
import { drawFaults } from "./drawing-faults.ts"
import { type Deed, type Fault, followFaults, wordsOfFault } from "./faults.ts"
import { withGuard } from "./guards.ts"
import { makeInbox } from "./inbox.ts"
import type { Lender } from "./line.ts"
import type { Phases } from "./phases.ts"
import { makePost } from "./post.ts"
import { makeProgram } from "./program.ts"
import type { Complaint, Remains } from "./remains.ts"
import { makeRadio } from "./radio.ts"
import { readRows } from "./rows.ts"
import { makeShop } from "./shop.ts"
import { newSalt, seededIds } from "./seeded-ids.ts"
import { type Ground, runtimeOf } from "./server-life.ts"
import { sqlLayer } from "./sql-seam.ts"
import { withWeather } from "./weather.ts"
import { type Played, playWorld } from "./world.ts"

/** What all simulations of one process share. */
export interface Surroundings {
  readonly models: Models["Service"]
  /** Logs in as the server's role. */
  readonly serverLender: Lender
  /** Logs in as the owner. */
  readonly ownerLender: Lender
  readonly blockersOf: (processId: number) => Promise<ReadonlyArray<number>>
}

export interface Report {
  readonly seed: number
  readonly complaints: ReadonlyArray<Complaint>
  readonly faults: ReadonlyArray<Fault>
  readonly turns: number
  /** How its phases went; undefined where it came to no end. */
  readonly phases: Phases | undefined
  /** Whether the seed alone decided everything: false when several statements waited for one lock. */
  readonly isRepeatable: boolean
  readonly project: { readonly id: ProjectId; readonly remains: Remains } | undefined
}

/** What to tell of a seed that broke something. */
export const reportText = ({ complaints, faults, isRepeatable, phases, seed, turns }: Report): string =>
  [
    `seed ${seed}: ${complaints.length} complaints after ${turns} turns${phases ? `, ${seconds(phases.safetyMs)} of safety and ${seconds(phases.livenessMs)} of liveness` : ""}`,
    ...complaints.slice(0, mostComplaintsTold).map(({ checker, detail }) => `  ${checker}: ${detail}`),
    ...faults.map((fault) => `  fault: ${JSON.stringify(fault)}`),
    `  alone: npm run simulate -- --seed ${seed} --trace${isRepeatable ? "" : " (repeat it: several statements waited for one lock)"}`
  ].join("\n")

/** Milliseconds of the simulation's time, in words. */
export const seconds = (ms: number): string => `${Math.round(ms / 1_000)} s`

/** Under this name it is told that something did not become final. */
export const livenessChecker = "liveness"

const mostComplaintsTold = 20

/** Far more than any seed needs; whatever reaches it goes round in circles. */
const maxTurns = 60_000

/** Simulates one seed, or the beginning of it: once it is told to stop, it ends every program. */
export const simulate = async (
  surroundings: Surroundings,
  seed: number,
  trace?: (line: string) => void,
  signal?: AbortSignal
): Promise<Report> => {
  const chance = chanceOf(String(seed))
  const deeds = Effect.runSync(Queue.unbounded<Deed>())
  const plan = followFaults(
    drawFaults(chance.fork("faults"), seed),
    (deed) => void Queue.offerUnsafe(deeds, deed)
  )
  const conductor = makeConductor({
    chance: chance.fork("turns"),
    fateOf: ({ program, text }) => (program.name === "world" ? "go" : plan.statement(text)),
    isPrompt: plan.hasEnded,
    blockersOf: surroundings.blockersOf,
    trace,
    signal
  })
  const errors: Array<string> = []
  const ground: Ground = {
    conductor,
    plan,
    ids: seededIds(conductor.clock.nowMs, newSalt()),
    models: Context.make(Models, withGuard(withWeather(surroundings.models, plan))),
    lender: surroundings.serverLender,
    chance,
    radio: makeRadio(chance.fork("radio")),
    shop: makeShop(chance.fork("shop")),
    inbox: makeInbox(chance.fork("inbox")),
    post: chance.fork("post").oneIn(3) ? undefined : makePost(chance.fork("letters")),
    hearError: (line) => {
      trace?.(`ERROR ${line}`)
      errors.push(line)
    }
  }
  const program = makeProgram("world")
  let outcome: Exit.Exit<Played> | undefined
  const world = playWorld(ground, deeds, seed, chance.fork("world"))
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
    const complaints = [broken, ...errors].map((detail) => ({ checker: livenessChecker, detail }))
    return { ...told, phases: undefined, project: undefined, complaints }
  }
  const { acknowledged, calmSinceMs, phases, projectId } = outcome.value
  const rows = await Effect.runPromise(readRows(surroundings.ownerLender, projectId))
  const remains: Remains = {
    ...rows,
    acknowledged,
    calmSinceMs,
    deeds: ground.shop.deeds,
    errors,
    excuses: plan.struck.flatMap(wordsOfFault)
  }
  const undone = phases.overdue.map((detail) => ({ checker: livenessChecker, detail }))
  return { ...told, phases, project: { id: projectId, remains }, complaints: [...undone, ...check(remains)] }
}
