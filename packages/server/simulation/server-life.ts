/**
 * A whole server inside a simulation: started, asked, frozen, stopped or killed.
 *
 * It is `platformLayer` with its loops, exactly as the program serves it, but
 * its clock, chance, ids, SQL and crash points are the simulation's. When it is
 * killed its fibers are left lying as they are: no finalizer runs, nothing is
 * said to the database, and whoever had asked it something learns only that the
 * connection is gone.
 */
import {
  Cause,
  Clock,
  Context,
  Effect,
  Exit,
  Fiber,
  Layer,
  Logger,
  Random,
  References,
  Scheduler
} from "effect"
import { CrashPoint } from "../src/crash-point.ts"
import { SealingKeys } from "../src/database/sealing.ts"
import { Ids } from "../src/ids.ts"
import { Readiness } from "../src/http/listener.ts"
import { Posting } from "../src/mcp/event-callbacks.ts"
import type { Models } from "../src/models/models.ts"
import { loops, platformLayer } from "../src/platform.ts"
import { DispatchPauseMs } from "../src/reactions/dispatcher.ts"
import { ConcurrentRuns } from "../src/runs/worker.ts"
import { simulatedSlots } from "./reacting.ts"
import type { Whom } from "../src/tools/external-mcp/oauth-grants.ts"
import { ExternalConnecting } from "../src/tools/external-mcp/client.ts"
import { EventQuestions } from "../src/tools/external-mcp/events.ts"
import type { Chance } from "./chance.ts"
import type { Conductor } from "./conductor.ts"
import type { FaultPlan } from "./faults.ts"
import type { Inbox } from "./inbox.ts"
import type { Post } from "./post.ts"
import type { Radio } from "./radio.ts"
import { makeProgram, type Program } from "./program.ts"
import type { Shop } from "./shop.ts"
import { sqlLayer } from "./sql-seam.ts"
import { sealingKeys } from "./subscriber.ts"
import type { Lender } from "./line.ts"

/** What every server of one simulation shares. */
export interface Ground {
  readonly conductor: Conductor
  readonly plan: FaultPlan
  readonly ids: (typeof Ids)["Service"]
  readonly models: Context.Context<Models>
  readonly lender: Lender
  readonly chance: Chance
  /** What carries wake-ups between the servers, if anything does. */
  readonly post: Post | undefined
  /** The foreign server that agents may hear. */
  readonly radio: Radio
  /** The foreign server whose tools agents may call. */
  readonly shop: Shop
  /** Where somebody is told of events. */
  readonly inbox: Inbox
  /** Told of everything that a server logs as an error. */
  readonly hearError: (line: string) => void
}

export type WholeServer = Layer.Success<typeof platformLayer>

/** The server died before it answered: nobody knows whether it did what it was asked. */
export type Answered<A, E> =
  | { readonly type: "answered"; readonly exit: Exit.Exit<A, E> }
  | { readonly type: "lost" }

export interface Server {
  readonly program: Program
  /** Whether it has started and not ended. */
  readonly isUp: () => boolean
  /** Asks it to do something, as a request through a door would. */
  readonly ask: <A, E>(effect: Effect.Effect<A, E, WholeServer>) => Effect.Effect<Answered<A, E>>
  /** Stops it in order, as a signal would. */
  readonly stop: Effect.Effect<void>
  /** Waits until it is dead; a server that could not live at all is a defect. */
  readonly ended: Effect.Effect<void>
}

/** What runs a program's fibers: its share of turns, its clock, its chance. */
export const runtimeOf = (conductor: Conductor, program: Program, chance: Chance): Context.Context<never> =>
  Context.empty().pipe(
    Context.add(Scheduler.Scheduler, schedulerOf(conductor, program)),
    Context.add(Clock.Clock, conductor.clock.of(program)),
    Context.add(Random.Random, chance.fork(program.name).random),
    Context.add(References.TracerEnabled, false)
  )

