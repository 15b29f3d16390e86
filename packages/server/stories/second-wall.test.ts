/**
 * The database itself refuses what goes around the gateway, told with the server's own rights.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Columns, rawUpdate, refusalOfServer } from "../testing/raw-writes.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { make } from "../testing/story-words.ts"
import { atWork, expectRefused, graphOf, unknownId as unknown } from "../testing/wall-words.ts"

/** Another project with an agent at work. */
const elsewhere = Effect.gen(function* () {
  const story = yield* newStoryHere
  const person = yield* make(story, "Person")
  return { story, person, ...(yield* atWork(story)) }
})

layer(SharedServer.layer)((it) => {
  describe("Decision: the database refuses what goes around the gateway", () => {
    it.effect("a row of the graph is written together with its version and its event, or not at all", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { id: objectId } = yield* make(story, "Person", { name: "Ada" })
        const words = "was written without its version and its event"
        yield* expectRefused(
          story,
          {
            neither: rawUpdate({ objectId, version: null, event: null }),
            "no version": rawUpdate({ objectId, version: null }),
            "no event": rawUpdate({ objectId, event: null }),
            "the version is of other content": rawUpdate({ objectId, version: { properties: "'{}'" } }),
            "the version marks what the object does not": rawUpdate({
              objectId,
              version: { untrusted: "'{raw}'" }
            }),
            "the object loses its marks": rawUpdate({
              objectId,
              entity: { untrusted: "'{raw}'" },
              version: { untrusted: "'{}'" }
            }),
            "the version is another's": rawUpdate({ objectId, version: { actor_id: "'bob'" } }),
            "the version is of another kind": rawUpdate({
              objectId,
              version: { type: "'created'" },
              event: { type: "'created'" }
            }),
            "the version names another event": rawUpdate({
              objectId,
              version: { event_id: "gen_random_uuid()" }
            }),
            "the version has another cause": rawUpdate({ objectId, version: { approved_by: "'bob'" } }),
            "the event is another's": rawUpdate({ objectId, event: { actor_id: "'bob'" } }),
            "the event is of another kind of actor": rawUpdate({
              objectId,
              event: { actor_type: "'system'" }
            }),
            "the event is of another kind": rawUpdate({ objectId, event: { type: "'deleted'" } }),
            "the event is of another type of object": rawUpdate({
              objectId,
              event: { object_type: "'Dog'" }
            }),
            "the event is of a relationship": rawUpdate({
              objectId,
              event: { entity_type: "'relationship'" }
            }),
            "the version is not raised": rawUpdate({
              objectId,
              entity: { version: "version" },
              version: null,
              event: null
            }),
            "a version is left out": rawUpdate({ objectId, entity: { version: "version + 2" } }),
            "it goes and is told as changed": rawUpdate({ objectId, entity: { deleted_at: "now()" } })
          },
          words
        )
        expect(yield* refusalOfServer(story.access, story.projectId, rawUpdate({ objectId }))).toBeUndefined()
        expect((yield* story.get(`/objects/${objectId}`)).version).toBe(2)
      })
    )

    it.effect(
      "an object and a relationship are made together with their versions and events, or not at all",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [ada, bob] = [yield* make(story, "Person"), yield* make(story, "Person")]
          const object = `insert into kb.graph_objects (id, project_id, type, properties, version)
          values (gen_random_uuid(), '${story.projectId}', 'Person', '{}', 1)`
          const relationship = (fromId: string, toId: string) => `
          insert into kb.graph_relationships (id, project_id, type, from_id, to_id, properties, version, actor_type)
          values (gen_random_uuid(), '${story.projectId}', 'KNOWS', '${fromId}', '${toId}', '{}', 1, 'user')`
          yield* expectRefused(
            story,
            { object, relationship: relationship(ada.id, bob.id) },
            "was written without its version and its event"
          )
          const related = yield* story.post("/relationships", { type: "KNOWS", fromId: ada.id, toId: bob.id })
          yield* expectRefused(
            story,
            {
              "an update of a relationship": `update kb.graph_relationships set properties = '{"raw": true}' where id = '${related.id}'`
            },
            "was written without its version and its event"
          )
        })
    )

    it.effect("a version or an event that nothing was written for is refused", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person")
        const bob = yield* make(story, "Person")
        const knows = yield* story.post("/relationships", { type: "KNOWS", fromId: ada.id, toId: bob.id })
        const gone = yield* story.post("/relationships", { type: "KNOWS", fromId: bob.id, toId: ada.id })
        yield* story.delete(`/relationships/${gone.id}?purge=true`)
        const version = (objectId: string, number: number) => `
          insert into kb.graph_object_versions (object_id, version, project_id, type, properties, actor_type, event_id)
          values ('${objectId}', ${number}, '${story.projectId}', 'updated', '{"raw": true}', 'user', gen_random_uuid())`
        const event = (id: string, number: number, entityType = "graphObject", more: Columns = {}) => `
          insert into kb.graph_events (${["id, project_id, entity_type, object_type, entity_id, version, type, changed_properties, snapshot, actor_type, root_event_id, depth", ...Object.keys(more)].join(", ")})
          values (${[`gen_random_uuid(), '${story.projectId}', '${entityType}', 'Person', '${id}', ${number}, 'updated', '{}', '{}', 'user', gen_random_uuid(), 0`, ...Object.values(more)].join(", ")})`
        yield* expectRefused(
          story,
          {
            "a version to come": version(ada.id, 2),
            "a version of a relationship to come": version(ada.id, 2)
              .replace("graph_object_versions (object_id", "graph_relationship_versions (relationship_id")
              .replace(ada.id, knows.id)
          },
          "There is no"
        )
        yield* expectRefused(
          story,
          {
            "an event to come": event(ada.id, 2),
            "an event of nothing": event(unknown.slice(1, 37), 1),
            "an event of what was purged": event(gone.id, 3, "relationship")
          },
          "Nothing was written"
        )
        yield* expectRefused(
          story,
          {
            "an event that no agent would see": rawUpdate({
              objectId: ada.id,
              event: { dispatched_at: "now()" }
            }),
            "an event with a place of its own": rawUpdate({ objectId: ada.id, event: { position: "99" } })
          },
          "Nothing was written"
        )
        // What stands is not said a second time: a unique key holds it.
        for (const again of [version(ada.id, 1), event(ada.id, 1)])
          expect((yield* refusalOfServer(story.access, story.projectId, again))?.code).toBe("23505")
      })
    )

    it.effect("what never changes of a row, the server may not write, and it may delete nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person")
        const statements = [
          ...[
            "id = gen_random_uuid()",
            "project_id = gen_random_uuid()",
            "type = 'Dog'",
            "key = 'k'",
            "created_at = now()",
            "purged_at = now()"
          ].map((set) => `update kb.graph_objects set ${set}`),
          ...[
            "id = gen_random_uuid()",
            "project_id = gen_random_uuid()",
            "type = 'OWNS'",
            `from_id = '${ada.id}'`,
            `to_id = '${ada.id}'`,
            "created_at = now()"
          ].map((set) => `update kb.graph_relationships set ${set}`),
          ...[
            "actor_id = 'bob'",
            "snapshot = '{}'",
            "entity_id = gen_random_uuid()",
            "run_id = gen_random_uuid()",
            "depth = 0",
            "root_event_id = id"
          ].map((set) => `update kb.graph_events set ${set}`),
          ...["graph_object_versions", "graph_relationship_versions"].map(
            (table) => `update kb.${table} set properties = '{}'`
          ),
          ...[
            "graph_objects",
            "graph_object_versions",
            "graph_relationships",
            "graph_relationship_versions",
            "graph_events"
          ].flatMap((table) => [`delete from kb.${table}`, `truncate kb.${table}`]),
          "alter table kb.graph_objects disable trigger wall",
          "drop trigger wall on kb.graph_objects",
          "set session_replication_role = replica"
        ]
        for (const statement of statements)
          expect([
            statement,
            (yield* refusalOfServer(story.access, story.projectId, statement))?.code
          ]).toEqual([statement, "42501"])
      })
    )

    it.effect("no write crosses a project, by whichever column", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [ada, bob] = [yield* make(story, "Person"), yield* make(story, "Person")]
        const other = yield* elsewhere
        const foreign = `'${other.story.projectId}'`
        const { by: mine } = yield* atWork(story)
        const before = yield* graphOf(other.story)
        // The rows themselves are held by their policies.
        for (const write of [
          rawUpdate({ objectId: ada.id, version: { project_id: foreign } }),
          rawUpdate({ objectId: ada.id, event: { project_id: foreign } }),
          `insert into kb.graph_objects (id, project_id, type, properties, version) values (gen_random_uuid(), ${foreign}, 'Person', '{}', 1)`
        ])
          expect((yield* refusalOfServer(story.access, story.projectId, write))?.code).toBe("42501")
        // What they name is held by the wall.
        const relationship = (fromId: string, toId: string) => `
          with changed as (
            insert into kb.graph_relationships (id, project_id, type, from_id, to_id, properties, version, actor_type, actor_id)
            values (gen_random_uuid(), '${story.projectId}', 'KNOWS', '${fromId}', '${toId}', '{}', 1, 'user', 'admin') returning *
          ), version as (
            insert into kb.graph_relationship_versions (relationship_id, version, project_id, type, properties, actor_type, actor_id, event_id)
            select id, 1, project_id, 'created', '{}', 'user', 'admin', md5(id::text)::uuid from changed
          )
          insert into kb.graph_events (id, project_id, entity_type, object_type, entity_id, version, type, changed_properties, snapshot, actor_type, actor_id, root_event_id, depth)
          select md5(id::text)::uuid, project_id, 'relationship', 'KNOWS', id, 1, 'created', '{}', '{}', 'user', 'admin', md5(id::text)::uuid, 0 from changed`
        yield* expectRefused(
          story,
          {
            "from another project": relationship(other.person.id, ada.id),
            "to another project": relationship(ada.id, other.person.id)
          },
          "does not lie between two objects of its project"
        )
        yield* expectRefused(
          story,
          {
            "a version of another project's object": rawUpdate({
              objectId: ada.id,
              version: { object_id: `'${other.person.id}'::uuid`, version: "7" }
            }),
            "an event of another project's object": rawUpdate({
              objectId: ada.id,
              event: { entity_id: `'${other.person.id}'::uuid` }
            })
          },
          "was written without its version and its event"
        )
        yield* expectRefused(
          story,
          {
            "an agent of another project, in its run": rawUpdate({ objectId: ada.id, ...other.by }),
            "an agent, in another project's run": rawUpdate({
              objectId: ada.id,
              ...mine,
              event: { run_id: `'${other.run.id}'::uuid` }
            })
          },
          "no run of the agent"
        )
        // Between two objects of the project it may lie.
        expect(
          yield* refusalOfServer(story.access, story.projectId, relationship(ada.id, bob.id))
        ).toBeUndefined()
        expect(yield* graphOf(other.story)).toEqual(before)
      })
    )
  })
})
