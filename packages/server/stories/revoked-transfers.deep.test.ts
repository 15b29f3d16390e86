/**
 * Whoever sends or reads a file and may do so no more is stopped within half a minute, and told how it stands.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { streamLimits } from "../src/http/limits.ts"
import { conversationLimits } from "../src/limits.ts"
import { fileOf } from "../testing/lockfiles.ts"
import { beginSending, hasCommitted } from "../testing/import-sender.ts"
import { allOf, importLines, importLock, jsonl, linesOf } from "../testing/import-words.ts"
import { say } from "../testing/context-words.ts"
import { newConversation, talker } from "../testing/conversation-words.ts"
import { interposedServer } from "../testing/interposed.ts"
import { ask, holding } from "../testing/owner-rows.ts"
import { beginReading, documents, largeGraph, openSnapshots } from "../testing/paused-reader.ts"
import { eventually, type Json, newProject, type Story } from "../testing/platform.ts"
import { rawAnswer } from "../testing/raw-request.ts"
import { rawSubscriber } from "../testing/raw-subscriber.ts"
import { askAsServer } from "../testing/server-connections.ts"
import {
  asTimePasses,
  newStoryHere,
  passing,
  patientDatabase,
  SharedServer
} from "../testing/shared-server.ts"
import { asUser } from "../testing/token-words.ts"

const notes = (...numbers: ReadonlyArray<number>) =>
  jsonl(...numbers.map((number) => ({ type: "Note", key: `note-${number}`, properties: { number } })))

const keysOf = (story: Story) =>
  Effect.map(allOf(story, "/objects"), (objects) => objects.map(({ key }: Json) => key).toSorted())

const revoke = ({ access, token }: Story) =>
  ask(access, "update kb.api_tokens set revoked_at = now() where hash = encode(sha256($1::bytea), 'hex')", [
    token
  ])

/** Waits until somebody's token has let them in. */
const whenLetIn = ({ access, token }: Story) =>
  eventually(
    ask(
      access,
      `select from kb.api_tokens where last_used_at is not null and hash = encode(sha256($1::bytea), 'hex')`,
      [token]
    ),
    (rows) => rows.length === 1
  )

/** What lets somebody in is taken away and half a minute goes by, at the end of which a stream of theirs is closed, too. */
const shutOut = Effect.fnUntraced(function* (story: Story, somebody: Story, taking: Effect.Effect<unknown>) {
  const live = yield* rawSubscriber(somebody, `/api/projects/${story.projectId}/events`)
  yield* eventually(Effect.sync(live.bytes), (bytes) => bytes > 0)
  yield* taking
  // In one step a statement that is under way would be silent for so long, and its connection given up.
  yield* passing(streamLimits.permitIntervalMs, 1_000)
  yield* live.closed
}, Effect.scoped)

