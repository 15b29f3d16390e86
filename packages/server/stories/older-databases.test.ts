/**
 * Databases that earlier versions of this program made, with all that they held.
 */
import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { Migrator, SqlClient } from "effect/sql"
import { migrate } from "../src/database/schema.ts"
import { statements as firstMigration } from "../src/database/migrations/0001-house.ts"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { unmigratedDatabase } from "../testing/fresh-database.ts"
import { everyRow, olderDatabase } from "../testing/older-database.ts"
import { ask, holding } from "../testing/owner-rows.ts"
import { eventually, type Json, startServer, storyIn } from "../testing/platform.ts"

const first = (access: PostgresAccess) =>
  Migrator.make({})({
    loader: Migrator.fromRecord({
      "0001_house": Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        for (const statement of firstMigration) yield* sql.unsafe(statement)
      })
    }),
    table: "tropism_migrations"
  }).pipe(Effect.provide(PgClient.layer({ url: access.ownerUrl, maxConnections: 1 })), Effect.orDie)

const projectId = "01990000-0000-7000-8000-000000000001"

/** Ids that end with a number; each round of rows has its own. */
const idIn = (round: number) => (number: number) =>
  `01990000-000${round}-7000-8000-${String(number).padStart(12, "0")}`

const project = [
  `insert into kb.projects (id, name, created_by) values ('${projectId}', 'Old', 'ada')`,
  `insert into kb.feeds (project_id, last_position) values ('${projectId}', 6)`,
  `insert into kb.task_counters (project_id, last_number) values ('${projectId}', 1)`
]

