/**
 * Limits this server's open requests per model, and queues the rest fairly.
 *
 * One lane per provider and model. Projects take turns, and within a project its agents, so a project with a thousand requests delays
 * another's by one. A 429 halves the lane's limit, which grows back with answers and time. A queued request holds no connection. It counts
 * as progress of its attempt, and is removed when the request is interrupted.
 */
import type { ModelProvider } from "@tropism/domain/model-config"
import { Cause, Clock, Context, Deferred, Effect, Exit, FiberMap, Option, Stream } from "effect"
import { modelLimits } from "../limits.ts"
import { knowModel } from "../telemetry/metrics.ts"
import type { ModelFailure, ModelPart } from "./model-request.ts"
import { CurrentProgress } from "./progress.ts"

/** Maximum open requests of one server at one provider's model; `TROPISM_MODEL_CONCURRENCY`. */
export class ModelConcurrency extends Context.Reference<number>("@tropism/server/model/ModelConcurrency", {
  defaultValue: () => modelLimits.concurrency
}) {}

/** The project and agent of a request, for its turn. */
export interface Asker {
  readonly projectId: string
  readonly agentId: string
}

/** The run of a request; requests outside any run share one turn. */
export class CurrentAsker extends Context.Reference<Asker>("@tropism/server/model/CurrentAsker", {
  defaultValue: () => ({ projectId: "", agentId: "" })
}) {}

/** The state of a lane. */
export interface LaneState {
  readonly provider: ModelProvider
  readonly name: string
  readonly inFlight: number
  readonly waiting: number
  /** The current limit of open requests. */
  readonly limit: number
  /** The maximum that the limit grows back to. */
  readonly most: number
  /** Queued requests by project. */
  readonly waitingOf: ReadonlyMap<string, number>
}

interface Waiter {
  readonly asker: Asker
  /** The agent's own limit. */
  readonly most: number
  /** The request's number in its lane, once it may be sent. */
  number: number | undefined
  readonly turn: Deferred.Deferred<void>
}

interface Lane {
  readonly provider: ModelProvider
  readonly name: string
  limit: number
  inFlight: number
  /** Requests sent so far. */
  sent: number
  /** The count of sent requests at the last reduction: a refusal of an earlier request does not lower the limit again. */
  loweredAt: number
  /** Answers since the limit changed. */
  answers: number
  /** When the limit changed. */
  changedAtMs: number
  /** Queued requests by project and agent; the last served is last. */
  readonly queues: Map<string, Map<string, Array<Waiter>>>
  /** Open requests by agent. */
  readonly ofAgents: Map<string, number>
}

/** A request for a turn in a lane. */
export interface Turn {
  readonly provider: ModelProvider
  readonly name: string
  /** Maximum open requests of one agent, within the lane's limit. */
  readonly maxConcurrency: number | null
  /** Checked after a wait: the provider may be down by then. */
  readonly admitted?: Effect.Effect<void, ModelFailure> | undefined
}

type Parts = Stream.Stream<ModelPart, ModelFailure>

