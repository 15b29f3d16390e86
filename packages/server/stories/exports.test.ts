/**
 * Exports and their readers: one moment, however slowly it is read, and not for ever.
 */
import { connect } from "node:net"
import { describe, expect, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { dumpLimits } from "../src/database/dump-limits.ts"
import { transferLimits } from "../src/limits.ts"
import { exported, importLines, jsonl } from "../testing/import-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"

const count = 60

/** More than sockets hold for a reader that does not read. */
const largeGraph = (story: Story) =>
  importLines(
    story,
    jsonl(
      ...Array.from({ length: count }, (_, number) => ({
        type: "Document",
        key: `document-${number}`,
        properties: { state: "old", text: "x".repeat(200_000) }
      }))
    )
  )

interface Reader {
  /** Reads all that is left. */
  readonly rest: Effect.Effect<ReadonlyArray<Json>>
  readonly leave: Effect.Effect<void>
}

/** Asks for an export and reads nothing of it yet; what a client keeps unread for it would hide how slow it is. */
const beginReading = (story: Story): Effect.Effect<Reader> =>
  Effect.callback((resume) => {
    const { hostname, port } = new URL(story.url)
    // HTTP/1.0: the answer is the lines and nothing between them, until the connection is closed.
    const head = [
      `GET /api/projects/${story.projectId}/export HTTP/1.0`,
      `Host: ${hostname}:${port}`,
      `Authorization: Bearer ${story.token}`
    ]
    const socket = connect(Number(port), hostname, () => socket.write(`${head.join("\r\n")}\r\n\r\n`))
    socket.pause()
    const pieces: Array<Buffer> = []
    const rest: Reader["rest"] = Effect.callback((done) => {
      socket.on("data", (piece: Buffer) => pieces.push(piece))
      socket.on("close", () => {
        const text = Buffer.concat(pieces).toString()
        const lines = text.slice(text.indexOf("\r\n\r\n") + 4).trim()
        done(Effect.succeed(lines.split("\n").map((line) => JSON.parse(line))))
      })
      socket.resume()
    })
    resume(Effect.succeed({ rest, leave: Effect.sync(() => socket.destroy()) }))
  })

/** Transactions that read objects and are still open. */
const openSnapshots = (story: Story) =>
  Effect.map(
    ask(
      story.access,
      `select count(distinct pid)::int from pg_locks
       where database = (select oid from pg_database where datname = current_database())
         and relation = 'kb.graph_objects'::regclass and mode = 'AccessShareLock'`
    ),
    ([row]) => row?.[0]
  )

layer(SharedServer.layer)((it) => {
  describe("An export", () => {
    it.effect("shows one moment, however slowly it is read", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* largeGraph(story)
        const reader = yield* beginReading(story)
        yield* eventually(openSnapshots(story), (open) => open === 1)
        const [last] = (yield* story.get(`/objects?key=document-${count - 1}`)).items
        yield* story.patch(`/objects/${last.id}`, { properties: { state: "new" } })
        yield* story.post("/objects", { type: "Document", key: "later" })
        const lines = yield* reader.rest
        expect(lines).toHaveLength(count)
        expect(new Set(lines.map((line) => line.properties.state))).toEqual(new Set(["old"]))
        expect(yield* eventually(openSnapshots(story), (open) => open === 0)).toBe(0)
      })
    )

    it.effect("gives its connection back when its reader goes away, and its turn", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* largeGraph(story)
        const readers = yield* Effect.forEach([1, 2], () => beginReading(story))
        yield* eventually(openSnapshots(story), (open) => open === 1)
        yield* Effect.forEach(readers, (reader) => reader.leave)
        yield* eventually(openSnapshots(story), (open) => open === 0)
        expect(yield* exported(story)).toHaveLength(count)
      })
    )

    it.effect("of one project has one turn at a time, and leaves the others theirs", () =>
      Effect.gen(function* () {
        const [story, other] = [yield* newStoryHere, yield* newStoryHere]
        yield* largeGraph(story)
        yield* other.post("/objects", { type: "Document", key: "small" })
        const readers = yield* Effect.forEach(
          Array.from({ length: transferLimits.concurrentExports + 1 }),
          () => beginReading(story)
        )
        yield* eventually(openSnapshots(story), (open) => open === 1)
        const exporting = yield* Effect.forkScoped(exported(other))
        yield* eventually(
          Effect.sync(() => exporting.pollUnsafe() !== undefined),
          (isDone) => isDone
        )
        expect(yield* Fiber.join(exporting)).toHaveLength(1)
        expect(yield* openSnapshots(story)).toBe(1)
        yield* Effect.forEach(readers, (reader) => reader.leave)
      })
    )

    it.effect("whose reader takes nothing ends with a line that says so, and gives its turn back", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* largeGraph(story)
        const reader = yield* beginReading(story)
        yield* eventually(openSnapshots(story), (open) => open === 1)
        yield* asTimePasses(dumpLimits.readerStallMs / 4, openSnapshots(story), (open) => open === 0)
        const lines = yield* reader.rest
        expect(lines.length).toBeLessThan(count)
        expect(lines.at(-1)).toEqual({
          error: expect.stringMatching(/^This export is not whole: its reader took nothing for 60 seconds/)
        })
        // Whoever imports it learns of it.
        const other = yield* newStoryHere
        const told = yield* importLines(other, jsonl(...lines))
        expect(told.find((line) => line.type === "badLine")).toMatchObject({ line: lines.length })
      })
    )
  })
})
