/**
 * One contract for both stores of logs: what holds on PostgreSQL holds in memory.
 */
import { describe, expect, layer } from "@effect/vitest"
import { ContextName, decodeEvent, type NewEvent } from "@tropism/domain/context-event"
import { fold } from "@tropism/domain/context"
import { AgentId, ProjectId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { endOf } from "../src/contexts/appending.ts"
import { newContext } from "./context-words.ts"
import { EventStore } from "./event-store.ts"
import { freshDatabase } from "./fresh-database.ts"
import { newProject, startServer } from "./platform.ts"
import { platformOn } from "./restarts.ts"

/** A store, and projects with an agent to keep logs in. */
class Ground extends Context.Service<
  Ground,
  {
    readonly store: EventStore["Service"]
    readonly project: Effect.Effect<{ readonly projectId: ProjectId; readonly agentId: AgentId }>
  }
>()("@tropism/server/testing/Ground") {
  static readonly inMemory = Layer.effect(
    Ground,
    Effect.map(EventStore, (store) => ({
      store,
      project: Effect.sync(() => ({
        projectId: ProjectId.make(Bun.randomUUIDv7()),
        agentId: AgentId.make(Bun.randomUUIDv7())
      }))
    }))
  ).pipe(Layer.provide(EventStore.layerMemory))

  static readonly onPostgres = Layer.effect(
    Ground,
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const doors = yield* startServer(access)
      const built = yield* Layer.build(EventStore.layer.pipe(Layer.provide(platformOn(access))))
      return {
        store: Context.get(built, EventStore),
        project: Effect.gen(function* () {
          const story = yield* newProject(doors, access)
          const agent = yield* newContext(story, "unused")
          return { projectId: ProjectId.make(story.projectId), agentId: AgentId.make(agent.id) }
        })
      }
    })
  )
}

const says = (content: string, triggersAgentTurn = false): NewEvent => ({
  type: "UserMessageEvent",
  content,
  triggersAgentTurn
})

const fork = (from: ContextName, at: number): ReadonlyArray<NewEvent> => [
  { type: "ContextForkedEvent", from, at }
]

const talk = ContextName.make("talk")
const other = ContextName.make("other")
const third = ContextName.make("third")

/** A store with one empty log, and what is done in its project. */
const newLog = Effect.gen(function* () {
  const { project, store } = yield* Ground
  const { agentId, projectId } = yield* project
  const inProject = <A, E>(effect: Parameters<typeof store.inProject<A, E>>[1]) =>
    store.inProject(projectId, effect)
  const head = yield* inProject(store.create(talk, agentId))
  return { store, inProject, agentId, head, project }
})

const places = [
  ["in memory", Ground.inMemory],
  ["on PostgreSQL", Ground.onPostgres]
] as const

