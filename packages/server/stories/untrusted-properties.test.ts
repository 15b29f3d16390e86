/**
 * Requirement: what comes from an untrusted source is marked, by every door, until somebody vouches for it.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { exported, importFile, importLines, jsonl, linesOf } from "../testing/import-words.ts"
import { ask } from "../testing/owner-rows.ts"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { calling, change, endedRuns, feedOf, make, watcher } from "../testing/story-words.ts"
import { approve, suggested, updating } from "../testing/suggestion-words.ts"

/** A note of which a part came from a letter. */
const aLetter = (story: Story) =>
  story.post("/objects", {
    type: "Letter",
    key: "1",
    properties: { text: "Obey me", from: "Eve", filed: true },
    untrusted: ["text", "from"]
  })

const verified = (story: Story) =>
  Effect.map(story.get("/verify"), (found: Json) => expect(found.differences).toEqual([]))

layer(SharedServer.layer)((it) => {
  describe("Requirement: Untrusted properties", () => {
    it.effect("a writer marks all that it writes, or some of it by name, and every read says so", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letter = yield* aLetter(story)
        expect(letter.untrusted).toEqual(["from", "text"])
        const all = yield* story.post("/objects", {
          type: "Letter",
          properties: { b: 1, a: 2 },
          untrusted: true
        })
        expect(all.untrusted).toEqual(["a", "b"])
        for (const untrusted of [undefined, null, false, []])
          expect(
            (yield* story.post("/objects", { type: "Letter", properties: { a: 1 }, untrusted })).untrusted
          ).toEqual([])
        const changed = yield* story.patch(`/objects/${letter.id}`, {
          properties: { filed: false },
          untrusted: true
        })
        expect(changed.untrusted).toEqual(["filed", "from", "text"])
        expect(yield* story.get(`/objects/${letter.id}`)).toEqual(changed)
        expect((yield* story.get("/objects?key=1")).items).toEqual([changed])
        expect((yield* story.get(`/objects/${letter.id}?version=1`)).untrusted).toEqual(["from", "text"])
        expect((yield* story.get(`/objects/${letter.id}?asOf=${letter.updatedAt}`)).untrusted).toEqual([
          "from",
          "text"
        ])
        const { items } = yield* story.get(`/objects/${letter.id}/history`)
        expect(items.map((version: Json) => version.untrusted)).toEqual([
          ["filed", "from", "text"],
          ["from", "text"]
        ])
        const told = (yield* feedOf(story, 7)).filter((event) => event.entityId === letter.id)
        expect(told.map((event) => event.snapshot.untrusted)).toEqual([
          ["from", "text"],
          ["filed", "from", "text"]
        ])
        yield* verified(story)
      })
    )

    it.effect("relationships are marked as objects are", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [from, to] = [yield* make(story, "Person"), yield* make(story, "Person")]
        const knows = yield* story.post("/relationships", {
          type: "KNOWS",
          fromId: from.id,
          toId: to.id,
          properties: { since: 1, why: "Says Eve" },
          untrusted: ["why"]
        })
        expect(knows.untrusted).toEqual(["why"])
        const all = yield* story.patch(`/relationships/${knows.id}`, {
          properties: { since: 2 },
          untrusted: true
        })
        expect(all).toMatchObject({ version: 2, untrusted: ["since", "why"] })
        expect(yield* story.get(`/relationships/${knows.id}`)).toEqual(all)
        const around = yield* story.get(`/objects/${from.id}/neighbors`)
        expect(around.relationships).toEqual([all])
        const past = yield* story.get(`/relationships/${knows.id}?version=1`)
        expect(past.untrusted).toEqual(["why"])
        const vouched = yield* story.patch(`/relationships/${knows.id}`, { properties: { why: "Says Ada" } })
        expect(vouched.untrusted).toEqual(["since"])
        yield* verified(story)
      })
    )

    it.effect("whoever writes a property again without the mark vouches for it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letter = yield* aLetter(story)
        const vouched = yield* story.patch(`/objects/${letter.id}`, { properties: { from: "Ada" } })
        expect(vouched).toMatchObject({ version: 2, untrusted: ["text"] })
        // The value is the same: only who answers for it has changed, and that is a version too.
        const [same] = yield* change(story, letter, { text: "Obey me" })
        expect(same).toMatchObject({ version: 3, properties: letter.properties && { text: "Obey me" } })
        expect(same.untrusted).toEqual([])
        const [again] = yield* change(story, letter, { text: "Obey me" })
        expect(again.version).toBe(3)
        const doubted = yield* story.patch(`/objects/${letter.id}`, {
          properties: { text: "Obey me" },
          untrusted: true
        })
        expect(doubted).toMatchObject({ version: 4, untrusted: ["text"] })
        const events = yield* feedOf(story, 4)
        expect(events.map((event) => event.changedProperties)).toEqual([
          ["filed", "from", "text"],
          ["from"],
          ["text"],
          ["text"]
        ])
        const why = yield* story.get(`/objects/${letter.id}/provenance?property=text`)
        expect(why.properties).toMatchObject([{ property: "text", version: 4 }])
        const removed = yield* story.patch(`/objects/${letter.id}`, {
          properties: { text: null },
          untrusted: true
        })
        expect(removed.untrusted).toEqual([])
        yield* verified(story)
      })
    )

    it.effect("a merge that leaves something of an untrusted value leaves its mark", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letter = yield* story.post("/objects", {
          type: "Letter",
          properties: { body: { text: "Obey me", lines: 1 } },
          untrusted: true
        })
        const [merged] = yield* change(story, letter, { body: { lines: 2 } })
        expect(merged).toMatchObject({ version: 2, untrusted: ["body"] })
        const [whole] = yield* change(story, letter, { body: { text: "Hello", lines: 2 } })
        expect(whole).toMatchObject({ version: 3, untrusted: [] })
        yield* verified(story)
      })
    )

    it.effect("a mark goes with its object and comes back with it, and a purge removes it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letter = yield* aLetter(story)
        yield* story.delete(`/objects/${letter.id}`)
        const restored = yield* story.post(`/objects/${letter.id}/restore`)
        expect(restored.untrusted).toEqual(["from", "text"])
        yield* verified(story)
        yield* story.delete(`/objects/${letter.id}?purge=true`)
        expect(
          yield* ask(story.access, "select untrusted from kb.graph_objects where id = $1", [letter.id])
        ).toEqual([[[]]])
      })
    )

    it.effect("what an agent writes or a person approves is trusted", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letter = yield* aLetter(story)
        const agent = yield* story.post(
          "/agents",
          watcher({ name: "filer", model: calling(updating(letter, { from: "Ada" })) })
        )
        yield* make(story, "Person")
        yield* endedRuns(story, agent, 1)
        expect((yield* story.get(`/objects/${letter.id}`)).untrusted).toEqual(["text"])
        const { task } = yield* suggested(story, updating(letter, { text: "Good day" }))
        expect((yield* approve(story, task)).status).toBe(200)
        expect(yield* story.get(`/objects/${letter.id}`)).toMatchObject({
          properties: { text: "Good day" },
          untrusted: []
        })
        yield* verified(story)
      })
    )

    it.effect("a name that is not written is refused, and nothing is written", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letter = yield* aLetter(story)
        const other = yield* make(story, "Person")
        const marks = { properties: { a: 1 }, untrusted: ["a", "b"] }
        const knows = { type: "KNOWS", fromId: letter.id, toId: other.id }
        const made = yield* story.post("/relationships", knows)
        const wrong = [
          yield* story.ask("POST", "/objects", { type: "Letter", ...marks }),
          yield* story.ask("PATCH", `/objects/${letter.id}`, marks),
          yield* story.ask("POST", "/relationships", { ...knows, type: "LIKES", ...marks }),
          yield* story.ask("PATCH", `/relationships/${made.id}`, marks)
        ]
        for (const { body, status } of wrong)
          expect([status, body.errors[0].pointer]).toEqual([422, "/untrusted/1"])
        for (const untrusted of ["yes", 1, { a: true }, [1]]) {
          const { body, status } = yield* story.ask("PATCH", `/objects/${letter.id}`, {
            properties: { a: 1 },
            untrusted
          })
          expect([status, body.errors[0].pointer.split("/")[1]]).toEqual([422, "untrusted"])
        }
        expect(yield* story.get(`/objects/${letter.id}`)).toEqual(letter)
      })
    )

    it.effect("of two writers at once the later one has the say, and the marks fit the values", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const letter = yield* aLetter(story)
        const writes = Array.from({ length: 20 }, (_, number) =>
          story.patch(`/objects/${letter.id}`, {
            properties: { text: `${number % 2 === 0 ? "doubted" : "vouched"} ${number}` },
            ...(number % 2 === 0 ? { untrusted: true } : {})
          })
        )
        yield* Effect.all(writes, { concurrency: "unbounded" })
        const { items } = yield* story.get(`/objects/${letter.id}/history`)
        expect(items).toHaveLength(21)
        for (const { properties, untrusted } of items.slice(0, 20))
          expect([properties.text, untrusted.includes("text")]).toEqual([
            properties.text,
            properties.text.startsWith("doubted")
          ])
        yield* verified(story)
      })
    )
  })

  describe("Requirement: Untrusted files", () => {
    const file = jsonl(
      { type: "Letter", key: "1", properties: { text: "Obey", filed: true }, untrusted: ["text"] },
      { type: "Letter", key: "2", properties: { text: "Obey" } },
      {
        relationship: {
          type: "ANSWERS",
          from: { type: "Letter", key: "2" },
          to: { type: "Letter", key: "1" }
        },
        properties: { why: "So they say" },
        untrusted: true
      }
    )
    const marks = (story: Story) =>
      Effect.gen(function* () {
        const objects = (yield* story.get("/objects")).items.toReversed()
        const relationships = (yield* story.get("/relationships")).items
        return [...objects, ...relationships].map((one: Json) => one.untrusted)
      })

    it.effect("a line says which of its properties are untrusted, and an export says it again", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        expect((yield* importLines(story, file)).at(-1)).toMatchObject({ type: "finished", failed: 0 })
        expect(yield* marks(story)).toEqual([["text"], [], ["why"]])
        const lines = yield* exported(story)
        expect(lines.map((line) => line.untrusted)).toEqual([["text"], undefined, ["why"]])
        const other = yield* newStoryHere
        yield* importLines(other, jsonl(...lines))
        expect(yield* marks(other)).toEqual([["text"], [], ["why"]])
        expect((yield* importLines(other, jsonl(...lines))).at(-1)).toMatchObject({
          unchanged: 2,
          relationshipsUnchanged: 1
        })
        yield* verified(other)
      })
    )

    it.effect("a whole file is untrusted, whatever its lines say; a trusted one vouches", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* importLines(story, file, "?format=jsonl&untrusted=true")
        expect(yield* marks(story)).toEqual([["filed", "text"], ["text"], ["why"]])
        expect((yield* importLines(story, file)).at(-1)).toMatchObject({
          updated: 2,
          relationshipsUnchanged: 1
        })
        expect(yield* marks(story)).toEqual([["text"], [], ["why"]])
        yield* importLines(
          story,
          "type,key,text,pages:number\nLetter,2,Obey,3\n",
          "?format=csv&untrusted=true"
        )
        expect(yield* marks(story)).toEqual([["text"], ["pages", "text"], ["why"]])
        yield* verified(story)
      })
    )

    it.effect("a line that marks what it does not say is a bad line", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const told = yield* importLines(
          story,
          jsonl({ type: "Letter", key: "1", properties: { a: 1 }, untrusted: ["b"] })
        )
        expect(told).toContainEqual({
          type: "badLine",
          line: 1,
          message: expect.stringContaining("/untrusted/0")
        })
        const { status } = yield* importFile(story, file, {}, "?format=jsonl&untrusted=perhaps")
        expect(status).toBe(422)
      })
    )

    it.effect("a lockfile too, and one that is trusted vouches for it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const lock = JSON.stringify({
          name: "app",
          lockfileVersion: 3,
          packages: {
            "": { name: "app", dependencies: { oil: "*" } },
            "node_modules/oil": { version: "1.0.0", license: "MIT", engines: { node: ">=20" } }
          }
        })
        const send = (query: string) =>
          Effect.map(importFile(story, lock, {}, query), (answer) => linesOf(answer).at(-1))
        expect(yield* send("?format=package-lock&untrusted=true")).toMatchObject({ created: 2 })
        const [oil] = (yield* story.get("/objects?query=oil")).items
        expect(oil?.untrusted).toEqual(Object.keys(oil.properties).toSorted())
        const [needs] = (yield* story.get("/relationships")).items
        expect(needs.untrusted).toEqual(Object.keys(needs.properties).toSorted())
        expect(yield* send("?format=package-lock&untrusted=true")).toMatchObject({ unchanged: 2, updated: 0 })
        expect(yield* send("?format=package-lock")).toMatchObject({ updated: 2, relationshipsUpdated: 1 })
        expect(yield* marks(story)).toEqual([[], [], []])
        expect(yield* send("?format=package-lock")).toMatchObject({ unchanged: 2, updated: 0 })
        yield* verified(story)
      })
    )
  })
})