const schedulerOf = (conductor: Conductor, program: Program) =>
  new Scheduler.MixedScheduler("async", (task) => {
    let isCancelled = false
    conductor.enqueue(program, () => {
      if (!isCancelled) task()
    })
    return () => void (isCancelled = true)
  })

export const startServer = (ground: Ground, name: string): Server => {
  const { chance, conductor, lender, models, plan, post } = ground
  const program = makeProgram(name)
  let services: Context.Context<WholeServer> | undefined
  const crashPoint: (typeof CrashPoint)["Service"] = {
    hit: (place) =>
      Effect.suspend(() =>
        plan.passes(place) ? Effect.callback<never>(() => conductor.doom(program)) : Effect.void
      )
  }
  const logger = Logger.make(({ cause, logLevel, message }) => {
    if (logLevel === "Error" || logLevel === "Fatal")
      ground.hearError(`${name}: ${said([message, ...cause.reasons.map(reasonOf)].flat())}`)
  })
  const needs = Layer.mergeAll(
    sqlLayer(conductor, program, lender),
    Layer.succeed(Ids, ground.ids),
    Layer.succeed(EventQuestions, (_whom: Whom, params: Record<string, unknown>) =>
      ground.radio.answer(params)
    ),
    Layer.succeed(ExternalConnecting, () => ground.shop.connect),
    Layer.succeed(Posting, ground.inbox.take),
    Layer.succeed(SealingKeys, sealingKeys),
    Layer.succeed(ConcurrentRuns, simulatedSlots),
    Layer.succeed(DispatchPauseMs, 0),
    Layer.succeedContext(models),
    Logger.layer([logger])
  )
  const life = Effect.gen(function* () {
    const { leave } = yield* Readiness
    yield* loops(undefined)
    // As `serveOn` does: what ends from here on was told to.
    yield* Effect.addFinalizer(() => leave(0))
    if (post !== undefined) yield* post.serve(program)
    services = yield* Effect.context<WholeServer>()
    return yield* Effect.never
  }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(platformLayer, needs)))
  const runtime = Context.add(runtimeOf(conductor, program, chance), CrashPoint, crashPoint)
  const fiber = Effect.runForkWith(runtime)(life)
  let fault = Effect.void
  fiber.addObserver((exit) => {
    if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) fault = Effect.failCause(exit.cause)
    conductor.doom(program)
  })

  return {
    program,
    isUp: () => program.isAlive && services !== undefined,
    ask: <A, E>(effect: Effect.Effect<A, E, WholeServer>) =>
      Effect.callback<Answered<A, E>>((resume) => {
        if (services === undefined || !program.isAlive) return resume(Effect.succeed({ type: "lost" }))
        const lost = () => resume(Effect.succeed({ type: "lost" }))
        program.mourners.add(lost)
        Effect.runForkWith(services)(effect).addObserver((exit) => {
          program.mourners.delete(lost)
          resume(Effect.succeed({ type: "answered", exit }))
        })
      }),
    stop: Effect.asVoid(Effect.raceFirst(Fiber.interrupt(fiber), endOf(program))),
    ended: Effect.andThen(
      endOf(program),
      Effect.suspend(() => fault)
    )
  }
}

const endOf = (program: Program): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    if (program.isAlive) program.mourners.add(() => resume(Effect.void))
    else resume(Effect.void)
  })

/** What a log line says, errors with where they come from and with what was behind them. */
const said = (parts: ReadonlyArray<unknown>): string =>
  parts
    .map((part) =>
      part instanceof Error ? toldError(part) : typeof part === "string" ? part : Bun.inspect(part)
    )
    .join(" ")

const reasonOf = (reason: Cause.Reason<unknown>): unknown =>
  reason._tag === "Die" ? reason.defect : reason._tag === "Fail" ? reason.error : "interrupted"

const toldError = (error: Error): string =>
  [error.stack ?? error.message, ...(error.cause instanceof Error ? [toldError(error.cause)] : [])].join("\n")
