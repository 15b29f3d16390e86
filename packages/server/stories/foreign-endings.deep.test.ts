/**
 * When connections to foreign servers end: with what is kept of the server, and when it answers nothing any more.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { answering, newOddShop } from "../testing/mcp-odd-server.ts"
import { outcomesOf } from "../testing/mcp-runs.ts"
import { addServer, type Diary, isThere, newDiary, program } from "../testing/mcp-words.ts"
import { eventually, newProject, startServer, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { whileServing } from "../testing/restarts.ts"
import { couriers } from "../testing/server-connections.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

const lookUp = { tool: "shop__lookup", arguments: { word: "fig" } }

const living = (diary: Diary) =>
  Effect.flatMap(diary.started, (pids) =>
    Effect.map(Effect.forEach(pids, isThere), (there) => there.filter(Boolean).length)
  )

/** A project with a program that has been started, and runs. */
const newShop = (story: Story) =>
  Effect.gen(function* () {
    const diary = yield* newDiary
    const { id } = yield* addServer(story, program(diary), { callTimeoutMs: 1_500 })
    expect(yield* living(diary)).toBe(1)
    return { diary, path: `/mcp-servers/${id}` }
  })

const ended = (diary: Diary) => eventually(living(diary), (count) => count === 0)

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A program of a server", () => {
    it.effect("that is refused is ended", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        yield* diary.say({ "odd_name/x": {} })
        const body = { name: "shop", transport: program(diary), allowedTools: ["*"] }
        expectProblem(yield* story.ask("POST", "/mcp-servers", body), 422, "/allowedTools")
        expect(yield* diary.started).toHaveLength(1)
        yield* ended(diary)
      })
    )

    it.effect("that is replaced by another, disabled or removed is ended, and the other one stays", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [first, next] = [yield* newShop(story), yield* newDiary]
        yield* story.ask("PATCH", first.path, { transport: program(next) })
        yield* ended(first.diary)
        expect(yield* living(next)).toBe(1)
        yield* story.ask("PATCH", first.path, { enabled: false })
        yield* ended(next)
        yield* story.ask("DELETE", first.path)
        const second = yield* newShop(story)
        yield* story.ask("DELETE", second.path)
        yield* ended(second.diary)
      })
    )

    it.effect("of which only the allow-list changes goes on", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { diary, path } = yield* newShop(story)
        yield* story.ask("PATCH", path, { allowedTools: ["lookup"] })
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
        expect(yield* diary.started).toHaveLength(1)
      })
    )

    it.effect("that is removed through another server of the database is ended, too", () =>
      Effect.gen(function* () {
        // A database that is not the program's own may have other programs on it, so servers hear each other.
        const access = { ...(yield* freshDatabase), embedded: false }
        const story = yield* newProject(yield* startServer(access), access)
        const { diary, path } = yield* newShop(story)
        yield* whileServing(access, story.projectId, (other) =>
          Effect.gen(function* () {
            yield* eventually(couriers(access), (pids) => pids.length === 2)
            yield* other.ask("DELETE", path)
            yield* ended(diary)
          })
        )
      })
    )

    it.effect("that no longer answers anything is replaced before the next call", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { diary } = yield* newShop(story)
        const first = yield* outcomesOf(story, [lookUp], { name: "first-buyer" })
        expect(first).toMatchObject([{ status: "completed" }])
        const [pid = 0] = yield* diary.started
        process.kill(pid, "SIGSTOP")
        expect(yield* outcomesOf(story, [lookUp], { name: "next-buyer" })).toMatchObject([
          { status: "unknown" }
        ])
        const pear = { ...lookUp, arguments: { word: "pear" } }
        expect(yield* outcomesOf(story, [pear])).toMatchObject([
          { status: "completed", result: "pear is a word." }
        ])
        expect(yield* diary.started).toHaveLength(2)
        yield* eventually(isThere(pid), (is) => !is)
      })
    )

    it.effect("that is only slow with one call is asked the next one", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { diary } = yield* newShop(story)
        const slow = { tool: "shop__charge", arguments: { amount: 1, wait: true } }
        expect(yield* outcomesOf(story, [slow, lookUp])).toMatchObject([
          { status: "unknown" },
          { status: "completed" }
        ])
        expect(yield* diary.started).toHaveLength(1)
      })
    )
  })

  describe("A session of a server", () => {
    it.effect("that is removed is ended", () =>
      Effect.gen(function* () {
        const { odd, server, story } = yield* newOddShop(({ message }) =>
          message?.method === "initialize"
            ? answering(
                message,
                {
                  protocolVersion: "2025-11-25",
                  capabilities: { tools: {} },
                  serverInfo: { name: "odd", version: "1" }
                },
                { "mcp-session-id": "one" }
              )
            : undefined
        )
        expect(odd.of("DELETE")).toHaveLength(0)
        yield* story.ask("DELETE", `/mcp-servers/${server.id}`)
        yield* eventually(
          Effect.sync(() => odd.of("DELETE")),
          (all) => all.length === 1
        )
      })
    )
  })
})
