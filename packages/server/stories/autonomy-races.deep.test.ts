/**
 * Many decide at once, on two servers, and servers die: a promotion is there once or not at all, and so are its reviews.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { CrashPoint, type CrashPointName } from "../src/crash-point.ts"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import {
  askedBy,
  creating,
  decideEach,
  earned,
  earner,
  promoted,
  reverse,
  told,
  toldOf
} from "../testing/autonomy-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { patiently } from "../testing/interposed.ts"
import { startMortal } from "../testing/mortal-servers.ts"
import { type Doors, type Json, newProject, startServer, type Story, storyIn } from "../testing/platform.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { endedRuns, suggestionsOf } from "../testing/story-words.ts"
import { begin } from "../testing/sub-agent-words.ts"
import { approve, reject } from "../testing/suggestion-words.ts"
import { undoRun } from "../testing/undo-words.ts"

const notes = { note: creating("Note") }

class TwoServers extends Context.Service<
  TwoServers,
  {
    readonly here: Doors
    readonly there: Doors
    readonly access: PostgresAccess
    /** Holds whoever passes this place next at the first server; answers when somebody is held. */
    readonly hold: (name: CrashPointName) => Effect.Effect<void>
    readonly release: Effect.Effect<void>
  }
>()("@tropism/server/stories/autonomy/TwoServers") {
  static readonly layer = Layer.effect(
    TwoServers,
    Effect.gen(function* () {
      const access = yield* freshDatabase
      let place: CrashPointName | undefined
      let reached = Deferred.makeUnsafe<void>()
      let released = Deferred.makeUnsafe<void>()
      const hit = (name: CrashPointName): Effect.Effect<void> =>
        Effect.suspend(() => {
          if (name !== place) return Effect.void
          place = undefined
          return Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(released))
        })
      const here = yield* Effect.provideService(startServer(patiently(access)), CrashPoint, { hit })
      const there = yield* startServer(access)
      const hold = (name: CrashPointName) =>
        Effect.suspend(() => {
          place = name
          reached = Deferred.makeUnsafe<void>()
          released = Deferred.makeUnsafe<void>()
          return Deferred.await(reached)
        })
      const release = Effect.suspend(() => Effect.asVoid(Deferred.succeed(released, undefined)))
      return TwoServers.of({ here, there, access, hold, release })
    })
  )
}

/** One project, through the doors of both servers. */
const bothDoors = Effect.gen(function* () {
  const { access, here, there } = yield* TwoServers
  const story = yield* newProject(here, access)
  return { story, other: storyIn(there, access, story.projectId) }
})

/** An agent that has suggested so many different Notes in one run. */
const suggesting = Effect.fnUntraced(function* (story: Story, count: number, promotion: object) {
  const calls = Array.from({ length: count }, (_, n) => creating("Note", { key: `note-${n}` }))
  const agent = yield* story.post(
    "/agents",
    earner({ many: calls, ...notes }, { hybridPolicy: { promotion } })
  )
  yield* begin(story, agent, { input: { deed: "many" } })
  yield* endedRuns(story, agent, 1)
  return { agent, tasks: yield* suggestionsOf(story, count) }
})

