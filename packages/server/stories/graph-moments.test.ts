/**
 * The graph as it was: at a version, and at an instant.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Json, Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { ask } from "../testing/owner-rows.ts"

const nobody = "00000000-0000-7000-8000-000000000000"

/** A minute between any two changes, from 12:00 on: what was written becomes as old as its place says. */
const spread = (story: Story) =>
  Effect.gen(function* () {
    const [[first] = []] = yield* ask(
      story.access,
      "select min(seq)::int from kb.graph_events where project_id = $1",
      [story.projectId]
    )
    const at = `timestamptz '2026-03-01 12:00:00.000123Z' + (event.seq - ${Number(first)}) * interval '1 minute'`
    for (const [table, id] of [
      ["graph_object_versions", "object_id"],
      ["graph_relationship_versions", "relationship_id"]
    ])
      yield* ask(
        story.access,
        `update kb.${table} version set created_at = ${at} from kb.graph_events event
         where event.id = version.event_id and version.project_id = '${story.projectId}' and ${id} = event.entity_id returning 1`
      )
  })

/** The instant after so many changes. */
const after = (changes: number): string => `2026-03-01T12:${String(changes - 1).padStart(2, "0")}:30.000Z`

/** Ada is made, then Bob, then that they know each other; Ada changes, so does their knowing; Bob goes; Ada changes. */
const past = Effect.gen(function* () {
  const story = yield* newStoryHere
  const ada = yield* story.post("/objects", { type: "Person", key: "ada", properties: { mood: "calm" } })
  const bob = yield* story.post("/objects", { type: "Person", key: "bob", properties: {} })
  const knows = yield* story.post("/relationships", { type: "KNOWS", fromId: ada.id, toId: bob.id })
  yield* story.patch(`/objects/${ada.id}`, { properties: { mood: "busy", work: "engine" } })
  yield* story.patch(`/relationships/${knows.id}`, { properties: { since: 1833 } })
  yield* story.delete(`/objects/${bob.id}`)
  yield* story.patch(`/objects/${ada.id}`, { properties: { mood: null } })
  yield* spread(story)
  return { story, ada, bob, knows }
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("As of a version", () => {
    it.effect("an object reads as that version left it, also when it is deleted by now", () =>
      Effect.gen(function* () {
        const { story, ada, bob, knows } = yield* past
        const answer = yield* story.ask("GET", `/objects/${ada.id}?version=2`)
        expect(answer.body).toMatchObject({
          id: ada.id,
          type: "Person",
          key: "ada",
          version: 2,
          properties: { mood: "busy", work: "engine" },
          createdAt: ada.createdAt
        })
        expect(answer.headers.get("etag")).toBe('"2"')
        expect((yield* story.get(`/objects/${ada.id}?version=1`)).properties).toEqual({ mood: "calm" })
        expect((yield* story.get(`/objects/${bob.id}?version=1`)).key).toBe("bob")
        expect((yield* story.get(`/relationships/${knows.id}?version=2`)).properties).toEqual({ since: 1833 })
        // A version that deleted it left nothing.
        for (const path of [
          `/objects/${bob.id}?version=2`,
          `/objects/${ada.id}?version=9`,
          `/objects/${ada.id}?version=9007199254740991`,
          `/relationships/${knows.id}?version=3`,
          `/objects/${nobody}?version=1`
        ])
          expectProblem(yield* story.ask("GET", path), 404)
      })
    )
  })

  describe("As of an instant", () => {
    it.effect("an object, a relationship and the lists of both read as they were then", () =>
      Effect.gen(function* () {
        const { story, ada, bob, knows } = yield* past
        const mood = (instant: string) =>
          Effect.map(story.get(`/objects/${ada.id}?asOf=${instant}`), (object) => object.properties.mood)
        expect(yield* mood(after(1))).toBe("calm")
        expect(yield* mood(after(3))).toBe("calm")
        expect(yield* mood(after(4))).toBe("busy")
        expect(yield* mood(after(9))).toBeUndefined()
        const list = (path: string) => Effect.map(story.get(path), (page) => page.items)
        const keys = (items: ReadonlyArray<Json>) => items.map((item) => item.key)
        expect(keys(yield* list(`/objects?asOf=${after(1)}`))).toEqual(["ada"])
        expect(keys(yield* list(`/objects?asOf=${after(6)}`))).toEqual(["bob", "ada"])
        // Six events later: the relationship went first, and then Bob.
        expect(keys(yield* list(`/objects?asOf=${after(7)}`))).toEqual(["ada"])
        expect(keys(yield* list(`/objects?asOf=${after(6)}&key=bob`))).toEqual(["bob"])
        const where = encodeURIComponent(JSON.stringify([{ property: "mood", op: "eq", value: "busy" }]))
        expect(yield* list(`/objects?asOf=${after(3)}&where=${where}`)).toEqual([])
        expect(keys(yield* list(`/objects?asOf=${after(4)}&where=${where}`))).toEqual(["ada"])
        expect(keys(yield* list(`/objects?asOf=${after(4)}&query=engine`))).toEqual(["ada"])
        expect(keys(yield* list(`/objects?asOf=${after(3)}&query=engine`))).toEqual([])
        expect(keys(yield* list(`/objects?asOf=${after(6)}&sort=updatedAt`))).toEqual(["ada", "bob"])
        const relationships = (changes: number) =>
          Effect.map(list(`/relationships?objectId=${bob.id}&asOf=${after(changes)}`), (items) =>
            items.map((item: Json) => item.properties)
          )
        expect(yield* relationships(2)).toEqual([])
        expect(yield* relationships(3)).toEqual([{}])
        expect(yield* relationships(5)).toEqual([{ since: 1833 }])
        expect(yield* relationships(6)).toEqual([])
        expect((yield* story.get(`/relationships/${knows.id}?asOf=${after(4)}`)).version).toBe(1)
        for (const path of [
          `/objects/${bob.id}?asOf=${after(9)}`,
          `/objects/${ada.id}?asOf=2026-03-01T11:59Z`
        ])
          expectProblem(yield* story.ask("GET", path), 404)
      })
    )

    it.effect("neighbours are those that were there", () =>
      Effect.gen(function* () {
        const { story, ada, bob } = yield* past
        const around = (changes: number) =>
          Effect.map(story.get(`/objects/${ada.id}/neighbors?depth=2&asOf=${after(changes)}`), (found) => [
            found.objects.map((object: Json) => object.key),
            found.relationships.map((relationship: Json) => relationship.properties)
          ])
        expect(yield* around(2)).toEqual([[], []])
        expect(yield* around(4)).toEqual([["bob"], [{}]])
        expect(yield* around(5)).toEqual([["bob"], [{ since: 1833 }]])
        expect(yield* around(7)).toEqual([[], []])
        expectProblem(yield* story.ask("GET", `/objects/${bob.id}/neighbors?asOf=${after(1)}`), 404)
      })
    )

    it.effect("the instant that an answer tells finds that answer again", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* story.post("/objects", { type: "Person" })
        const changed = yield* story.patch(`/objects/${ada.id}`, { properties: { mood: "calm" } })
        expect(yield* story.get(`/objects/${ada.id}?asOf=${changed.updatedAt}`)).toEqual(changed)
        expect((yield* story.get(`/objects?asOf=${changed.updatedAt}`)).items).toEqual([changed])
      })
    )

    it.effect("is refused where the calendar has none, or where a version is asked for too", () =>
      Effect.gen(function* () {
        const { story, ada } = yield* past
        for (const path of [
          `/objects/${ada.id}?asOf=yesterday`,
          `/objects/${ada.id}?asOf=2026-13-01T00:00:00Z`,
          `/objects/${ada.id}?asOf=2026-02-30T00:00:00Z`,
          `/objects/${ada.id}?asOf=2026-02-29T00:00:00Z`,
          `/objects/${ada.id}?asOf=2026-01-01T24:00:00Z`,
          `/objects/${ada.id}?asOf=2026-01-01T23:59:60Z`,
          `/objects/${ada.id}?asOf=2026-01-01t00:00:00z`,
          `/objects/${ada.id}?asOf=9999-12-31T23:59:59-01:00`,
          `/export?asOf=2026-02-30T00:00:00Z`,
          `/objects/${ada.id}?asOf=2026-01-01`,
          `/objects/${ada.id}?asOf=0000-01-01T00:00:00Z`,
          `/objects?asOf=2026-01-01T00:00:00`,
          `/objects/${ada.id}/neighbors?asOf=%00`,
          `/relationships?asOf=1`,
          `/objects/${ada.id}?asOf=${after(1)}&version=1`
        ])
          expectProblem(yield* story.ask("GET", path), 422, "asOf")
        expectProblem(yield* story.ask("GET", `/objects/${ada.id}?asOf=0001-01-01T00:00:00Z`), 404)
        for (const version of ["0", "-1", "1.5", "x", "1e99"])
          expectProblem(yield* story.ask("GET", `/objects/${ada.id}?version=${version}`), 422, "version")
      })
    )

    it.effect("is refused while it is still to come, with the instant until which it may be", () =>
      Effect.gen(function* () {
        const { story, ada, bob, knows } = yield* past
        const [[soon] = []] = yield* ask(
          story.access,
          `select to_char(now() at time zone 'utc' + interval '1 minute', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`
        )
        for (const far of [
          String(soon),
          "9999-12-31T23:59:59Z",
          "9999-12-31T23:59:59.999Z",
          "2096-02-29T12:00:00%2B02:00"
        ])
          for (const path of [
            `/objects/${ada.id}`,
            "/objects",
            `/objects/${bob.id}/neighbors`,
            "/relationships",
            `/relationships/${knows.id}`,
            "/export"
          ]) {
            const answer = yield* story.ask("GET", `${path}?asOf=${far}`)
            expectProblem(answer, 422, "asOf")
            const [until = ""] = /\d{4}-\d\d-\d\dT[\d:.]+Z/.exec(answer.body.detail) ?? []
            expect((yield* story.get(`/objects/${ada.id}?asOf=${until}`)).version).toBe(3)
          }
      })
    )
  })
})