for (const [place, ground] of places)
  layer(ground, { excludeTestServices: true })((it) => {
    describe(`An event store ${place}`, () => {
      it.effect("S004-R50 gives many writers at once the numbers 1 to n, and every event a parent", () =>
        Effect.gen(function* () {
          const { inProject, store } = yield* newLog
          const contents = Array.from({ length: 60 }, (_, index) => `Message ${index}`)
          yield* Effect.forEach(contents, (content) => inProject(store.append(talk, [says(content)])), {
            concurrency: 20
          })
          const log = yield* inProject(store.read(talk, 0, 100))
          expect(log[0]).toMatchObject({ type: "SessionStartedEvent", id: "talk:1", parentEventId: null })
          const said = log.slice(1)
          expect(said.map(({ id }) => id)).toEqual(contents.map((_, index) => `talk:${index + 2}`))
          expect(said.map(({ parentEventId }) => parentEventId)).toEqual(
            contents.map((_, index) => `talk:${index + 1}`)
          )
          expect(said.map(({ content }) => content).toSorted()).toEqual(contents.toSorted())
        })
      )

      it.effect("S004-R50 lets one of two append to the end that both have seen", () =>
        Effect.gen(function* () {
          const { inProject, store } = yield* newLog
          yield* inProject(store.append(talk, [says("First")]))
          const end = yield* inProject(store.lock(talk))
          const race = ["Here", "There"].map((content) =>
            inProject(store.appendTo(talk, end, [says(content)]))
          )
          const won = yield* Effect.all(race, { concurrency: 2 })
          expect(won.toSorted()).toEqual([false, true])
          expect(yield* inProject(store.read(talk, 0, 10))).toHaveLength(3)
        })
      )

      it.effect("S004-R50 links what comes in a turn to its beginning, and knows whether one is open", () =>
        Effect.gen(function* () {
          const { inProject, store } = yield* newLog
          const turn = [
            says("One", true),
            { type: "AgentTurnStartedEvent", turnNumber: 1 },
            says("Two")
          ] as const
          const appended = yield* inProject(store.append(talk, turn))
          const during = yield* inProject(store.lock(talk))
          expect(during).toEqual({ lastNumber: 4, openTurnNumber: 3, isSessionOpen: true })
          yield* inProject(store.append(talk, [says("Three")]))
          yield* inProject(
            store.append(talk, [
              { type: "AgentTurnCompletedEvent", turnNumber: 1, durationMs: 5 },
              { type: "SessionEndedEvent" }
            ])
          )
          const log = yield* inProject(store.read(talk, 0, 10))
          expect(log.slice(0, 4).map(decodeEvent)).toEqual(appended)
          expect(log.map(({ parentEventId }) => parentEventId)).toEqual([
            null,
            "talk:1",
            "talk:2",
            "talk:3",
            "talk:3",
            "talk:3",
            "talk:6"
          ])
          expect(yield* inProject(store.lock(talk))).toEqual({
            lastNumber: 7,
            openTurnNumber: null,
            isSessionOpen: false
          })
        })
      )

      it.effect("S004-R50 reads pages, and folds to the same from anywhere", () =>
        Effect.gen(function* () {
          const { inProject, store } = yield* newLog
          yield* inProject(
            store.append(
              talk,
              Array.from({ length: 6 }, (_, index) => says(`Message ${index}`))
            )
          )
          const numbers = (after: number, limit: number) =>
            Effect.map(inProject(store.read(talk, after, limit)), (page) => page.map(({ id }) => id.slice(5)))
          expect(yield* numbers(0, 3)).toEqual(["1", "2", "3"])
          expect(yield* numbers(3, 3)).toEqual(["4", "5", "6"])
          expect(yield* numbers(6, 3)).toEqual(["7"])
          expect(yield* numbers(7, 3)).toEqual([])
          const whole = fold((yield* inProject(store.read(talk, 0, 10))).map(decodeEvent))
          const half = yield* inProject(store.loadUpTo(talk, 4))
          expect(half.nextEventNumber).toBe(5)
          expect(yield* inProject(store.load(talk))).toEqual(whole)
          expect(yield* inProject(store.load(talk, half))).toEqual(whole)
          expect(endOf(whole)).toEqual(yield* inProject(store.lock(talk)))
        })
      )

      it.effect("S004-R50 shares a log with its forks up to an event, and keeps them apart after it", () =>
        Effect.gen(function* () {
          const { agentId, inProject, store } = yield* newLog
          yield* inProject(
            store.append(
              talk,
              ["One", "Two"].map((content) => says(content))
            )
          )
          const head = yield* inProject(store.create(other, agentId, { name: talk, at: 2 }))
          expect(head).toMatchObject({ eventCount: 2, forkedFrom: { name: "talk", at: 2 } })
          yield* inProject(store.append(other, [...fork(talk, 2), says("Else"), says("More")]))
          yield* inProject(store.create(third, agentId, { name: other, at: 3 }))
          yield* inProject(store.append(third, [...fork(other, 3), says("Last")]))
          const linesOf = (name: ContextName, after = 0) =>
            Effect.map(inProject(store.read(name, after, 10)), (log) =>
              log.map(
                ({ content, id, type }) => `${id} ${type === "ContextForkedEvent" ? "Fork" : String(content)}`
              )
            )
          const shared = ["talk:1 undefined", "talk:2 One"]
          expect(yield* linesOf(talk)).toEqual([...shared, "talk:3 Two"])
          expect(yield* linesOf(other)).toEqual([...shared, "other:3 Fork", "other:4 Else", "other:5 More"])
          expect(yield* linesOf(third)).toEqual([...shared, "other:3 Fork", "third:4 Fork", "third:5 Last"])
          expect(yield* linesOf(third, 3)).toEqual(["third:4 Fork", "third:5 Last"])
          expect(yield* inProject(store.get(third))).toMatchObject({ eventCount: 5 })
        })
      )

      it.effect("S004-R50 knows a context by its name in its project, once", () =>
        Effect.gen(function* () {
          const { agentId, head, inProject, project, store } = yield* newLog
          expect(yield* inProject(store.get(talk))).toEqual(head)
          expect(yield* inProject(store.get(other))).toBeUndefined()
          const again = yield* Effect.flip(inProject(store.create(talk, agentId)))
          expect(again).toMatchObject({ _tag: "ContextExists", name: "talk" })
          const { projectId } = yield* project
          expect(yield* store.inProject(projectId, store.get(talk))).toBeUndefined()
          expect(yield* store.inProject(projectId, store.read(talk, 0, 10))).toEqual([])
        })
      )
    })
  })
