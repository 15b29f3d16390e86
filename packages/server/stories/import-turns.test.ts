/**
 * Imports of one server wait for each other, whatever they import: for a connection, and for room for a whole lockfile.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Latch, Layer } from "effect"
import { CrashPoint, type CrashPointName } from "../src/crash-point.ts"
import { fileOf } from "../testing/lockfiles.ts"
import { transferLimits } from "../src/limits.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { importFile, importLines, importLock, jsonl, linesOf } from "../testing/import-words.ts"
import { patiently } from "../testing/interposed.ts"
import { eventually, newProject, startServer, type Story } from "../testing/platform.ts"

/** A server in which whoever writes to the graph stops before the commit while the gate is closed. */
class Gated extends Context.Service<
  Gated,
  {
    readonly newStory: Effect.Effect<Story>
    readonly gate: Latch.Latch
    /** How many stand before it. */
    readonly standing: Effect.Effect<number>
  }
>()("@tropism/server/stories/Gated") {
  static readonly layer = Layer.effect(
    Gated,
    Effect.gen(function* () {
      const gate = yield* Latch.make(true)
      const here = { count: 0 }
      const hit = (name: CrashPointName) =>
        name === "graph.beforeCommit"
          ? Effect.suspend(() => {
              here.count += 1
              return Effect.ensuring(
                gate.await,
                Effect.sync(() => void (here.count -= 1))
              )
            })
          : Effect.void
      const access = yield* freshDatabase
      const server = yield* Effect.provideService(startServer(patiently(access)), CrashPoint, { hit })
      return Gated.of({
        gate,
        newStory: newProject(server, access),
        standing: Effect.sync(() => here.count)
      })
    })
  )
}

/** Whatever becomes of a story, the next one finds the gate open. */
const withGate = <A, E, R>(story: (here: Gated["Service"]) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(Gated, (here) => Effect.ensuring(story(here), here.gate.open))

const lockfile = fileOf({ "": { name: "shop" }, "node_modules/paint": { version: "1.0.0" } })

/** Time in which a server would have done what nothing keeps it from. */
const meanwhile = (story: Story) =>
  Effect.forEach(Array.from({ length: 5 }), () => story.get("/objects"), { discard: true })

layer(Gated.layer, { excludeTestServices: true })((it) => {
  describe("Imports", () => {
    it.effect("commit a few batches at once, those of lockfiles among them", () =>
      withGate(
        Effect.fnUntraced(function* ({ gate, newStory, standing }) {
          const lines = jsonl({ type: "Person", key: "ada", properties: {} })
          const stories = yield* Effect.replicateEffect(newStory, 2 * transferLimits.concurrentBatches)
          yield* gate.close
          const imports = yield* Effect.forEach(stories, (story, n) =>
            Effect.forkChild(
              n % 2 === 0
                ? importLock(story, lockfile)
                : Effect.map(importLines(story, lines), (told) => told.at(-1))
            )
          )
          yield* eventually(standing, (count) => count >= transferLimits.concurrentBatches)
          for (const story of stories) yield* meanwhile(story)
          expect(yield* standing).toBe(transferLimits.concurrentBatches)
          yield* gate.open
          const ends = yield* Effect.forEach(imports, Fiber.join)
          expect(ends.map(({ type }) => type)).toEqual(stories.map(() => "finished"))
        })
      )
    )

    it.effect("have a few lockfiles in memory at once, and nothing of the others is read", () =>
      withGate(
        Effect.fnUntraced(function* ({ gate, newStory, standing }) {
          const stories = yield* Effect.replicateEffect(newStory, transferLimits.concurrentLockfiles)
          yield* gate.close
          const imports = yield* Effect.forEach(stories, (story) =>
            Effect.forkChild(importLock(story, lockfile))
          )
          yield* eventually(standing, (count) => count === transferLimits.concurrentLockfiles)
          const other = yield* newStory
          const refused = yield* Effect.forkChild(importFile(other, "nonsense"))
          yield* meanwhile(other)
          expect(refused.pollUnsafe()).toBeUndefined()
          yield* gate.open
          expect((yield* Fiber.join(refused)).status).toBe(422)
          const ends = yield* Effect.forEach(imports, Fiber.join)
          expect(ends.map(({ type }) => type)).toEqual(stories.map(() => "finished"))
        })
      )
    )

    it.effect("of two lockfiles of one project go one after the other", () =>
      withGate(
        Effect.fnUntraced(function* ({ gate, newStory, standing }) {
          const story = yield* newStory
          yield* gate.close
          const first = yield* Effect.forkChild(importLock(story, lockfile))
          yield* eventually(standing, (count) => count === 1)
          const second = yield* Effect.forkChild(importFile(story, lockfile))
          yield* meanwhile(story)
          yield* gate.open
          expect(yield* Fiber.join(first)).toMatchObject({ type: "finished", created: 2 })
          expect(linesOf(yield* Fiber.join(second)).at(-1)).toMatchObject({ type: "finished", unchanged: 2 })
        })
      )
    )
  })
})