export const makeRequestQueue = Effect.gen(function* () {
  const most = yield* ModelConcurrency
  const clock = yield* Clock.Clock
  const lanes = new Map<string, Lane>()
  const ageing = yield* FiberMap.make<string, void>()

  const laneOf = ({ name, provider }: Turn): Lane => {
    const key = keyOf(provider, name)
    const known = lanes.get(key)
    if (known !== undefined) return known
    const lane: Lane = {
      provider,
      name,
      limit: most,
      inFlight: 0,
      sent: 0,
      loweredAt: 0,
      answers: 0,
      changedAtMs: 0,
      queues: new Map(),
      ofAgents: new Map()
    }
    lanes.set(key, lane)
    knowModel(provider, name)
    return lane
  }

  /** Deletes an idle lane with a full limit. */
  const forget = (lane: Lane) => {
    if (lane.inFlight === 0 && lane.queues.size === 0 && lane.limit >= most)
      lanes.delete(keyOf(lane.provider, lane.name))
  }

  const mayAsk = (lane: Lane, { agentId }: Asker, ownMost: number) =>
    lane.inFlight < lane.limit && (lane.ofAgents.get(agentId) ?? 0) < ownMost

  const open = (lane: Lane, { agentId }: Asker) => {
    lane.inFlight += 1
    lane.sent += 1
    lane.ofAgents.set(agentId, (lane.ofAgents.get(agentId) ?? 0) + 1)
    return lane.sent
  }

  /** Admits queued requests in turn, while there is room. */
  const admit = (lane: Lane) => {
    while (lane.inFlight < lane.limit) {
      const next = takeNext(lane, (waiter) => mayAsk(lane, waiter.asker, waiter.most))
      if (next === undefined) return
      next.number = open(lane, next.asker)
      Deferred.doneUnsafe(next.turn, Effect.void)
    }
  }

  const close = (lane: Lane, { agentId }: Asker) => {
    lane.inFlight -= 1
    const left = (lane.ofAgents.get(agentId) ?? 1) - 1
    if (left === 0) lane.ofAgents.delete(agentId)
    else lane.ofAgents.set(agentId, left)
    admit(lane)
    forget(lane)
  }

  /** Waits until the request may be sent and returns its number; an interrupt removes it from the queue. */
  const wait = Effect.fnUntraced(function* (lane: Lane, asker: Asker, ownMost: number) {
    const progress = yield* CurrentProgress
    const turn = yield* Deferred.make<void>()
    const waiter: Waiter = { asker, most: ownMost, number: undefined, turn }
    enqueue(lane, waiter)
    admit(lane)
    yield* startAgeing(lane)
    yield* Effect.interruptible(progress.during(Deferred.await(turn), modelLimits.queuedMaxMs)).pipe(
      Effect.onInterrupt(() =>
        Effect.sync(() => {
          if (waiter.number !== undefined) return close(lane, asker)
          withdraw(lane, waiter)
          forget(lane)
        })
      )
    )
    return waiter.number ?? lane.sent
  }, Effect.uninterruptible)

  const setLimit = (lane: Lane, limit: number) => {
    lane.limit = Math.min(most, Math.max(1, limit))
    lane.answers = 0
    lane.changedAtMs = clock.currentTimeMillisUnsafe()
    admit(lane)
  }

  /** Raises a limit by the time since it changed. */
  const age = (lane: Lane) => {
    if (lane.limit >= most) return
    const passedMs = clock.currentTimeMillisUnsafe() - lane.changedAtMs
    const steps = Math.floor(passedMs / modelLimits.concurrencyGrowthMs)
    if (steps > 0) setLimit(lane, lane.limit + steps)
  }

  /** Repeats that while requests are queued: open ones may take long. */
  const ageWhileQueued = (key: string) =>
    Effect.gen(function* () {
      while (true) {
        const lane = lanes.get(key)
        if (lane === undefined || lane.limit >= most || lane.queues.size === 0) return
        yield* Effect.sleep(modelLimits.concurrencyGrowthMs)
        age(lane)
      }
    })

  const startAgeing = ({ limit, name, provider }: Lane) => {
    const key = keyOf(provider, name)
    return limit >= most
      ? Effect.void
      : FiberMap.run(ageing, key, ageWhileQueued(key), { onlyIfMissing: true })
  }

  const answered = (lane: Lane) => {
    lane.answers += 1
    if (lane.answers >= modelLimits.concurrencyGrowthAnswers) setLimit(lane, lane.limit + 1)
  }

  /** Halves the limit, once for all requests that were open together. */
  const refused = (lane: Lane, number: number) =>
    Effect.gen(function* () {
      if (number <= lane.loweredAt) return
      lane.loweredAt = lane.sent
      setLimit(lane, Math.floor(lane.limit / 2))
      yield* startAgeing(lane)
      const { limit, name: model, provider } = lane
      yield* Effect.logWarning("A provider refuses requests as too many: fewer are sent at once", {
        provider,
        model,
        limit
      })
    })

  /** The parts of a request, which is sent when its turn comes. */
  const inTurn = (turn: Turn, parts: Parts): Parts =>
    Stream.unwrap(
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const asker = yield* CurrentAsker
          const lane = laneOf(turn)
          const ownMost = turn.maxConcurrency ?? most
          age(lane)
          const isSentAtOnce = lane.queues.size === 0 && mayAsk(lane, asker, ownMost)
          const number = isSentAtOnce ? open(lane, asker) : yield* wait(lane, asker, ownMost)
          yield* Effect.addFinalizer(() => Effect.sync(() => close(lane, asker)))
          if (!isSentAtOnce && turn.admitted !== undefined) yield* restore(turn.admitted)
          return Stream.onExit(parts, (exit) => {
            if (Exit.isSuccess(exit)) return Effect.sync(() => answered(lane))
            const failure = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
            return failure?.reason === "rateLimited" ? refused(lane, number) : Effect.void
          })
        })
      )
    )

  const states = (): ReadonlyArray<LaneState> =>
    [...lanes.values()].map((lane) => {
      age(lane)
      forget(lane)
      const { inFlight, limit, name, provider, queues } = lane
      const waitingOf = new Map([...queues].map(([project, agents]) => [project, countOf(agents)]))
      return {
        provider,
        name,
        inFlight,
        waiting: [...waitingOf.values()].reduce((sum, count) => sum + count, 0),
        limit,
        most,
        waitingOf
      }
    })

  return { inTurn, states, most }
})

const keyOf = (provider: ModelProvider, name: string) => `${provider}:${name}`

const enqueue = ({ queues }: Lane, waiter: Waiter): void => {
  const { agentId, projectId } = waiter.asker
  const agents = queues.get(projectId) ?? new Map<string, Array<Waiter>>()
  const queue = agents.get(agentId) ?? []
  queue.push(waiter)
  agents.set(agentId, queue)
  queues.set(projectId, agents)
}

const withdraw = ({ queues }: Lane, waiter: Waiter): void => {
  const { agentId, projectId } = waiter.asker
  const agents = queues.get(projectId)
  const left = agents?.get(agentId)?.filter((other) => other !== waiter) ?? []
  if (left.length > 0) agents?.set(agentId, left)
  else agents?.delete(agentId)
  if (agents?.size === 0) queues.delete(projectId)
}

/** Takes the first request of the next admissible project and agent, and moves both to the end. */
const takeNext = ({ queues }: Lane, may: (waiter: Waiter) => boolean): Waiter | undefined => {
  for (const [projectId, agents] of queues)
    for (const [agentId, queue] of agents) {
      const [first] = queue
      if (first === undefined || !may(first)) continue
      queue.shift()
      agents.delete(agentId)
      if (queue.length > 0) agents.set(agentId, queue)
      queues.delete(projectId)
      if (agents.size > 0) queues.set(projectId, agents)
      return first
    }
  return undefined
}

const countOf = (agents: ReadonlyMap<string, ReadonlyArray<Waiter>>): number =>
  [...agents.values()].reduce((sum, { length }) => sum + length, 0)