/** Rows of every kind, as the first version wrote them: a person, a company, who works where, and an agent at work. */
const rows = (round: number, isSettled: boolean): ReadonlyArray<string> => {
  const id = idIn(round)
  const [person, company, works, agent, run, call] = [1, 2, 3, 4, 5, 6].map(id)
  const context = `run-${run}`
  const object = (
    objectId: string | undefined,
    type: string,
    properties: string,
    version: number,
    isDeleted = false
  ) =>
    `insert into kb.graph_objects (id, project_id, type, key, properties, version, actor_type, actor_id, deleted_at)
     values ('${objectId}', '${projectId}', '${type}', 'k${round}', '${properties}', ${version}, 'user', 'ada', ${isDeleted ? "now()" : "null"})`
  const version = (
    objectId: string | undefined,
    number: number,
    type: string,
    properties: string,
    event: number
  ) =>
    `insert into kb.graph_object_versions (object_id, version, project_id, type, properties, actor_type, actor_id, event_id, run_id)
     values ('${objectId}', ${number}, '${projectId}', '${type}', '${properties}', 'user', 'ada', '${id(event)}', null)`
  const event = (
    number: number,
    entity: readonly [kind: string, type: string, id: string | undefined],
    version: number,
    type: string,
    properties: string
  ) =>
    `insert into kb.graph_events (id, project_id, position, entity_type, object_type, entity_id, version, type, changed_properties, snapshot,
       actor_type, actor_id, root_event_id, depth, dispatched_at)
     values ('${id(number)}', '${projectId}', ${isSettled ? number - 10 : "null"}, '${entity[0]}', '${entity[1]}', '${entity[2]}', ${version}, '${type}',
       array(select jsonb_object_keys('${properties}')), jsonb_build_object('id', '${entity[2]}', 'type', '${entity[1]}', 'key', 'k${round}', 'properties', '${properties}'::jsonb, 'version', ${version}),
       'user', 'ada', '${id(number)}', 0, now())`
  return [
    object(person, "Person", '{"name": "Ada", "born": 1815}', 2),
    object(company, "Company", '{"name": "Acme"}', 2, true),
    version(person, 1, "created", '{"name": "Ada"}', 11),
    version(person, 2, "updated", '{"name": "Ada", "born": 1815}', 14),
    version(company, 1, "created", '{"name": "Acme"}', 12),
    version(company, 2, "deleted", '{"name": "Acme"}', 16),
    `insert into kb.graph_relationships (id, project_id, type, from_id, to_id, properties, version, actor_type, actor_id, deleted_at)
     values ('${works}', '${projectId}', 'WORKS_AT', '${person}', '${company}', '{"since": 1}', 2, 'user', 'ada', now())`,
    event(11, ["graphObject", "Person", person], 1, "created", '{"name": "Ada"}'),
    event(12, ["graphObject", "Company", company], 1, "created", '{"name": "Acme"}'),
    event(13, ["relationship", "WORKS_AT", works], 1, "created", '{"since": 1}'),
    event(14, ["graphObject", "Person", person], 2, "updated", '{"born": 1815}'),
    event(15, ["relationship", "WORKS_AT", works], 2, "deleted", '{"since": 1}'),
    event(16, ["graphObject", "Company", company], 2, "deleted", '{"name": "Acme"}'),
    `insert into kb.agents (id, project_id, name, version, prompt, flow_type, tools, trigger_type, timezone, reaction_config, execution_mode, enabled, enabled_at)
     values ('${agent}', '${projectId}', 'watcher-${round}', 1, 'Look.', 'single', '{graph.*}', 'reaction', 'UTC',
       '{"objectTypes": ["Person"], "events": ["created"], "concurrencyStrategy": "skip", "ignoreSelfTriggered": true, "ignoreAgentTriggered": false}',
       'suggest', true, now())`,
    `insert into kb.agent_versions (agent_id, version, project_id, definition, created_by)
     values ('${agent}', 1, '${projectId}', '{"name": "watcher-${round}", "role": null, "prompt": "Look.", "systemPrompt": null,
       "model": {"provider": "scripted", "name": "s", "script": {"rules": [{"say": "Seen."}]}}, "flowType": "single", "tools": ["graph.*"],
       "triggerType": "reaction", "cronSchedule": null, "timezone": "UTC", "executionMode": "suggest", "hybridPolicy": null, "capabilities": null,
       "reactionConfig": {"objectTypes": ["Person"], "events": ["created"], "concurrencyStrategy": "skip", "ignoreSelfTriggered": true, "ignoreAgentTriggered": false},
       "maxSteps": null, "enabled": true}', 'ada')`,
    `insert into kb.agent_reactions (project_id, object_type, event_type, agent_id) values ('${projectId}', 'Person', 'created', '${agent}')`,
    `insert into kb.contexts (project_id, name, agent_id, last_event_number) values ('${projectId}', '${context}', '${agent}', 2)`,
    `insert into kb.context_events (project_id, context_name, number, type, payload, triggers_agent_turn, created_at)
     values ('${projectId}', '${context}', 1, 'SessionStartedEvent', '{}', false, now()),
       ('${projectId}', '${context}', 2, 'UserMessageEvent', '{"content": "Look at the persons"}', true, now())`,
    `insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, trigger, context_name, root_event_id, depth, model, summary, step_count, attempt, started_at, completed_at)
     values ('${run}', '${projectId}', '${agent}', 1, 'completed', '{"type": "reaction", "events": [{"id": "${id(11)}", "type": "created", "objectId": "${person}", "objectType": "Person", "version": 1}]}',
       '${context}', '${id(11)}', 0, 'scripted:s', 'Seen.', 1, 1, now(), now())`,
    `insert into kb.agent_processing_log (id, project_id, agent_id, graph_object_id, object_version, event_type, event_id, exclusive, status, run_id, started_at, completed_at)
     values ('${id(7)}', '${projectId}', '${agent}', '${person}', 1, 'created', '${id(11)}', true, 'completed', '${run}', now(), now())`,
    `insert into kb.tool_calls (id, project_id, run_id, agent_id, context_name, call_id, tool, arguments, status, decision, result)
     values ('${call}', '${projectId}', '${run}', '${agent}', '${context}', 'c1', 'update_object', '{"objectId": "${person}", "properties": {"title": "Countess"}, "reasoning": "She is."}', 'completed', 'suggest', '{}')`,
    `insert into kb.tasks (id, project_id, number, type, title, payload, digest, agent_id, run_id, tool_call_id, target_id, base_version, evidence, root_event_id, depth)
     values ('${id(8)}', '${projectId}', ${round}, 'object_update_suggestion', 'Update Person', '{"agentId": "${agent}", "agentRunId": "${run}", "suggestedChanges": {"type": "update", "objectId": "${person}", "data": {"title": "Countess"}}}',
       'x', '${agent}', '${run}', '${call}', '${person}', 2, '[]', '${id(11)}', 1)`
  ]
}

