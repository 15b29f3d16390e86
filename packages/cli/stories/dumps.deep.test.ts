/**
 * A whole project into a file and a project out of it, while others write, beside its original and elsewhere.
 */
import { createHash } from "node:crypto"
import { readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { endLineOf } from "@tropism/domain/dump"
import { Effect, Fiber } from "effect"
import { dumpParts, leftOut } from "../../server/src/tenancy/dump.ts"
import {
  answerTool,
  clientConversation,
  summaryNow,
  untilWaiting,
  waitingCalls
} from "../../server/testing/client-tool-words.ts"
import { addEvent, quietLog } from "../../server/testing/context-words.ts"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { startMortal } from "../../server/testing/mortal-servers.ts"
import { ask, holding } from "../../server/testing/owner-rows.ts"
import {
  type Doors,
  eventually,
  type Json,
  newProject,
  startServer,
  type Story,
  storyIn
} from "../../server/testing/platform.ts"
import { change, endedRuns, feedOf, make, watcher } from "../../server/testing/story-words.ts"
import { suggested } from "../../server/testing/suggestion-words.ts"
import { folder, json, tropism } from "../testing/dump-words.ts"

/** What an export of a project says, apart from the order of its lines. */
const exported = (doors: Doors, project: string, to: string) =>
  Effect.map(json(doors, "export", "--project", project, "-o", to), () =>
    createHash("sha256").update(readFileSync(to, "utf8").split("\n").toSorted().join("\n")).digest("hex")
  )

/** A project in which something of every kind has happened. */
const lived = Effect.fnUntraced(function* (story: Story) {
  yield* story.post("/members", { userId: "ada", role: "reviewer" })
  const { task } = yield* suggested(story, {
    tool: "create_object",
    arguments: { type: "Note", properties: { text: "Look" }, reasoning: "r" }
  })
  const agent = yield* story.post("/agents", watcher({ name: "greeter" }))
  const [from, to] = [
    yield* story.post("/objects", { type: "Person", key: "ada", properties: { age: 1 } }),
    yield* make(story, "Place")
  ]
  yield* endedRuns(story, agent, 1)
  yield* change(story, from, { age: 2 }, { age: 3 })
  yield* story.post("/relationships", {
    type: "livesIn",
    fromId: from.id,
    toId: to.id,
    properties: { of: to.id }
  })
  yield* story.delete(`/objects/${(yield* make(story, "Gone")).id}`)
  const hooked = yield* story.post("/agents", { name: "hooked", prompt: "Say.", triggerType: "webhook" })
  yield* story.post(`/agents/${hooked.id}/webhooks`, {})
  return { agent, from, task }
})

/** Writes until it is stopped. */
const writing = (story: Story, name: string) => {
  let number = 0
  return Effect.forever(
    Effect.suspend(() => {
      number += 1
      const key = `${name}-${number}`
      return Effect.flatMap(
        story.post("/objects", { type: "Load", key, properties: { number, name } }),
        (object) => change(story, object, { number: -number })
      )
    })
  )
}

const copyIn = (doors: Doors, of: Story, project: Json) => storyIn(doors, of.access, project.id)

describe("Requirement: a project is dumped as one moment and restored as a whole", () => {
  it.live("of every table of the schema is said whether a dump has it", () =>
    Effect.gen(function* () {
      const tables = yield* ask(
        yield* freshDatabase,
        `select relname from pg_class where relnamespace = 'kb'::regnamespace and relkind = 'r' order by 1`
      )
      expect(tables.flat()).toEqual(
        [...dumpParts.map(({ table }) => table), ...Object.keys(leftOut)].toSorted()
      )
    })
  )

  it.live("while four write, beside its original and on another server, where nothing acts", () =>
    Effect.gen(function* () {
      const here = yield* freshDatabase
      const story = yield* newProject(yield* startServer(here), here)
      const { agent, from, task } = yield* lived(story)
      const files = yield* folder
      const [file, rested] = [join(files, "busy.dump"), join(files, "rested.dump")]

      const writers = yield* Effect.forEach(["a", "b", "c", "d"], (name) =>
        Effect.forkScoped(writing(story, name))
      )
      yield* feedOf(story, 60)
      const dumped = yield* json(story, "dump", "--project", story.projectId, "-o", file)
      yield* Fiber.interruptAll(writers)
      expect(dumped).toMatchObject({ file, projectId: story.projectId })
      expect(statSync(file).mode & 0o77).toBe(0)

      // Beside the original: other ids, the same content.
      const beside = yield* json(story, "restore", file, "--name", "A copy")
      expect(beside).toMatchObject({
        project: { name: "A copy" },
        keptIds: false,
        rows: dumped.rows,
        disabledAgents: 4
      })
      expect((yield* json(story, "verify", "--project", beside.project.id)).differenceCount).toBe(0)
      const copy = copyIn(story, story, beside.project)
      const person = (yield* copy.get("/objects?type=Person")).items[0]
      expect(person).toMatchObject({
        key: "ada",
        version: 3,
        properties: { age: 3 },
        createdAt: from.createdAt
      })
      expect(person.id).not.toBe(from.id)
      const [home] = (yield* copy.get("/relationships")).items
      expect(home).toMatchObject({ fromId: person.id, properties: { of: home.toId } })
      expect((yield* copy.get(`/objects/${person.id}/history`)).items).toHaveLength(3)
      expect((yield* copy.get(`/objects/${from.id}`.replace(from.id, person.id))).version).toBe(3)
      expect((yield* story.get(`/objects/${from.id}`)).version).toBe(3)

      // Elsewhere, at rest: the same to the last id.
      const other = yield* freshDatabase
      const elsewhere = yield* startServer(other)
      yield* json(story, "dump", "--project", story.projectId, "-o", rested)
      const moved = yield* json(elsewhere, "restore", rested)
      expect(moved).toMatchObject({ keptIds: true, project: { name: "A story" } })
      expect(yield* exported(elsewhere, moved.project.id, join(files, "moved.jsonl"))).toBe(
        yield* exported(story, story.projectId, join(files, "original.jsonl"))
      )
      expect((yield* json(elsewhere, "verify", "--project", moved.project.id)).differenceCount).toBe(0)

      // Nothing acts: not on what came, not on what happens, before somebody says so.
      const there: Story = storyIn(elsewhere, other, moved.project.id)
      const [kept] = (yield* there.get("/agents")).items.filter((one: Json) => one.id === agent.id)
      expect(kept).toMatchObject({ enabled: false, disabledReason: expect.stringMatching(/\S/) })
      const runsBefore = (yield* there.get("/runs")).items.length
      yield* make(there, "Person")
      const { position } = yield* newest(there)
      expect((yield* there.get("/runs")).items).toHaveLength(runsBefore)
      yield* there.patch(`/agents/${agent.id}`, { enabled: true })
      const late = yield* make(there, "Person")
      yield* endedRuns(there, agent, 2)
      expect((yield* newest(there)).position).toBeGreaterThan(position)
      expect(late.version).toBe(1)

      // What waited for a person waits, a member is one, and a webhook has a token that is not in the file.
      expect(yield* there.get(`/tasks/${task.id}`)).toMatchObject({ status: "pending", number: task.number })
      yield* there.post(`/tasks/${task.id}/approve`)
      expect((yield* there.get("/members")).items).toMatchObject([{ userId: "ada", role: "reviewer" }])
      const secrets = yield* ask(here, "select token_hash from kb.webhooks")
      expect(readFileSync(rested, "utf8")).not.toContain(String(secrets[0]?.[0]))
      expect(yield* ask(other, "select 1 from kb.restored_ids")).toEqual([])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live(
    "S004-F02 a call that waits for a client waits on where it was dumped, and has ended in the copy",
    () =>
      Effect.gen(function* () {
        const here = yield* freshDatabase
        const story = yield* newProject(yield* startServer(here), here)
        const { agent } = yield* clientConversation(story)
        const { callId, run } = yield* untilWaiting(story)
        const due = "select answer_due_at::text, status from kb.tool_calls where call_id = $1"
        const [before] = yield* ask(here, due, [callId])
        const file = join(yield* folder, "waiting.dump")
        yield* json(story, "dump", "--project", story.projectId, "-o", file)
        const other = yield* freshDatabase
        const elsewhere = yield* startServer(other)
        const { project } = yield* json(elsewhere, "restore", file)
        const there = storyIn(elsewhere, other, project.id)
        expect(yield* ask(other, due, [callId])).toEqual([[before?.[0], "abandoned"]])
        expect(yield* there.get(`/runs/${run.id}`)).toMatchObject({ status: "cancelled", pauseReason: null })
        const late = yield* answerTool(there, callId, { result: "there" })
        expect([late.status, late.body.reason]).toEqual([409, "notWaiting"])

        // The conversation goes on in the copy, with its client tool.
        yield* there.patch(`/agents/${agent.id}`, { enabled: true })
        yield* addEvent(there, "talk", "Again")
        const [, again] = yield* waitingCalls(there, 2)
        expect((yield* answerTool(there, again?.callId as string, { result: "there" })).status).toBe(204)
        const log = yield* quietLog(there, "talk")
        expect(
          log.filter(({ type, callId: of }) => of === callId && /Failed|Completed/.test(type))
        ).toMatchObject([{ type: "ToolCallFailedEvent" }])
        expect(yield* summaryNow(there)).toContain('"there"')
        expect((yield* there.get("/verify")).differences).toEqual([])

        // Where it was taken nothing has changed.
        expect(yield* ask(here, due, [callId])).toEqual([before])
        expect((yield* answerTool(story, callId, { result: "here" })).status).toBe(204)
        yield* quietLog(story, "talk")
        expect(yield* summaryNow(story)).toBe('pick_colour: "here"; ')
      }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("whole or not at all: a byte too few, another byte, a version to come, a server that dies", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const server = yield* startMortal(access)
      const story = yield* newProject(server, access)
      yield* story.post("/objects", { type: "A", key: "one", properties: { n: 1 } })
      const files = yield* folder
      const [file, broken] = [join(files, "good.dump"), join(files, "broken.dump")]
      yield* json(story, "dump", "-o", file)
      const text = readFileSync(file, "utf8")
      const refusal = (content: string) =>
        Effect.gen(function* () {
          writeFileSync(broken, content)
          const { error, exitCode } = yield* tropism(story, "restore", broken)
          expect(exitCode).toBe(1)
          return error
        })
      const damaged = yield* refusal(text.slice(0, -1))
      expect(yield* refusal(text.replace('"n": 1', '"n": 2'))).toBe(damaged)
      const empty = yield* refusal("")
      const cut = yield* refusal(text.slice(0, -200))
      const strange = yield* refusal('{"type":"A"}\n')
      expect(strange).toMatch(/"tropism dump".*"tropism import"/)
      const newer = yield* refusal(text.replace(/"schema":\d+/, '"schema":9999'))
      expect(newer).toMatch(/\b9999\b/)
      // Whoever mends the digest, too, is held by the database, and leaves nothing.
      const forging = (change: (rows: string) => string) => {
        const forged = change(text.split("\n").slice(0, -2).join("\n"))
        const sha256 = createHash("sha256").update(`${forged}\n`).digest("hex")
        return refusal(`${forged}\n${endLineOf({ rows: forged.split("\n").length - 1, sha256 })}`)
      }
      const own = `"project_id": "${story.projectId}"`
      const foreign = `"project_id": "${crypto.randomUUID()}"`
      const stolen = yield* forging((rows) => rows.replaceAll(own, foreign))
      // A number that is longer where it is kept than in its line.
      const exponent = yield* forging((rows) => rows.replace('"n": 1', '"n": 1e99'))
      expect(exponent).toContain("graph_object")
      // Each has a reason of its own.
      expect(new Set([damaged, empty, cut, strange, newer, stolen, exponent]).size).toBe(7)
      const { token } = yield* story
        .post("/tokens", { name: "t", userId: "eve", role: "admin" })
        .pipe(
          Effect.catchDefect(() =>
            Effect.andThen(
              story.post("/members", { userId: "eve", role: "admin" }),
              story.post("/tokens", { name: "t", userId: "eve", role: "admin" })
            )
          )
        )
      const forbidden = yield* tropism({ ...story, token }, "restore", file, "--json")
      expect([forbidden.exitCode, JSON.parse(forbidden.error).error.problem.status]).toEqual([1, 403])
      expect(yield* json(story, "projects")).toHaveLength(1)

      // The restore has written the objects, and stands before their events, when its server dies.
      yield* Effect.scoped(
        Effect.gen(function* () {
          const owner = yield* holding(access, "lock table kb.graph_events in share mode")
          const restoring = yield* Effect.forkScoped(tropism(story, "restore", file))
          yield* eventually(
            ask(
              access,
              "select 1 from pg_locks where not granted and relation = 'kb.graph_events'::regclass and database = (select oid from pg_database where datname = current_database())"
            ),
            (rows) => rows.length > 0
          )
          yield* server.kill
          const { error, exitCode } = yield* Fiber.join(restoring)
          expect([exitCode, error]).toEqual([1, expect.stringMatching(/\S/)])
          yield* owner.query("rollback")
        })
      )
      const next = yield* startMortal(access)
      expect(yield* json(next, "projects")).toHaveLength(1)
      expect(yield* ask(access, "select count(*)::int from kb.graph_objects")).toEqual([[1]])
      const restored = yield* json(next, "restore", file)
      expect((yield* json(next, "verify", "--project", restored.project.id)).checked).toMatchObject({
        objects: 1,
        versions: 1
      })
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

/** The newest event of a feed, once everything before it is dispatched. */
const newest = (story: Story) =>
  eventually(
    Effect.map(
      ask(
        story.access,
        `select position::int, dispatched_at is not null from kb.graph_events where project_id = $1 order by seq desc limit 1`,
        [story.projectId]
      ),
      ([row]) => ({ position: Number(row?.[0]), isDispatched: row?.[1] === true })
    ),
    ({ isDispatched }) => isDispatched
  )
