/**
 * Removing for good: only when somebody says so, and with a record of who did.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { purgedBefore } from "../src/database/migrations/0059-property-names.ts"
import { openStream } from "../testing/event-stream.ts"
import { ask, refusalOf } from "../testing/owner-rows.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { endedRuns, entriesOf, feedOf, make, watcher } from "../testing/story-words.ts"
import type { Json, Story } from "../testing/platform.ts"
import { asUser } from "../testing/token-words.ts"

const secret = "a secret that must go"

/** Every place of the project's graph, its events and its log in which a text occurs. */
const placesOf = (story: Story, text: string) =>
  Effect.map(
    Effect.forEach(
      [
        "graph_objects",
        "graph_object_versions",
        "graph_relationships",
        "graph_relationship_versions",
        "graph_events",
        "agent_processing_log",
        "graph_purges"
      ],
      (table) =>
        Effect.map(
          ask(
            story.access,
            `select count(*)::int from kb.${table} one where project_id = $1 and to_jsonb(one)::text like $2`,
            [story.projectId, `%${text}%`]
          ),
          ([row]) => (Number(row?.[0]) > 0 ? [table] : [])
        )
    ),
    (found) => found.flat()
  )

const furnished = Effect.gen(function* () {
  const story = yield* newStoryHere
  const agent = yield* story.post(
    "/agents",
    watcher({ reactionConfig: { objectTypes: ["Person"], events: ["created", "updated", "deleted"] } })
  )
  const eve = yield* story.post("/objects", { type: "Person", key: secret, properties: { note: secret } })
  const bob = yield* make(story, "Company", { name: "Acme" })
  const works = yield* story.post("/relationships", {
    type: "WORKS_AT",
    fromId: eve.id,
    toId: bob.id,
    properties: { note: secret }
  })
  yield* story.patch(`/objects/${eve.id}`, { properties: { note: `${secret}, again` } })
  yield* endedRuns(story, agent, 1)
  return { story, agent, eve, bob, works }
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Purging an object", () => {
    it.effect("removes it with its versions, relationships, log entries and what its events said", () =>
      Effect.gen(function* () {
        const { story, agent, eve, bob, works } = yield* furnished
        expect(yield* placesOf(story, secret)).toHaveLength(5)
        const before = yield* feedOf(story, 4)
        expect((yield* story.delete(`/objects/${eve.id}?purge=true`)).status).toBe(204)
        expect(yield* placesOf(story, secret)).toEqual([])
        for (const path of [
          `/objects/${eve.id}`,
          `/objects/${eve.id}?version=1`,
          `/objects/${eve.id}/history`,
          `/objects/${eve.id}/provenance`,
          `/relationships/${works.id}`,
          `/relationships/${works.id}/history`
        ])
          expectProblem(yield* story.ask("GET", path), 404)
        expectProblem(yield* story.ask("POST", `/objects/${eve.id}/restore`), 404)
        expect((yield* story.get(`/objects?asOf=${before.at(-1).createdAt}`)).items).toEqual([bob])
        expect((yield* story.get(`/objects/${bob.id}`)).version).toBe(1)

        // The events stay in their places, and say that it was deleted, but not what it was.
        const events = yield* feedOf(story, 6)
        expect(events.slice(0, 4).map(({ id, position }) => [id, position])).toEqual(
          before.map(({ id, position }) => [id, position])
        )
        const about = events.filter((event) => event.entityId !== bob.id)
        expect(about).toHaveLength(5)
        for (const { snapshot } of about) expect(snapshot).toMatchObject({ properties: {}, purged: true })
        expect(about.slice(-2).map((event) => event.type)).toEqual(["deleted", "deleted"])

        const { items } = yield* story.get("/purges")
        expect(items).toMatchObject([
          {
            entityType: "graphObject",
            entityId: eve.id,
            objectType: "Person",
            purgedBy: "admin",
            versions: 3,
            relationships: 1,
            purgedAt: expect.any(String)
          }
        ])
        // What was on its way when it was purged reaches its agent and finds nothing to read.
        yield* endedRuns(story, agent, 1)
        const entries = yield* entriesOf(story, agent)
        expect(entries.filter((entry) => entry.eventType !== "deleted")).toEqual([])
      })
    )

    it.effect("leaves no name of a property, nor does a purge of before that left some", () =>
      Effect.gen(function* () {
        const { story, eve, bob, works } = yield* furnished
        const name = "names Eve's illness"
        yield* story.patch(`/objects/${eve.id}`, { properties: { [name]: 1 }, untrusted: true })
        yield* story.patch(`/relationships/${works.id}`, { properties: { [name]: 1 } })
        yield* story.patch(`/objects/${eve.id}`, { properties: { [name]: null } })
        yield* story.delete(`/objects/${eve.id}?purge=true`)
        expect(yield* placesOf(story, name)).toEqual([])
        const told = (yield* feedOf(story, 9)).filter((event) => event.entityId !== bob.id)
        expect(told.map((event) => event.changedProperties)).toEqual(Array.from({ length: 8 }, () => []))

        const ofOthers = Effect.map(story.get(`/objects/${bob.id}/history`), (page) => page.items[0].eventId)
        yield* ask(
          story.access,
          "update kb.graph_events set changed_properties = array[$2] where project_id = $1",
          [story.projectId, name]
        )
        yield* ask(story.access, purgedBefore)
        const named = yield* ask(
          story.access,
          "select id from kb.graph_events where project_id = $1 and changed_properties <> '{}'",
          [story.projectId]
        )
        expect(named).toEqual([[yield* ofOthers]])
      })
    )

    it.effect("tells nobody of it who comes to the live feed then, whoever watches it already", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const feed = `/api/projects/${story.projectId}/events`
        const early = yield* openStream(story, feed)
        const eve = yield* make(story, "Person", { note: secret })
        yield* early.until((heard) => heard.length === 1)
        yield* story.delete(`/objects/${eve.id}?purge=true`)
        const late = yield* openStream(story, `${feed}?after=0`)
        yield* late.until((heard) => heard.length === 2)
        const read = yield* feedOf(story, 2)
        expect(late.heard.map(({ json }) => json)).toEqual(read)
        expect(JSON.stringify(late.heard)).not.toContain(secret)
        expect(JSON.stringify(early.heard)).toContain(secret)
      })
    )

    it.effect("that is deleted already is possible, once", () =>
      Effect.gen(function* () {
        const { story, eve } = yield* furnished
        yield* story.delete(`/objects/${eve.id}`)
        expect((yield* story.delete(`/objects/${eve.id}?purge=true`)).status).toBe(204)
        expectProblem(yield* story.ask("DELETE", `/objects/${eve.id}?purge=true`), 404)
        expectProblem(yield* story.ask("DELETE", `/objects/${eve.id}?purge=yes`), 422, "purge")
        expect((yield* story.get("/purges")).items).toHaveLength(1)
        // Its key is free, and an object of that name is another one.
        const other = yield* story.post("/objects", { type: "Person", key: secret })
        expect(other).toMatchObject({ version: 1, properties: {} })
        expect(other.id).not.toBe(eve.id)
      })
    )

    it.effect("is refused at another version than the one expected, also when it is deleted already", () =>
      Effect.gen(function* () {
        const { story, eve } = yield* furnished
        const purge = (version: number) =>
          story.send("DELETE", `/api/projects/${story.projectId}/objects/${eve.id}?purge=true`, undefined, {
            "if-match": `"${version}"`
          })
        for (const stale of [1, 3, 99])
          expect(yield* purge(stale)).toMatchObject({
            status: 412,
            body: { type: "/problems/precondition-failed" }
          })
        expect((yield* story.get(`/objects/${eve.id}`)).version).toBe(2)
        yield* story.delete(`/objects/${eve.id}`)
        expect(yield* purge(2)).toMatchObject({
          status: 412,
          body: { type: "/problems/precondition-failed" }
        })
        expect((yield* story.get(`/objects/${eve.id}/history`)).items).toHaveLength(3)
        expect((yield* story.get("/purges")).items).toEqual([])
        expect((yield* purge(3)).status).toBe(204)
        expect((yield* story.get("/purges")).items).toHaveLength(1)
      })
    )

    it.effect("and of many at once that want to, one does", () =>
      Effect.gen(function* () {
        const { story, eve } = yield* furnished
        const answers = yield* Effect.forEach(
          Array.from({ length: 8 }),
          () => story.ask("DELETE", `/objects/${eve.id}?purge=true`),
          { concurrency: 8 }
        )
        expect(answers.map(({ status }) => status).toSorted()).toEqual([204, ...Array(7).fill(404)])
        expect((yield* story.get("/purges")).items).toHaveLength(1)
      })
    )

    it.effect("is for admins: an editor may delete, but not purge", () =>
      Effect.gen(function* () {
        const { story, eve, works } = yield* furnished
        const editor = yield* asUser(story, "editor")
        for (const path of [`/objects/${eve.id}`, `/relationships/${works.id}`])
          expectProblem(yield* editor.delete(`${path}?purge=true`), 403)
        expect((yield* story.get("/purges")).items).toEqual([])
        expect((yield* editor.delete(`/objects/${eve.id}`)).status).toBe(204)
        expect((yield* story.get(`/objects/${eve.id}/history`)).items).toHaveLength(3)
      })
    )
  })

  describe("Purging a relationship", () => {
    it.effect("removes it alone, and its objects stay", () =>
      Effect.gen(function* () {
        const { story, eve, works } = yield* furnished
        yield* story.delete(`/relationships/${works.id}?purge=true`)
        expectProblem(yield* story.ask("GET", `/relationships/${works.id}/history`), 404)
        expect((yield* story.get(`/objects/${eve.id}`)).properties.note).toContain(secret)
        expect((yield* story.get("/purges")).items).toMatchObject([
          {
            entityType: "relationship",
            entityId: works.id,
            objectType: "WORKS_AT",
            versions: 2,
            relationships: 0
          }
        ])
        const told: ReadonlyArray<Json> = (yield* feedOf(story, 5)).filter(
          (event) => event.entityType === "relationship"
        )
        expect(told.map((event) => event.snapshot.properties)).toEqual([{}, {}])
      })
    )
  })

  describe("Purging a relationship at a version", () => {
    it.effect("is refused at another version than the one expected, also when it is deleted already", () =>
      Effect.gen(function* () {
        const { story, works } = yield* furnished
        const purge = (version: number) =>
          story.send(
            "DELETE",
            `/api/projects/${story.projectId}/relationships/${works.id}?purge=true`,
            undefined,
            { "if-match": `"${version}"` }
          )
        for (const stale of [2, 99])
          expect(yield* purge(stale)).toMatchObject({
            status: 412,
            body: { type: "/problems/precondition-failed" }
          })
        expect((yield* story.get(`/relationships/${works.id}`)).version).toBe(1)
        yield* story.delete(`/relationships/${works.id}`)
        expect(yield* purge(1)).toMatchObject({
          status: 412,
          body: { type: "/problems/precondition-failed" }
        })
        expect((yield* story.get("/purges")).items).toEqual([])
        expect((yield* purge(2)).status).toBe(204)
        expect((yield* story.get("/purges")).items).toHaveLength(1)
      })
    )

    it.effect("takes it at the version expected where it is there", () =>
      Effect.gen(function* () {
        const { story, works } = yield* furnished
        const answer = yield* story.send(
          "DELETE",
          `/api/projects/${story.projectId}/relationships/${works.id}?purge=true`,
          undefined,
          { "if-match": '"1"' }
        )
        expect(answer.status).toBe(204)
        expect((yield* story.get("/purges")).items).toHaveLength(1)
      })
    )
  })

  describe("The graph's tables", () => {
    it.effect("lose nothing else: the server's own role can neither delete a row nor rewrite history", () =>
      Effect.gen(function* () {
        const { story } = yield* furnished
        const tables = [
          "graph_objects",
          "graph_object_versions",
          "graph_relationships",
          "graph_relationship_versions",
          "graph_events",
          "graph_purges"
        ]
        const rights = yield* ask(
          story.access,
          `select name, has_table_privilege('tropism_server', 'kb.' || name, 'delete'), has_table_privilege('tropism_server', 'kb.' || name, 'truncate'),
             has_any_column_privilege('tropism_server', 'kb.' || name, 'update'), has_table_privilege('tropism_server', 'kb.' || name, 'insert')
           from unnest($1::text[]) name`,
          [tables]
        )
        const isWritten = { graph_objects: true, graph_relationships: true, graph_events: true }
        expect(rights).toEqual(
          tables.map((table) => [table, false, false, table in isWritten, table !== "graph_purges"])
        )
        // And the purge's own way in is closed to everybody but the server.
        const open = yield* ask(
          story.access,
          `select count(*)::int from pg_proc proc, aclexplode(proc.proacl) acl
           where proname in ('purge_object', 'purge_relationship') and grantee = 0`
        )
        expect(open).toEqual([[0]])
        const asServer = { ...story.access, ownerUrl: story.access.serverUrl }
        for (const statement of [
          "delete from kb.graph_objects",
          "update kb.graph_object_versions set properties = '{}'",
          "update kb.graph_relationship_versions set properties = '{}'",
          "insert into kb.graph_purges select * from kb.graph_purges"
        ])
          expect([statement, yield* refusalOf(asServer, statement)]).toEqual([statement, "42501"])
      })
    )
  })
})