const write = (access: PostgresAccess, statements: ReadonlyArray<string>) =>
  Effect.forEach(statements, (statement) => ask(access, statement), { discard: true })

/** Every column that there is, with its type. */
const columnsOf = (access: PostgresAccess) =>
  Effect.map(
    ask(
      access,
      `select table_name || '.' || column_name || ' ' || data_type from information_schema.columns where table_schema = 'kb' order by 1`
    ),
    (found) => found.map(([column]) => String(column))
  )

describe("Decision: migration plan", () => {
  it.live(
    "S001-R55 what the first version kept is found again, and what it would write can still be written",
    () =>
      Effect.gen(function* () {
        const access = yield* unmigratedDatabase
        yield* first(access)
        yield* write(access, [...project, ...rows(1, true)])
        const before = yield* columnsOf(access)
        yield* migrate(access.ownerUrl)
        expect(yield* columnsOf(access)).toEqual(expect.arrayContaining([...before]))
        // A program of the first version that is still running does not notice.
        yield* write(access, rows(2, false))

        const story = storyIn(yield* startServer(access), access, projectId)
        const id = idIn(1)
        const person = yield* story.get(`/objects/${id(1)}`)
        expect(person).toMatchObject({ key: "k1", version: 2, properties: { name: "Ada", born: 1815 } })
        const found = yield* story.get("/objects?query=ada%201815&type=Person")
        expect(found.items.map((object: Json) => object.key)).toEqual(["k2", "k1"])
        const where = encodeURIComponent(JSON.stringify([{ property: "born", op: "eq", value: 1815 }]))
        expect((yield* story.get(`/objects?where=${where}`)).items).toHaveLength(2)
        expect((yield* story.get(`/objects/${id(2)}/history`)).items).toMatchObject([
          { version: 2, type: "deleted" },
          { version: 1, type: "created" }
        ])
        // The first version kept no versions of relationships; their events had them.
        expect((yield* story.get(`/relationships/${id(3)}/history`)).items).toMatchObject([
          { version: 2, type: "deleted", actorId: "ada", eventId: id(15) },
          { version: 1, type: "created", properties: { since: 1 }, eventId: id(13) }
        ])
        const { properties } = yield* story.get(`/objects/${id(1)}/provenance`)
        expect(properties).toMatchObject([
          { property: "born", version: 2, rootEventId: id(14) },
          { property: "name", version: 1, rootEventId: id(11) }
        ])
        expect((yield* story.post(`/objects/${id(2)}/restore`)).version).toBe(3)

        expect((yield* story.get(`/agents/${id(4)}`)).reactionConfig).toMatchObject({
          objectTypes: ["Person"]
        })
        expect(yield* story.get(`/runs/${id(5)}`)).toMatchObject({ status: "completed", summary: "Seen." })
        expect((yield* story.get(`/agents/${id(4)}/processing-log`)).items).toMatchObject([
          { status: "completed", runId: id(5) }
        ])
        expect((yield* story.get(`/contexts/run-${id(5)}/events`)).items).toHaveLength(2)
        // What was said before agents could remember is remembered.
        expect(yield* ask(access, "select context_name, number, words::text from kb.passages")).toEqual([
          [`run-${id(5)}`, 2, "'look':1 'person':4"]
        ])
        expect((yield* story.get("/events?limit=6")).items.map((event: Json) => event.id)).toEqual(
          [11, 12, 13, 14, 15, 16].map(id)
        )
        const approved = yield* story.ask("POST", `/tasks/${id(8)}/approve`, {})
        expect([approved.status, approved.body.outcome]).toEqual([
          200,
          { entityId: id(1), version: 3, change: "updated" }
        ])
      })
  )
})

