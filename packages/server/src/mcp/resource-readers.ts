/**
 * Detects changes of watched resources, with one reader per source for all its listeners.
 *
 * Objects are watched in their project's feed, a run's log by the number of its last event: committed rows, whichever server wrote them. A
 * reader starts with the first listener and stops with the last, so unwatched sources cost nothing.
 */
import type { ContextName } from "@tropism/domain/context-event"
import type { ProjectId } from "@tropism/domain/ids"
import { Context, Deferred, Effect, Fiber, Layer, Queue, type Scope } from "effect"
import { Contexts } from "../contexts/contexts.ts"
import { Database } from "../database/database.ts"
import { drive, type Topic, Notifier } from "../outbox/notifier.ts"
import { FeedSearch, Outbox } from "../outbox/outbox.ts"
import { mcpLimits } from "./limits.ts"

/** A resource in its source: an object of the feed, or a whole log. */
export type Watched =
  | { readonly kind: "object"; readonly id: string }
  | { readonly kind: "log"; readonly contextName: ContextName }

/** The watch of one client. */
export interface Listener {
  /** Watches exactly these addresses, from the given positions where there are any; when it returns, no later commit is missed. */
  readonly watch: (
    addresses: ReadonlyMap<string, Watched>,
    places?: ReadonlyMap<string, number>
  ) => Effect.Effect<void>
  /** The changed addresses, each once, as soon as there are any. */
  readonly changed: Effect.Effect<ReadonlySet<string>>
}

/** A source of changes, which identifies them by names. */
interface Source {
  readonly key: string
  readonly topic: Topic
  readonly end: Effect.Effect<number>
  /** The changes after a position; `undefined` names mean everything, because the range between is unknown. */
  readonly read: (after: number) => Effect.Effect<{
    readonly place: number
    readonly names: ReadonlyArray<string> | undefined
    readonly hasMore: boolean
  }>
}

interface Reader {
  readonly source: Source
  /** The listeners of a name. */
  readonly ears: Map<string, Set<() => void>>
  readonly begun: Deferred.Deferred<void>
  place: number | undefined
  fiber: Fiber.Fiber<void> | undefined
}

export class ResourceReaders extends Context.Service<
  ResourceReaders,
  {
    /** Listens in a project until the scope ends. */
    readonly listen: (projectId: ProjectId) => Effect.Effect<Listener, never, Scope.Scope>
    /** The current end of a watchable resource's source. */
    readonly placeOf: (projectId: ProjectId, watched: Watched) => Effect.Effect<number>
  }
