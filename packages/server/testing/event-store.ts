/**
 * A store of logs, on PostgreSQL and in memory: what `Contexts` promises of logs, and nothing else of it.
 *
 * For tests of rules over logs, which want no database; `event-store.test.ts`
 * holds both to one contract. Numbers, times and parents are given by the same
 * function, and folding is the same. Nothing in memory is guarded by an
 * attempt or wakes anybody: stories run on PostgreSQL.
 */
import { type ContextName, decodeEvent, type LoggedEvent, type NewEvent } from "@tropism/domain/context-event"
import type { LoggedJson } from "@tropism/domain/logged-event"
import { emptyContext, fold } from "@tropism/domain/context"
import type { ProjectId } from "@tropism/domain/ids"
import { Clock, Context, Effect, Layer } from "effect"
import { endOf, type LogEnd, inSession, numberEvents } from "../src/contexts/appending.ts"
import { type ContextHead, ContextExists, Contexts } from "../src/contexts/contexts.ts"
import { Database, ProjectTransaction } from "../src/database/database.ts"

type Promised = Pick<Contexts["Service"], "create" | "get" | "lock" | "read" | "load" | "loadUpTo">

export class EventStore extends Context.Service<
  EventStore,
  Promised & {
    /** Appends events in the order given; answers them as they are kept. */
    readonly append: (
      name: ContextName,
      events: ReadonlyArray<NewEvent>
    ) => Effect.Effect<ReadonlyArray<LoggedEvent>, never, ProjectTransaction>
    /** Appends events to a log that ends as the caller last saw it; false, with nothing written, when it has grown. */
    readonly appendTo: (
      name: ContextName,
      end: LogEnd,
      events: ReadonlyArray<NewEvent>
    ) => Effect.Effect<boolean, never, ProjectTransaction>
    /** Does something in a project. */
    readonly inProject: <A, E>(
      projectId: ProjectId,
      effect: Effect.Effect<A, E, ProjectTransaction>
    ) => Effect.Effect<A, E>
  }
>()("@tropism/server/testing/EventStore") {
  static readonly layer = Layer.effect(
    EventStore,
    Effect.gen(function* () {
      const { append, create, get, load, loadUpTo, lock, plan, read, write } = yield* Contexts
      const { inProject } = yield* Database
      const appendTo = Effect.fnUntraced(function* (
        name: ContextName,
        end: LogEnd,
        events: ReadonlyArray<NewEvent>
      ) {
        const { projectId } = yield* ProjectTransaction
        return yield* write(name, yield* plan(projectId, name, end, events))
      })
      return { create, get, lock, read, load, loadUpTo, append, appendTo, inProject }
    })
  )

  static readonly layerMemory = Layer.sync(EventStore, () => inMemory(new Map()))
}

/** A context and the events of its own log. */
interface Kept {
  readonly head: ContextHead
  readonly own: Array<LoggedJson>
}

const inMemory = (contexts: Map<string, Kept>): EventStore["Service"] => {
  /** What comes before a fork lies in the log of another. */
  const logOf = (projectId: string, name: ContextName): ReadonlyArray<LoggedJson> => {
    const kept = contexts.get(`${projectId}/${name}`)
    const { forkedFrom = null } = kept?.head ?? {}
    const own = kept?.own ?? []
    return forkedFrom === null ? own : [...logOf(projectId, forkedFrom.name).slice(0, forkedFrom.at), ...own]
  }

  const endNow = (projectId: string, name: ContextName): LogEnd => {
    const own = contexts.get(`${projectId}/${name}`)?.own ?? []
    // An open turn is one of the log's own: whoever forks closes what was open.
    const { isSessionOpen, openTurnNumber } = endOf(fold(own.map(decodeEvent)))
    return { lastNumber: logOf(projectId, name).length, openTurnNumber, isSessionOpen }
  }

  /** One act in which nothing waits, so it is whole as a transaction is. */
  const act = <A>(does: (projectId: ProjectId, timestamp: string) => A) =>
    Effect.gen(function* () {
      const { projectId } = yield* ProjectTransaction
      const timestamp = new Date(yield* Clock.currentTimeMillis).toISOString()
      return yield* Effect.sync(() => does(projectId, timestamp))
    })

  const write = (
    projectId: string,
    name: ContextName,
    timestamp: string,
    events: ReadonlyArray<NewEvent>
  ): ReadonlyArray<LoggedEvent> => {
    const end = endNow(projectId, name)
    const logged = numberEvents(name, inSession(events, end.isSessionOpen), timestamp, end)
    contexts.get(`${projectId}/${name}`)?.own.push(...logged)
    return logged.map(decodeEvent)
  }

  return {
    create: (name, agentId, origin) =>
      Effect.flatMap(
        act((projectId, createdAt) => {
          if (contexts.has(`${projectId}/${name}`)) return undefined
          const forkedFrom = origin ?? null
          const eventCount = forkedFrom?.at ?? 0
          const head: ContextHead = {
            name,
            agentId,
            eventCount,
            forkedFrom,
            isTurnOpen: false,
            isOfBacktest: false,
            owner: null,
            taintedBy: [],
            createdAt
          }
          contexts.set(`${projectId}/${name}`, { head, own: [] })
          return head
        }),
        (head) => (head ? Effect.succeed(head) : Effect.fail(new ContextExists({ name })))
      ),
    get: (name) =>
      act((projectId) => {
        const kept = contexts.get(`${projectId}/${name}`)
        if (!kept) return undefined
        const { lastNumber, openTurnNumber } = endNow(projectId, name)
        return { ...kept.head, eventCount: lastNumber, isTurnOpen: openTurnNumber !== null }
      }),
    lock: (name) => act((projectId) => endNow(projectId, name)),
    append: (name, events) => act((projectId, timestamp) => write(projectId, name, timestamp, events)),
    appendTo: (name, end, events) =>
      act((projectId, timestamp) => {
        if (endNow(projectId, name).lastNumber !== end.lastNumber) return false
        write(projectId, name, timestamp, events)
        return true
      }),
    read: (name, after, limit) => act((projectId) => logOf(projectId, name).slice(after, after + limit)),
    load: (name, from = emptyContext) =>
      act((projectId) =>
        fold(
          logOf(projectId, name)
            .slice(from.nextEventNumber - 1)
            .map(decodeEvent),
          from
        )
      ),
    loadUpTo: (name, last) =>
      act((projectId) => fold(logOf(projectId, name).slice(0, last).map(decodeEvent))),
    inProject: (projectId, effect) => Effect.provideService(effect, ProjectTransaction, { projectId })
  }
}