describe("an upgrade", () => {
  for (const version of [15, 30]) {
    it.live(`keeps every row of a database of schema ${version}, and works on`, () =>
      Effect.gen(function* () {
        const access = yield* olderDatabase(version)
        const before = yield* everyRow(access)
        expect(before.length).toBeGreaterThan(200)
        yield* migrate(access.ownerUrl)
        const after = yield* everyRow(access)
        for (const table of new Set(before.map((one) => one.table))) {
          const rowsOf = (all: typeof before) =>
            all.filter((one) => one.table === table).map(({ row }) => row)
          expect(rowsOf(after)).toEqual(
            expect.arrayContaining(rowsOf(before).map((row) => expect.objectContaining(row)))
          )
        }

        const [[id] = []] = yield* ask(access, "select id from kb.projects")
        const story = storyIn(yield* startServer(access), access, String(id))
        // The schedules of those days may fire at once: what was there is there, beside what is new.
        for (const [path, table] of [
          ["/runs", "agent_runs"],
          ["/events", "graph_events"],
          ["/tasks", "tasks"]
        ]) {
          const ids = before.filter((one) => one.table === table).map(({ row }) => row.id)
          const shown = (yield* story.get(`${path}?limit=200`)).items.map((item: Json) => item.id)
          expect(shown).toEqual(expect.arrayContaining(ids))
        }
        expect((yield* story.get("/tasks?status=rejected")).items).toMatchObject([
          { resolutionNote: "we have a licence" }
        ])
        // The agents of those days hear what happens now.
        const made = yield* story.post("/objects", {
          type: "Package",
          key: "shop/new",
          properties: { name: "new", version: "1.0.0", license: "GPL-3.0" }
        })
        yield* eventually(story.get("/tasks?status=pending"), ({ items }: Json) =>
          items.some((task: Json) => task.target?.id === made.id)
        )
        expect((yield* story.post("/chat", { message: "Add buy tea" })).toolCalls).toMatchObject([
          { tool: "add_task", result: { status: "created" } }
        ])
      })
    )
  }

  it.live("that is cut off in the middle begins again and loses nothing", () =>
    Effect.gen(function* () {
      const access = yield* olderDatabase(15)
      const before = yield* everyRow(access)
      const columns = yield* columnsOf(access)
      const waiting = `pid in (select pid from pg_locks where not granted) and query like '%kb.%'`
      yield* Effect.scoped(
        Effect.gen(function* () {
          // Somebody reads the runs, so a migration that changes their table waits; then the program is killed.
          yield* holding(access, "select count(*) from kb.agent_runs")
          const migrating = yield* Effect.forkChild(Effect.exit(migrate(access.ownerUrl)))
          yield* eventually(
            ask(access, `select pg_terminate_backend(pid) from pg_stat_activity where ${waiting}`),
            (ended) => ended.length > 0
          )
          expect(Exit.isFailure(yield* Fiber.join(migrating))).toBe(true)
        })
      )
      expect(yield* columnsOf(access)).toEqual(columns)
      expect(yield* everyRow(access)).toEqual(before)
      yield* migrate(access.ownerUrl)
      expect((yield* everyRow(access)).length).toBeGreaterThanOrEqual(before.length)
    })
  )
})