>()("@tropism/server/mcp/ResourceReaders") {
  static readonly layer = Layer.effect(
    ResourceReaders,
    Effect.gen(function* () {
      const notifier = yield* Notifier
      const surroundings = yield* Effect.context<never>()
      const feedOf = yield* makeFeeds
      const logOf = yield* makeLogs
      const readers = new Map<string, Reader>()
      const sourceOf = (projectId: ProjectId, watched: Watched) =>
        watched.kind === "object"
          ? { source: feedOf(projectId), name: watched.id }
          : { source: logOf(projectId, watched.contextName), name: "log" }

      const begin = (source: Source): Reader => {
        const reader: Reader = {
          source,
          ears: new Map(),
          begun: Deferred.makeUnsafe(),
          place: undefined,
          fiber: undefined
        }
        readers.set(source.key, reader)
        const reading = drive(
          "Resource reader",
          source.topic,
          mcpLimits.resourceSweepMs,
          readOn(reader),
          source.key
        )
        reader.fiber = Effect.runForkWith(surroundings)(Effect.provideService(reading, Notifier, notifier))
        return reader
      }

      /** Adds a listener to a name; returns the reader and how to remove the listener. */
      const enter = (source: Source, name: string, ear: () => void) => {
        const reader = readers.get(source.key) ?? begin(source)
        const ears = reader.ears.get(name) ?? new Set()
        reader.ears.set(name, ears.add(ear))
        const leave = () => {
          ears.delete(ear)
          if (ears.size === 0) reader.ears.delete(name)
          if (reader.ears.size > 0) return
          if (readers.get(source.key) === reader) readers.delete(source.key)
          reader.fiber?.interruptUnsafe()
        }
        return { reader, leave }
      }
      yield* Effect.addFinalizer(() =>
        Fiber.interruptAll([...readers.values()].flatMap(({ fiber }) => fiber ?? []))
      )

      const listen = Effect.fnUntraced(function* (projectId: ProjectId) {
        const bell = yield* Queue.sliding<void>(1)
        const entered = new Map<string, ReturnType<typeof enter>>()
        let changed = new Set<string>()
        yield* Effect.addFinalizer(() => Effect.sync(() => entered.forEach(({ leave }) => leave())))

        const watch = (
          addresses: ReadonlyMap<string, Watched>,
          places: ReadonlyMap<string, number> = new Map()
        ) =>
          Effect.gen(function* () {
            const late = new Map<Reader, Array<Late>>()
            for (const [uri, { leave }] of entered)
              if (!addresses.has(uri)) {
                leave()
                entered.delete(uri)
                changed.delete(uri)
              }
            for (const [uri, watched] of addresses) {
              if (entered.has(uri)) continue
              const ear = () => {
                changed.add(uri)
                Queue.offerUnsafe(bell, undefined)
              }
              const { name, source } = sourceOf(projectId, watched)
              const there = enter(source, name, ear)
              entered.set(uri, there)
              const after = places.get(uri)
              if (after !== undefined)
                late.set(there.reader, [...(late.get(there.reader) ?? []), { name, after, ear }])
            }
            const begun = new Set([...entered.values()].map(({ reader }) => reader.begun))
            yield* Effect.forEach(begun, Deferred.await, { discard: true })
            yield* Effect.forEach(late, ([{ source }, some]) => catchUp(source, some), { discard: true })
          })

        const take = Effect.gen(function* () {
          yield* Queue.take(bell)
          // Changes within a moment are sent together.
          yield* Effect.sleep(mcpLimits.resourceUpdateDelayMs)
          const told = changed
          changed = new Set()
          return told
        })
        return { watch, changed: take } satisfies Listener
      })

      return ResourceReaders.of({
        listen,
        placeOf: (projectId, watched) => sourceOf(projectId, watched).source.end
      })
    })
  )
}

/** A listener whose start position may be before the reader's. */
interface Late {
  readonly name: string
  readonly after: number
  readonly ear: () => void
}

/** Sends late listeners the changes since their position; after a long gap, everything counts as changed. */
const catchUp = Effect.fnUntraced(function* (source: Source, some: ReadonlyArray<Late>) {
  const { hasMore, names } = yield* source.read(Math.min(...some.map(({ after }) => after)))
  for (const { ear, name } of some) if (hasMore || names === undefined || names.includes(name)) ear()
})

/** One read; returns whether there may be more. */
const readOn = Effect.fnUntraced(function* (reader: Reader) {
  const { begun, ears, source } = reader
  if (reader.place === undefined) {
    reader.place = yield* source.end
    yield* Deferred.succeed(begun, undefined)
    return false
  }
  const { hasMore, names, place } = yield* source.read(reader.place)
  for (const name of names ?? [...ears.keys()]) ears.get(name)?.forEach((ear) => ear())
  reader.place = place
  return hasMore
})

const makeFeeds = Effect.gen(function* () {
  const database = yield* Database
  const outbox = yield* Outbox
  const search = yield* FeedSearch
  return (projectId: ProjectId): Source => ({
    key: `feed of ${projectId}`,
    topic: `feed:${projectId}`,
    end: database.inProject(projectId, outbox.lastPosition),
    read: (after) =>
      database.inProject(
        projectId,
        Effect.gen(function* () {
          const last = yield* outbox.lastPosition
          if (last === after) return { place: last, names: [], hasMore: false }
          // The database was restored to a state before this position.
          if (last < after) return { place: last, names: undefined, hasMore: false }
          const upTo = Math.min(after + mcpLimits.resourceLookPlaces, last)
          const names = yield* search.touched("graphObject", { after, upTo })
          return { place: upTo, names, hasMore: upTo < last }
        })
      )
  })
})

const makeLogs = Effect.gen(function* () {
  const database = yield* Database
  const contexts = yield* Contexts
  return (projectId: ProjectId, name: ContextName): Source => {
    const end = Effect.map(database.inProject(projectId, contexts.get(name)), (head) => head?.eventCount ?? 0)
    return {
      key: `log of ${projectId}/${name}`,
      topic: `context:${projectId}/${name}`,
      end,
      read: (after) =>
        Effect.map(end, (place) => ({ place, names: place === after ? [] : ["log"], hasMore: false }))
    }
  }
})
