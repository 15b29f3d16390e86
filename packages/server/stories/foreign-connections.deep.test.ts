/**
 * Connections to foreign servers: shared, closed when nobody needs them, and harmless when a server misbehaves.
 */
import { existsSync } from "node:fs"
import { describe, expect, layer } from "@effect/vitest"
import { ConfigProvider, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { CrashPoint, type CrashPointName } from "../src/crash-point.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { newCaller, outcomesOf, runOf } from "../testing/mcp-runs.ts"
import { addServer, type Diary, httpServer, isThere, newDiary, program } from "../testing/mcp-words.ts"
import { eventually, type Json, newProject, startServer } from "../testing/platform.ts"
import { whileServing } from "../testing/restarts.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"

const lookUp = { tool: "shop__lookup", arguments: { word: "fig" } }

const living = (diary: Diary) =>
  Effect.flatMap(diary.started, (pids) =>
    Effect.map(Effect.forEach(pids, isThere), (there) => there.filter(Boolean).length)
  )

/** The revision of the protocol in which calls were made. */
const revisionsOf = (heard: ReadonlyArray<Json>): ReadonlyArray<string> => [
  ...new Set(
    heard
      .filter(({ body }) => body?.method === "tools/call")
      .map(({ headers }) => headers["mcp-protocol-version"])
  )
]

const shopSecret = "s3cret-and-long-enough"

const theirs = ConfigProvider.layer(
  ConfigProvider.fromEnv({ env: { PATH: process.env["PATH"] ?? "", TROPISM_SECRET_SHOP: shopSecret } })
)

layer(Layer.provide(SharedServer.own, theirs), { excludeTestServices: true })((it) => {
  describe("A connection", () => {
    it.effect("is made once for all runs of a server", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        yield* addServer(story, program(diary))
        const agent = yield* newCaller(story, [lookUp])
        const runs = yield* Effect.forEach(
          Array.from({ length: 6 }),
          () => story.post(`/agents/${agent.id}/trigger`),
          { concurrency: 6 }
        )
        expect(runs.map((run) => run.status)).toEqual(Array(6).fill("completed"))
        expect(yield* diary.called).toHaveLength(6)
        expect(yield* diary.started).toHaveLength(1)
      })
    )

    it.effect(
      "speaks the revision of 2026-07-28, and that of 2025-11-25 where the server knows no newer one",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [diary, oldDiary] = [yield* newDiary, yield* newDiary]
          const now = yield* httpServer(diary)
          const old = yield* httpServer(oldDiary, { isOld: true })
          yield* addServer(story, { type: "http", url: now.url })
          yield* addServer(story, { type: "http", url: old.url }, { name: "old" })
          const calls = yield* outcomesOf(story, [lookUp, { ...lookUp, tool: "old__lookup" }], {
            tools: ["shop.*", "old.*"]
          })
          expect(calls).toMatchObject([{ status: "completed" }, { status: "completed" }])
          expect(revisionsOf(now.heard)).toEqual(["2026-07-28"])
          expect(revisionsOf(old.heard)).toEqual(["2025-11-25"])
          expect(old.heard.filter(({ body }) => body?.method === "initialize").length).toBeGreaterThan(0)
        })
    )

    it.effect("that fails is not tried again at once, and works again when the server is back", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        const port = yield* Effect.scoped(
          Effect.gen(function* () {
            const { url } = yield* httpServer(diary)
            yield* addServer(story, { type: "http", url })
            return Number(new URL(url).port)
          })
        )
        const words = ["fig", "pear", "plum", "date", "lime", "kiwi", "lemon", "mango"]
        const calls = words.map((word) => ({ ...lookUp, arguments: { word } }))
        // The first finds the old connection broken, the second finds nobody to connect to, the third waits for neither:
        // on a busy machine a later one, for each try in vain is followed by twice the pause.
        const [first, ...others] = yield* outcomesOf(story, calls)
        expect(first).toMatchObject({
          status: "failed",
          result: { reason: "unavailable", error: expect.stringContaining("shop") }
        })
        expect(others).toMatchObject(
          others.map(() => ({ status: "failed", result: { reason: "unavailable" } }))
        )
        expect(others).toHaveLength(7)
        expect(others.at(-1)?.result.error).toMatch(/\d/)
        yield* httpServer(diary, { port })
        const agent = yield* newCaller(story, [lookUp], { name: "patient" })
        const statusNow = Effect.gen(function* () {
          const run = yield* story.post(`/agents/${agent.id}/trigger`)
          return (yield* story.get(`/runs/${run.id}/tool-calls`)).items[0].status
        })
        yield* eventually(statusNow, (status) => status === "completed")
        expect((yield* diary.called).length).toBe(1)
      })
    )
  })

  describe("A program that misbehaves", () => {
    it.effect("because it speaks between its messages is understood all the same", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        const made = yield* addServer(story, program(diary, { MODE: "garbage" }))
        expect(made.lastError).toBe(null)
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
      })
    )

    it.effect("because it ends at a question before the handshake is started once more without", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        const made = yield* addServer(story, program(diary, { MODE: "shy" }))
        expect(made.lastError).toBe(null)
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
        expect(yield* diary.started).toHaveLength(2)
      })
    )

    it.effect("because it ends at its start is kept with its last words, without any secret", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const made = yield* addServer(
          story,
          program(yield* newDiary, { MODE: "broken", SECRET: { secret: "TROPISM_SECRET_SHOP" } })
        )
        expect(made.lastError).toMatch(/There is no licence for \S+$/)
        expect(made.lastError).not.toContain(shopSecret)
      })
    )

    it.effect(
      "because it dies before a call is sent has not got the call, and the next one is answered",
      () =>
        Effect.gen(function* () {
          const diary = yield* newDiary
          let deaths = 0
          const kill = Effect.gen(function* () {
            const [pid] = yield* diary.started
            if (pid === undefined || deaths++ > 0) return
            process.kill(pid, "SIGKILL")
            yield* eventually(
              Effect.sync(() => existsSync(`/proc/${pid}`)),
              (isThere) => !isThere
            )
          })
          const hit = (name: CrashPointName) => (name === "run.beforeForeignCall" ? kill : Effect.void)
          const access = yield* freshDatabase
          const doors = yield* Effect.provideService(startServer(access), CrashPoint, { hit })
          const story = yield* newProject(doors, access)
          yield* addServer(story, program(diary))
          const charge = (amount: number) => ({ tool: "shop__charge", arguments: { amount } })
          expect(yield* outcomesOf(story, [charge(1), charge(2)])).toMatchObject([
            { status: "failed", result: { reason: "unavailable" } },
            { status: "completed", result: "Charged 2." }
          ])
          expect(yield* diary.called).toMatchObject([{ arguments: { amount: 2 } }])
        })
    )

    it.effect("because it dies takes what it started with it, though nobody calls it again", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        yield* addServer(story, program(diary, { MODE: "parent" }))
        const [parent, child] = yield* diary.started
        expect(yield* outcomesOf(story, [{ tool: "shop__die", arguments: {} }])).toMatchObject([
          { status: "unknown" }
        ])
        yield* eventually(
          Effect.map(Effect.forEach([parent ?? 0, child ?? 0], isThere), (there) => there),
          (there) => there.every((is) => !is)
        )
      })
    )

    it.effect("because its answer is larger than any may be is ended, and its next call is answered", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        yield* addServer(story, program(diary))
        const calls = yield* outcomesOf(story, [
          { tool: "shop__big", arguments: { length: 6_000_000 } },
          lookUp
        ])
        expect(calls).toMatchObject([
          {
            status: "unknown",
            result: { error: expect.stringMatching(/\b4194304\b/) }
          },
          { status: "completed" }
        ])
        yield* diary.say({ lookup: { description: "x".repeat(5_000_000) } })
        const big = yield* addServer(story, program(diary), { name: "big" })
        expect(big.lastError).toMatch(/\b4194304\b/)
      })
    )
  })

  describe("A server that stops", () => {
    it.effect("in the middle of a call waits for its answer, and the call is made once", () =>
      Effect.gen(function* () {
        const diary = yield* newDiary
        const access = yield* freshDatabase
        const first = yield* Scope.make()
        const story = yield* newProject(yield* Scope.provide(startServer(access), first), access)
        yield* addServer(story, program(diary))
        const agent = yield* newCaller(story, [
          { tool: "shop__charge", arguments: { amount: 3, wait: true } }
        ])
        const run = yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
        yield* eventually(diary.called, (called) => called.length === 1)
        const stopping = yield* Effect.forkChild(Scope.close(first, Exit.void))
        yield* diary.open
        yield* Fiber.join(stopping)
        expect(yield* living(diary)).toBe(0)
        yield* whileServing(access, story.projectId, (again) =>
          Effect.gen(function* () {
            yield* eventually(again.get(`/runs/${run.id}`), ({ status }) => status === "completed")
            const { items } = yield* again.get(`/runs/${run.id}/tool-calls`)
            expect(items).toMatchObject([{ status: "completed", result: "Charged 3." }])
          })
        )
        expect(yield* diary.called).toHaveLength(1)
      })
    )

    it.effect("leaves nothing of the programs that it started, not even of one that does not go", () =>
      Effect.gen(function* () {
        const [diary, stubborn] = [yield* newDiary, yield* newDiary]
        const before = yield* Effect.scoped(
          Effect.gen(function* () {
            const access = yield* freshDatabase
            const story = yield* newProject(yield* startServer(access), access)
            yield* addServer(story, program(diary))
            yield* addServer(story, program(stubborn, { MODE: "stubborn" }), { name: "mule" })
            return [yield* living(diary), yield* living(stubborn)]
          })
        )
        expect(before).toEqual([1, 2])
        expect([yield* living(diary), yield* living(stubborn)]).toEqual([0, 0])
      })
    )
  })
})

layer(SharedServer.layer)((it) => {
  describe("A connection that nobody uses", () => {
    it.effect("is closed after a while, and made again by the next call", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        yield* addServer(story, program(diary))
        yield* runOf(story, [lookUp])
        yield* TestClock.adjust("4 minutes")
        expect(yield* living(diary)).toBe(1)
        yield* asTimePasses(10_000, living(diary), (alive) => alive === 0)
        yield* runOf(story, [lookUp], { name: "later" })
        expect(yield* diary.started).toHaveLength(2)
      })
    )
  })

  describe("A server that never answers", () => {
    it.effect("keeps its own caller waiting for a bounded time, and nobody else", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [diary, silent] = [yield* newDiary, yield* newDiary]
        const adding = yield* Effect.forkChild(
          addServer(story, program(silent, { MODE: "silent" }), { name: "mute" })
        )
        yield* eventually(silent.started, (pids) => pids.length === 1)
        yield* addServer(story, program(diary))
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
        yield* asTimePasses(1_000, living(silent), (alive) => alive === 0)
        const made = yield* Fiber.join(adding)
        expect(made).toMatchObject({
          tools: [],
          lastError: expect.stringMatching(/\b30000\b/)
        })
      })
    )
  })
})