layer(SharedServer.layer)((it) => {
  describe("Whoever sends a file and is put out of the project meanwhile", () => {
    it.effect("imports nothing more, and somebody else goes on with it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const sending = yield* asUser(story, "editor", [story.projectId], "ada")
        const sender = yield* beginSending(sending, "?format=jsonl")
        yield* sender.send(notes(1))
        const [{ importId }] = yield* sender.toldWhen(hasCommitted(1))
        yield* shutOut(story, sending, story.delete("/members/ada"))
        const told = yield* sender.toldWhen((lines) => lines.at(-1)?.type === "failed")
        expect(told.at(-1)).toEqual({
          type: "failed",
          message: expect.any(String),
          resume: importId
        })
        expect(yield* story.get(`/imports/${importId}`)).toMatchObject({
          status: "interrupted",
          lines: 1,
          errorMessage: expect.any(String)
        })
        const again = yield* importLines(story, notes(1, 2), `?format=jsonl&resume=${importId}`)
        expect(again[0]).toMatchObject({ type: "started", skippedLines: 1 })
        expect(again.at(-1)).toMatchObject({ type: "finished", created: 2 })
        expect(yield* keysOf(story)).toEqual(["note-1", "note-2"])
      })
    )
  })

  describe("Whoever reads a whole project and may do so no more", () => {
    it.effect("has an export that ends with a line that says so", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* largeGraph(story)
        const reading = yield* asUser(story, "viewer", [story.projectId], "bob")
        const reader = yield* beginReading(reading)
        yield* eventually(openSnapshots(story), (open) => open === 1)
        yield* shutOut(story, reading, revoke(reading))
        // It is judged by a clock of its own, which may have begun later than that of the stream.
        yield* asTimePasses(1_000, openSnapshots(story), (open) => open === 0)
        const lines = yield* reader.rest
        expect(lines.length).toBeLessThan(documents)
        expect(lines.at(-1)).toEqual({ error: expect.any(String), reason: "accessLost" })
      })
    )

    it.effect("has a dump that ends with a line that says so, also where only the role is a lesser one", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* largeGraph(story)
        yield* asUser(story, "admin", [story.projectId], "ada")
        const reading = yield* asUser(story, "admin", [story.projectId], "eve")
        const reader = yield* beginReading(reading, "/dump")
        yield* eventually(openSnapshots(story), (open) => open === 1)
        yield* shutOut(story, reading, story.patch("/members/eve", { role: "viewer" }))
        yield* asTimePasses(1_000, openSnapshots(story), (open) => open === 0)
        const lines = yield* reader.rest
        expect(lines.at(-1)).toEqual({ tropism: "failed", error: expect.any(String), reason: "accessLost" })
      })
    )
  })

  describe("Whoever reads a whole conversation and may do so no more", () => {
    it.effect("has a document that breaks off with a line that says so", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const talks = yield* newConversation(story, yield* talker(story, [{ say: "Hello." }]), "Milk")
        const reading = yield* asUser(story, "admin", [story.projectId], "ada")
        // More than sockets hold for a reader that does not read; what was read by then is told, and no more.
        const words = "x".repeat(99_000)
        const said = Array.from(
          { length: 2 * conversationLimits.exportPageMessages + 1 },
          (_, n) => `${n} ${words}`
        )
        yield* Effect.forEach(said, (text) => say(story, talks.contextName, text, false))
        const reader = yield* beginReading(reading, `/conversations/${talks.id}/export`)
        // The first message has come.
        yield* reader.begun(200_000)
        yield* shutOut(story, reading, revoke(reading))
        const [document = "", last, ...rest] = (yield* reader.text).split("\n")
        expect(document.startsWith(`${JSON.stringify(talks).slice(0, 60)}`)).toBe(true)
        expect(document).toContain("0 xxx")
        expect(document).not.toContain(`${said.length - 1} xxx`)
        expect(JSON.parse(last ?? "")).toEqual({ error: expect.any(String), reason: "accessLost" })
        expect(rest).toEqual([""])
      })
    )
  })

  describe("Whoever restores a dump and is the server's admin no more", () => {
    it.effect("is told so while they still send it, and their connection ends", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const sending = yield* asUser(story, "admin", null, "eve")
        const head = [
          "POST /api/restore HTTP/1.1",
          "content-type: application/octet-stream",
          "content-length: 9999"
        ]
        const answer = yield* Effect.forkScoped(rawAnswer(sending, head, '{"tropism":'))
        yield* whenLetIn(sending)
        yield* shutOut(story, sending, revoke(sending))
        const said = yield* Fiber.join(answer)
        expect(said.split("\r\n")[0]).toBe("HTTP/1.1 401 Unauthorized")
        expect(said).toContain("/problems/unauthorized")
      })
    )

    it.effect("restores nothing of one that has come whole", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/objects", { type: "Note", key: "note-1" })
        const { body: dump } = yield* story.send("GET", `/api/projects/${story.projectId}/dump`)
        const sending = yield* asUser(story, "admin", null, "eve")
        const id = crypto.randomUUID()
        // It waits for its turn, as behind another server's.
        const turn = "select pg_advisory_xact_lock(hashtextextended('tropism.restores', 0))"
        const holder = yield* holding(story.access, turn)
        const restore = sending.send("POST", `/api/restore?id=${id}`, dump, {
          "content-type": "application/octet-stream"
        })
        const answer = yield* Effect.forkScoped(restore)
        yield* eventually(
          askAsServer(
            story.access,
            `select 1 from pg_stat_activity where datname = current_database() and state = 'idle in transaction' and query like '%tropism.restores%'`
          ),
          (standing) => standing.length === 1
        )
        yield* shutOut(story, sending, revoke(sending))
        yield* holder.query("rollback")
        expect(linesOf(yield* Fiber.join(answer)).at(-1)).toEqual({
          type: "failed",
          message: expect.stringContaining(id)
        })
        expect((yield* story.send("GET", `/api/projects/${id}`)).status).toBe(404)
      })
    )
  })
})

describe("Whoever sends a lockfile and is put out of the project meanwhile", () => {
  it.effect("imports nothing more of it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* patientDatabase
        const { doors, interpose } = yield* interposedServer(access)
        const story = yield* newProject(doors, access)
        const sending = yield* asUser(story, "editor", [story.projectId], "ada")
        // Its first changes are made and not committed yet.
        yield* interpose("graph.beforeCommit", shutOut(story, sending, revoke(sending)))
        const file = fileOf({
          "": { name: "shop", dependencies: { paint: "^1.0.0" } },
          "node_modules/paint": { version: "1.0.0" }
        })
        expect(yield* importLock(sending, file)).toEqual({
          type: "failed",
          message: expect.any(String)
        })
        expect(yield* keysOf(story)).toEqual([])
      })
    )
  )
})