layer(TwoServers.layer, { excludeTestServices: true })((it) => {
  describe("Decisions at once on two servers", () => {
    it.effect("that are all enough promote once, and each is counted", () =>
      Effect.gen(function* () {
        const { other, story } = yield* bothDoors
        const { agent, tasks } = yield* suggesting(story, 20, { minReviews: 3, minRate: 0.1 })
        const answers = yield* Effect.forEach(
          tasks,
          (task, n) => {
            const door = n % 2 === 0 ? story : other
            return n % 4 === 3 ? reject(door, task) : approve(door, task)
          },
          { concurrency: 20 }
        )
        expect(answers.map(({ status }) => status)).toEqual(tasks.map(() => 200))
        const { promotions, records } = yield* earned(other, agent)
        expect(records).toMatchObject([{ accepted: 15, rejected: 5, promotionId: promotions[0].id }])
        expect(promotions).toHaveLength(1)
        expect(promotions[0].reviews).toBeLessThanOrEqual(20)
        expect(yield* toldOf(story)).toHaveLength(1)
      })
    )

    it.effect("of one task are counted once", () =>
      Effect.gen(function* () {
        const { other, story } = yield* bothDoors
        const { agent, tasks } = yield* suggesting(story, 1, { minReviews: 1, minRate: 0 })
        const answers = yield* Effect.forEach(
          Array.from({ length: 20 }, (_, n) => n),
          (n) => (n % 3 === 0 ? reject : approve)(n % 2 === 0 ? story : other, tasks[0]),
          { concurrency: 20 }
        )
        expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array(19).fill(409)])
        const { promotions, records } = yield* earned(story, agent)
        expect(records.map(({ accepted, rejected }: Json) => accepted + rejected)).toEqual([1])
        expect(promotions).toHaveLength(1)
      })
    )

    it.effect("a promotion is taken back once, by whichever door is first", () =>
      Effect.gen(function* () {
        const { other, story } = yield* bothDoors
        for (const round of [0, 1, 2, 3, 4]) {
          const { agent, promotion } = yield* promoted(story, notes, "note", { name: `earner-${round}` })
          const [task] = yield* toldOf(story)
          const answers = yield* Effect.all(
            [
              reverse(story, agent, promotion),
              reject(other, task),
              reverse(other, agent, promotion),
              reject(story, task)
            ],
            { concurrency: 4 }
          )
          expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409])
          expect((yield* earned(story, agent)).promotions).toMatchObject([{ endReason: "reversed" }])
          const { status } = yield* story.get(`/tasks/${task.id}`)
          expect(status).toBe(answers[1].status === 200 || answers[3].status === 200 ? "rejected" : "expired")
        }
      })
    )
  })

  describe("Who undoes what an agent did while a decision promotes it", () => {
    it.effect("ends the trust that it has earned by then", () =>
      Effect.gen(function* () {
        const { access, hold, release } = yield* TwoServers
        const { other, story } = yield* bothDoors
        const agent = yield* story.post("/agents", earner(notes))
        const [first] = yield* decideEach(story, agent, "note", ["accept"])
        const planned = yield* undoRun(other, { id: first.runId })
        const second = yield* askedBy(story, agent, "note")
        const held = yield* Effect.forkChild(hold("task.beforeCommit"))
        const deciding = yield* Effect.forkChild(approve(story, second))
        yield* Fiber.join(held)
        const undoing = yield* Effect.forkChild(approve(other, planned.body))
        yield* whenWaiting(access, 1)
        yield* release
        expect((yield* Fiber.join(deciding)).status).toBe(200)
        expect((yield* Fiber.join(undoing)).status).toBe(200)
        const after = yield* earned(story, agent)
        expect(after.promotions).toMatchObject([{ reviews: 2, endReason: "reverted" }])
        expect(after.records).toMatchObject([{ accepted: 2, reverted: 1, promotionId: null }])
        expect(yield* toldOf(story)).toEqual([])
        expect((yield* told(story, agent, "note")).decision).toBe("suggest")
      })
    )
  })

  describe("Who takes a promotion back while the agent writes by it", () => {
    it.effect("waits for the write, and no later one is made", () =>
      Effect.gen(function* () {
        const { access, hold, release } = yield* TwoServers
        const { other, story } = yield* bothDoors
        const { agent, promotion } = yield* promoted(story, notes, "note")
        const held = yield* Effect.forkChild(hold("graph.beforeCommit"))
        const writing = yield* Effect.forkChild(told(story, agent, "note"))
        yield* Fiber.join(held)
        const reversing = yield* Effect.forkChild(reverse(other, agent, promotion))
        yield* whenWaiting(access, 1, "kb.promotions")
        expect((yield* earned(other, agent)).promotions).toMatchObject([{ endedAt: null }])
        yield* release
        const call = yield* Fiber.join(writing)
        expect([call.decision, call.promotionId]).toEqual(["execute", promotion.id])
        expect((yield* Fiber.join(reversing)).status).toBe(200)
        expect((yield* told(story, agent, "note")).decision).toBe("suggest")
        expect((yield* story.get("/objects?type=Note")).items).toHaveLength(3)
      })
    )
  })
})

describe("A server that dies while a decision promotes", () => {
  for (const [place, isKept] of [
    ["graph.beforeCommit", false],
    ["task.beforeCommit", false],
    ["task.afterCommit", true]
  ] as const)
    it.live(
      `at ${place}: ${isKept ? "all of it is there" : "nothing of it is, and it can be decided again"}`,
      () =>
        Effect.gen(function* () {
          const access = yield* freshDatabase
          const doomed = yield* startMortal(access)
          const story = yield* newProject(doomed, access)
          const agent = yield* story.post("/agents", earner(notes))
          yield* decideEach(story, agent, "note", ["accept"])
          const task = yield* askedBy(story, agent, "note")
          yield* doomed.dieAt(place, 1)
          yield* Effect.forkChild(approve(story, task))
          yield* doomed.died
          const there = storyIn(yield* startServer(access), access, story.projectId)
          const look = Effect.gen(function* () {
            const { promotions, records } = yield* earned(there, agent)
            const { status } = yield* there.get(`/tasks/${task.id}`)
            const objects = yield* there.get("/objects?type=Note")
            const tasks = yield* toldOf(there)
            return [status, records[0].accepted, promotions.length, tasks.length, objects.items.length]
          })
          expect(yield* look).toEqual(isKept ? ["completed", 2, 1, 1, 2] : ["pending", 1, 0, 0, 1])
          expect((yield* approve(there, task)).status).toBe(isKept ? 409 : 200)
          expect(yield* look).toEqual(["completed", 2, 1, 1, 2])
          expect((yield* told(there, agent, "note")).decision).toBe("execute")
        }).pipe(Effect.scoped)
    )
})
