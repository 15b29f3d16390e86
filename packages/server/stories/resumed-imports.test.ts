/**
 * Imports that break off and are gone on with: what is committed stays, the rest comes, and nothing comes twice.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { beginSending, hasCommitted } from "../testing/import-sender.ts"
import { allOf, exported, importFile, importLines, jsonl } from "../testing/import-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, type Story } from "../testing/platform.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

/** Lines of objects that no key would find again. */
const notes = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) =>
    jsonl({ type: "Note", properties: { number: from + index, text: "ä".repeat(50) } })
  ).join("")

const numbersOf = (story: Story) =>
  Effect.map(allOf(story, "/objects"), (objects) =>
    objects.map((object) => object.properties.number).toSorted((a, b) => a - b)
  )

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index)

const last = (lines: ReadonlyArray<Json>): Json => lines.at(-1)

/** Sends the first lines of a file and goes away when they are committed. Answers the import. */
const broken = Effect.fn("broken")(function* (
  story: Story,
  text: string,
  lines: number,
  query = "?format=jsonl"
) {
  const sender = yield* beginSending(story, query)
  yield* sender.send(text)
  const [{ importId }] = yield* sender.toldWhen(hasCommitted(lines))
  yield* sender.leave
  return yield* eventually(
    story.get(`/imports/${importId}`),
    (one: Json) => one.status === "interrupted" && one.lines >= lines
  )
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("An import whose connection breaks", () => {
    it.effect("keeps what is committed and goes on behind it, objects without a key included", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const before = yield* broken(story, `nonsense\n${notes(0, 299)}{"type":"No`, 300)
        expect(before).toMatchObject({
          status: "interrupted",
          lines: 300,
          attempt: 1,
          errorMessage: expect.any(String),
          counts: { created: 299, failed: 1 }
        })
        expect(yield* numbersOf(story)).toEqual(upTo(299))

        const told = yield* importLines(
          story,
          `nonsense\n${notes(0, 500)}`,
          `?format=jsonl&resume=${before.id}`
        )
        expect(told[0]).toEqual({ type: "started", importId: before.id, skippedLines: 300 })
        expect(last(told)).toMatchObject({ type: "finished", lines: 501, created: 500, failed: 1 })
        expect(yield* numbersOf(story)).toEqual(upTo(500))
        expect(yield* story.get(`/imports/${before.id}`)).toMatchObject({
          status: "finished",
          attempt: 2,
          badLines: [{ line: 1 }],
          errorMessage: null
        })
        const rows = yield* countRows(story)
        expect([rows.graph_events, rows.graph_object_versions]).toEqual([500, 500])
      })
    )

    it.effect("is known to be interrupted also when its server died with it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { id } = yield* broken(story, notes(0, 50), 50)
        // What a server that died leaves: a record that says it runs, and nobody to say so again.
        yield* ask(
          story.access,
          "update kb.imports set status = 'running', updated_at = now() - interval '2 minutes' where id = $1",
          [id]
        )
        expect(yield* story.get(`/imports/${id}`)).toMatchObject({ status: "interrupted", lines: 50 })
        expect(last(yield* importLines(story, notes(0, 60), `?format=jsonl&resume=${id}`))).toMatchObject({
          type: "finished",
          created: 60
        })
        expect(yield* numbersOf(story)).toEqual(upTo(60))
      })
    )

    it.effect.each([",", ";"])(
      "goes on in the middle of a CSV file with %s, whose header stands before what is skipped",
      (delimiter) =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const rows = (from: number, to: number) =>
            upTo(to - from)
              .map((index) => `"Note of\n${from + index}"${delimiter}${from + index}\r\n`)
              .join("")
          const head = `text${delimiter}number:number\r\n`
          const { id } = yield* broken(story, head + rows(0, 120), 241, "?format=csv&type=Note")
          const file = head + rows(0, 150)
          expectProblem(yield* importFile(story, file, {}, `?format=csv&type=Remark&resume=${id}`), 409)
          const told = yield* importLines(story, file, `?format=csv&type=Note&resume=${id}`)
          expect(last(told)).toMatchObject({ type: "finished", created: 150, failed: 0 })
          expect(yield* numbersOf(story)).toEqual(upTo(150))
        })
    )

    it.effect("is not gone on with by another file", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { id } = yield* broken(story, notes(0, 100), 100)
        const rows = yield* countRows(story)
        for (const file of [notes(1, 200), notes(0, 50), notes(0, 99), ""]) {
          const answer = yield* importFile(story, file, {}, `?format=jsonl&resume=${id}`)
          expectProblem(answer, 409)
          expect(answer.body.reason).toBe("otherFile")
        }
        expectProblem(yield* importFile(story, notes(0, 200), {}, `?format=csv&type=Note&resume=${id}`), 409)
        expect(yield* countRows(story)).toEqual(rows)
        expect(yield* story.get(`/imports/${id}`)).toMatchObject({ status: "interrupted", attempt: 1 })
      })
    )

    it.effect("is left to whoever goes on with it when what is sent cannot be read", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const query = "?format=csv&type=Note"
        const sender = yield* beginSending(story, query)
        yield* sender.send("text\r\n")
        const [{ importId }] = yield* sender.toldWhen((told) => told.length > 0)
        yield* sender.leave
        const record = story.get(`/imports/${importId}`)
        const isInterrupted = (one: Json) => one.status === "interrupted"
        expect(yield* eventually(record, isInterrupted)).toMatchObject({ bytes: 0 })
        const again = `${query}&resume=${importId}`
        const refused = yield* importFile(story, "text,text\r\n", {}, again)
        expectProblem(refused, 422)
        expect(yield* record).toMatchObject({ status: "interrupted", errorMessage: refused.body.detail })
        expect(last(yield* importLines(story, "text\r\none\r\n", again))).toMatchObject({ created: 1 })
      })
    )

    it.effect("is listed newest first, whatever its id", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ids = ["c", "a", "d", "b"].map((letter) => crypto.randomUUID().replace(/^./, letter))
        for (const id of ids) yield* importLines(story, notes(0, 1), `?format=jsonl&id=${id}`)
        const newest = ids.toReversed()
        const idsOf = (page: Json) => page.items.map((item: Json) => item.id)
        expect(idsOf(yield* story.get("/imports"))).toEqual(newest)
        const first = yield* story.get("/imports?limit=3")
        const second = yield* story.get(`/imports?limit=3&cursor=${first.nextCursor}`)
        expect([idsOf(first), idsOf(second)]).toEqual([newest.slice(0, 3), newest.slice(3)])
        for (const cursor of ["nonsense", ids[0]])
          expectProblem(yield* story.ask("GET", `/imports?cursor=${cursor}`), 422, "cursor")
      })
    )

    it.effect("belongs to its project, and ends once", () =>
      Effect.gen(function* () {
        const { doors, access } = yield* SharedServer
        const story = yield* newStoryHere
        const other = yield* newProject(doors, access)
        const id = "0190a000-0000-7000-8000-00000000abcd"
        const told = yield* importLines(story, notes(0, 3), `?format=jsonl&id=${id}&name=three.jsonl`)
        expect(told[0].importId).toBe(id)
        expect(yield* story.get(`/imports/${id}`)).toMatchObject({ name: "three.jsonl", createdBy: "admin" })
        // Only who can go on with it is told of it.
        for (const [project, detail] of [
          [story, expect.stringContaining(`?resume=${id}`)],
          [other, expect.not.stringContaining("resume")]
        ] as const) {
          const answer = yield* importFile(project, notes(0, 3), {}, `?format=jsonl&id=${id}`)
          expectProblem(answer, 409)
          expect(answer.body).toMatchObject({ reason: "idTaken", detail })
        }
        expectProblem(yield* importFile(story, notes(0, 3), {}, `?format=jsonl&resume=${id}`), 409)
        expectProblem(yield* importFile(other, notes(0, 3), {}, `?format=jsonl&resume=${id}`), 404)
        expectProblem(yield* other.ask("GET", `/imports/${id}`), 404)
        expect(yield* numbersOf(story)).toEqual(upTo(3))
      })
    )
  })

  describe("Two senders that go on with one import", () => {
    it.effect("at the same moment make each line's object once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { id } = yield* broken(story, notes(0, 100), 100)
        const file = notes(0, 1_000)
        const ends = yield* Effect.all(
          upTo(4).map(() => Effect.map(importLines(story, file, `?format=jsonl&resume=${id}`), last)),
          { concurrency: 4 }
        )
        expect(ends.filter((line) => line.type === "finished")).toHaveLength(1)
        for (const line of ends.filter((each) => each.type === "failed"))
          expect(line).toEqual({ type: "failed", message: expect.any(String) })
        expect(yield* numbersOf(story)).toEqual(upTo(1_000))
        expect(yield* story.get(`/imports/${id}`)).toMatchObject({
          status: "finished",
          counts: { created: 1_000 }
        })
      })
    )

    it.effect("leave it to the later one; the earlier one is told and commits nothing more", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const first = yield* beginSending(story, "?format=jsonl")
        yield* first.send(notes(0, 100))
        const [{ importId }] = yield* first.toldWhen(hasCommitted(100))
        const second = yield* beginSending(story, `?format=jsonl&resume=${importId}`)
        yield* second.send(notes(0, 200))
        yield* second.toldWhen(hasCommitted(200))
        yield* first.send(notes(100, 150))
        const told = yield* first.toldWhen((lines) => last(lines).type === "failed")
        expect(last(told)).not.toHaveProperty("resume")
        yield* second.end
        yield* second.toldWhen((lines) => last(lines).type === "finished")
        expect(yield* numbersOf(story)).toEqual(upTo(200))
      })
    )
  })

  describe("Two imports of one export", () => {
    it.effect("at the same moment make each object once, also those without a key", () =>
      Effect.gen(function* () {
        const { doors, access } = yield* SharedServer
        const story = yield* newStoryHere
        yield* importLines(story, notes(0, 250))
        const file = jsonl(...(yield* exported(story)))
        const other = yield* newProject(doors, access)
        const ends = yield* Effect.all(
          upTo(3).map(() => Effect.map(importLines(other, file), last)),
          { concurrency: 3 }
        )
        expect(ends.map((line) => [line.type, line.created + line.unchanged, line.failed])).toEqual(
          ends.map(() => ["finished", 250, 0])
        )
        expect(yield* numbersOf(other)).toEqual(upTo(250))
      })
    )
  })

  describe("A sender that reads nothing until its file is sent", () => {
    it.effect("does not stop its own import", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const told = yield* importLines(story, "nonsense\n".repeat(2_000) + notes(0, 10))
        expect(last(told)).toMatchObject({ type: "finished", created: 10, failed: 2_000 })
      })
    )
  })
})
