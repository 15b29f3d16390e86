/**
 * What review costs follows what it touches, not what there is.
 *
 * The tables are filled by the owner of the database; then each verb is used as
 * the server does it, under its own role and row-level security. PostgreSQL
 * counts the rows of tables that a transaction has looked at.
 */
import { describe, expect, layer } from "@effect/vitest"
import {
  AgentId,
  GraphEventId,
  ObjectId,
  ProjectId,
  RunId,
  TaskId,
  ToolCallId,
  UserId
} from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Database } from "../src/database/database.ts"
import { Backtests } from "../src/reactions/backtests.ts"
import { Chains } from "../src/reactions/chains.ts"
import { RunTasks } from "../src/mcp/run-tasks.ts"
import { taskBounds } from "../src/mcp/run-task.ts"
import { Runs } from "../src/runs/run-store.ts"
import { Autonomy } from "../src/review/autonomy.ts"
import type { TaskFilter } from "../src/review/task-queries.ts"
import { makeRejections } from "../src/review/rejections.ts"
import type { Suggestion } from "../src/review/suggestions.ts"
import { Tasks } from "../src/review/tasks.ts"
import { Undos } from "../src/review/undo.ts"
import { Denials } from "../src/tools/denials.ts"
import { filledBy } from "../testing/filled-database.ts"
import { rowsReadIn, times } from "../testing/rows-read.ts"

const project = ProjectId.make("01990000-0000-7000-8000-000000000001")
const agent = AgentId.make("01990000-0000-7000-8000-000000000002")
/** Has suggested nothing yet. */
const newcomer = AgentId.make("01990000-0000-7000-8000-000000000003")
const ada = UserId.make("ada")
const decider = { userId: ada, mayTakeBack: true }

/** An id of one of the tables that are filled: of an object, event, run, task or backtest. */
const idOf = (kind: number, number: number): string =>
  `0199000${kind}-0000-7000-8000-${number.toString(16).padStart(12, "0")}`

const [objects, events, runs, tasks, backtests] = [1, 2, 3, 4, 5]

/** The same in SQL, for a number that a statement counts. */
const sqlId = (kind: number | undefined, number: string): string =>
  `('0199000${kind}-0000-7000-8000-' || lpad(to_hex(${number}), 12, '0'))::uuid`

/** How many rows there are in each of the large tables; no verb may look at a tenth of that. */
const many = 20_000
const few = 2_000

/** A second lies between two events; the runs that are over began at the instant of this one. */
const begunAt = 5_000
const instantOf = (number: string): string => `timestamptz '2026-01-01' + ${number} * interval '1 second'`

/** The first half of the runs is one chain and is over; the others are queued. */
const filling: ReadonlyArray<string> = [
  `insert into kb.projects (id, name, created_by) values ('${project}', 'x', 'ada')`,
  `insert into kb.task_counters (project_id, last_number) values ('${project}', ${many}) on conflict (project_id) do update set last_number = ${many}`,
  `insert into kb.feeds (project_id, last_position) values ('${project}', ${many})`,
  `insert into kb.agents (id, project_id, name, version, prompt, flow_type, tools, trigger_type, timezone, execution_mode, enabled, capabilities)
    values ('${agent}', '${project}', 'suggester', 1, '', 'single', '{}', 'manual', 'UTC', 'hybrid', true, '{"allowedObjectTypes": ["Package"]}'),
      ('${newcomer}', '${project}', 'newcomer', 1, '', 'single', '{}', 'manual', 'UTC', 'suggest', true, null)`,
  `insert into kb.agent_versions (agent_id, version, project_id, definition, created_by)
    values ('${agent}', 1, '${project}', '{"defaultTimeoutMs": 1000}', 'ada')`,
  `insert into kb.graph_objects (id, project_id, type, properties, version, actor_type, actor_id)
    select ${sqlId(objects, "n")}, '${project}', 'Package', '{"size": 1}', 1, 'agent', '${agent}' from generate_series(1, ${many}) n`,
  `insert into kb.graph_object_versions (object_id, version, project_id, type, properties, actor_type, actor_id, run_id, event_id)
    select ${sqlId(objects, "n")}, 1, '${project}', 'created', '{"size": 1}', 'agent', '${agent}', ${sqlId(runs, "n")}, ${sqlId(events, "n")}
    from generate_series(1, ${many}) n`,
  `insert into kb.graph_events (id, project_id, position, entity_type, object_type, entity_id, version, type, changed_properties, snapshot,
      actor_type, actor_id, run_id, root_event_id, depth, created_at, dispatched_at)
    select ${sqlId(events, "n")}, '${project}', n, 'graphObject', 'Package', ${sqlId(objects, "n")}, 1, 'created', '{size}', '{}',
      'agent', '${agent}', ${sqlId(runs, "n")}, ${sqlId(events, "n - n % 100 + 1")}, 1, ${instantOf("n")}, now() from generate_series(1, ${many}) n`,
  `insert into kb.contexts (project_id, name, agent_id, owner)
    select '${project}', 'run-' || n, '${agent}', case when n % 4 = 0 then 'ben' end from generate_series(1, ${many}) n`,
  `insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, trigger, context_name, root_event_id, depth, priority, started_at)
    select ${sqlId(runs, "n")}, '${project}', '${agent}', 1, case when n % 2 = 0 then 'completed' else 'queued' end, '{"type": "manual"}',
      'run-' || n, ${sqlId(events, "n - n % 100 + 1")}, 1, n % 3, case when n % 2 = 0 then ${instantOf(String(begunAt))} end from generate_series(1, ${many}) n`,
  `insert into kb.tasks (id, project_id, number, type, status, title, payload, digest, agent_id, agent_version, run_id, tool_call_id,
      target_id, base_version, evidence, depth, about, assignee, expires_at, resolved_by, resolved_at)
    select ${sqlId(tasks, "n")}, '${project}', n, 'object_update_suggestion', case when n % 2 = 0 then 'pending' else 'rejected' end, 'Update',
      jsonb_build_object('suggestedChanges', jsonb_build_object('type', 'update', 'objectId', ${sqlId(objects, "n")}, 'data', '{"size": 2}'::jsonb)),
      'd' || n, '${agent}', 1, ${sqlId(runs, "n")}, gen_random_uuid(), ${sqlId(objects, "n")}, 1, '[]', 1, array[${sqlId(objects, "1")}], 'ada',
      case when n % 2 = 0 then now() + case when n <= 100 then '0 s' else '1 h' end::interval end,
      case when n % 2 = 1 then 'ada' end, case when n % 2 = 1 then now() - n * interval '1 second' end
    from generate_series(1, ${many}) n`,
  `insert into kb.rejections (project_id, agent_id, object_id, rejected_at, task_id)
    select project_id, agent_id, unnest(about), resolved_at, id from kb.tasks where status = 'rejected'`,
  `insert into kb.review_records (project_id, agent_id, agent_version, operation, object_type)
    select '${project}', '${agent}', 1, 'update', 'T' || n from generate_series(1, ${many}) n`,
  `insert into kb.promotions (id, project_id, agent_id, agent_version, operation, object_type, reviews, acceptance_rate, task_id)
    select gen_random_uuid(), '${project}', '${agent}', 1, 'update', 'T' || n, 10, 1, ${sqlId(tasks, "n")} from generate_series(1, ${many}) n`,
  `insert into kb.denials (id, project_id, door, agent_id, run_id, tool_call_id, tool, reason, detail)
    select gen_random_uuid(), '${project}', 'run', '${agent}', ${sqlId(runs, "n")}, gen_random_uuid(), 'x', 'mode', 'x'
    from generate_series(1, ${many}) n`,
  `insert into kb.backtests (id, project_id, agent_id, agent_version, status, days, max_events, chosen_events, from_at, to_at, created_by)
    select ${sqlId(backtests, "n")}, '${project}', '${agent}', 1, 'completed', 1, 1000, 1000, now(), now(), 'ada' from generate_series(1, 20) n`,
  `insert into kb.backtest_events (project_id, backtest_id, number, event_id, handled_by, run_id)
    select '${project}', ${sqlId(backtests, "b")}, n, ${sqlId(events, "n")}, '{}', ${sqlId(runs, "n * 2")}
    from generate_series(1, 20) b, generate_series(1, 1000) n`,
  `analyze`
]

const rowsOf = rowsReadIn(project)

layer(filledBy(filling), { excludeTestServices: true })((it) => {
  describe("Cost of review", () => {
    it.effect("a page of tasks, by each filter", () =>
      Effect.gen(function* () {
        const list = (yield* Tasks).list
        // Rows are counted at all.
        expect(yield* rowsOf(() => list({}, ada, undefined, 50))).toBeGreaterThan(50)
        const filters: ReadonlyArray<TaskFilter> = [
          {},
          { status: "pending" },
          { type: "object_update_suggestion" },
          { type: "promotion" },
          { agentId: agent },
          { assignee: ada },
          { assignee: ada, status: "rejected" },
          { type: "todo", assignee: ada }
        ]
        for (const filter of filters)
          expect([filter, yield* rowsOf(() => list(filter, ada, undefined, 50))]).toEqual([
            filter,
            expect.toSatisfy((rows: number) => rows < few)
          ])
      })
    )

    it.effect("a decision", () =>
      Effect.gen(function* () {
        const { approve, reject } = yield* Tasks
        const task = (number: number) => TaskId.make(idOf(tasks ?? 0, number))
        expect(yield* rowsOf((time) => reject(task(1_000 + 2 * time), decider, "No"))).toBeLessThan(few)
        expect(yield* rowsOf((time) => approve(task(2_000 + 2 * time), decider, null, null))).toBeLessThan(
          few
        )
      })
    )

    it.effect("a suggestion, whatever has happened since its run began", () =>
      Effect.gen(function* () {
        const { suggest } = yield* Tasks
        const suggestion = (time: number): Suggestion => ({
          change: {
            type: "update",
            objectId: ObjectId.make(idOf(objects ?? 0, 3_000 + time)),
            data: { size: 2 }
          },
          agentId: newcomer,
          agentVersion: 1,
          runId: RunId.make(idOf(runs ?? 0, 3_000 + 2 * time)),
          toolCallId: ToolCallId.make(idOf(6, time)),
          confidence: null,
          reasoning: null,
          target: null,
          relationship: null,
          lastRead: null,
          evidence: [],
          wokenBy: [],
          untrusted: [],
          rootEventId: GraphEventId.make(idOf(events ?? 0, 3_000 + time)),
          depth: 1
        })
        expect(yield* rowsOf((time) => suggest(suggestion(time)))).toBeLessThan(few)
        const sql = yield* SqlClient.SqlClient
        const seen = yield* (yield* Database).inProject(
          project,
          Effect.orDie(sql<{ upTo: number; count: number }>`
            select seen_position::int as up_to, count(*)::int as count from kb.tasks where agent_id = ${newcomer} group by 1`)
        )
        expect(seen).toEqual([{ upTo: begunAt, count: times }])
      })
    )

    it.effect("what a run hears of many rejections about one object, the newest first", () =>
      Effect.gen(function* () {
        const { about } = yield* makeRejections
        const object = idOf(objects ?? 0, 1)
        expect(yield* rowsOf(() => about(project, agent, [object]))).toBeLessThan(few)
        const database = yield* Database
        const heard = yield* database.inProject(project, about(project, agent, [object]))
        expect(heard).toHaveLength(5)
      })
    )

    it.effect("suggestions whose time is up", () =>
      Effect.gen(function* () {
        const { expire } = yield* Tasks
        expect(yield* rowsOf(() => expire)).toBeLessThan(few)
      })
    )

    it.effect("an undo of one run, its plan and its approval; and a page of a chain", () =>
      Effect.gen(function* () {
        const undos = yield* Undos
        const { approve } = yield* Tasks
        const planned: Array<TaskId> = []
        const plan = (time: number) =>
          Effect.map(
            undos.plan({ type: "run", runId: RunId.make(idOf(runs ?? 0, 5_000 + 2 * time)) }, ada),
            (found) => found && planned.push(found.task.id)
          )
        expect(yield* rowsOf(plan)).toBeLessThan(few)
        expect(planned).toHaveLength(times)
        const undo = (time: number) => approve(planned[time - 1] ?? TaskId.make(project), decider, null, null)
        expect(yield* rowsOf(undo)).toBeLessThan(few)
        const { links } = yield* Chains
        const root = GraphEventId.make(idOf(events ?? 0, 301))
        expect(yield* rowsOf(() => links(root, undefined, 50))).toBeLessThan(few)
      })
    )

    it.effect("what an agent has earned, what it was denied, and its backtests", () =>
      Effect.gen(function* () {
        const [autonomy, denials, tests] = [yield* Autonomy, yield* Denials, yield* Backtests]
        expect(yield* rowsOf(() => autonomy.of(agent, undefined))).toBeLessThan(few)
        const trusted = (time: number) =>
          Effect.map(autonomy.trusted(RunId.make(idOf(runs ?? 0, time)), "update", `T${time}`), (promotion) =>
            expect(promotion).toBeDefined()
          )
        expect(yield* rowsOf(trusted)).toBeLessThan(few)
        expect(
          yield* rowsOf(() => denials.list({ agentId: agent, runId: undefined }, undefined, 50))
        ).toBeLessThan(few)
        expect(yield* rowsOf(() => tests.list(agent, undefined, 20))).toBeLessThan(few)
      })
    )

    it.effect(
      "runs as tasks of MCP: a page for whoever may not read all, and a look at those that are watched",
      () =>
        Effect.gen(function* () {
          const { glance, list } = yield* RunTasks
          const caller = {
            principal: { userId: ada, role: "reviewer", projectIds: [project], roles: null },
            projectId: project,
            canElicit: true
          } as const
          const { items, nextCursor } = yield* list(caller, undefined)
          // Of four one is somebody else's own.
          expect(items.map(({ task }) => task.taskId).slice(0, 4)).toEqual(
            [19_999, 19_998, 19_997, 19_995].map((number) => idOf(runs ?? 0, number))
          )
          expect(yield* rowsOf(() => list(caller, nextCursor ?? undefined))).toBeLessThan(few)
          const watched = Array.from({ length: taskBounds.watchedTasks }, (_, index) =>
            RunId.make(idOf(runs ?? 0, 10_002 + 4 * index))
          )
          expect(yield* glance(caller, watched)).toHaveLength(taskBounds.watchedTasks)
          expect(yield* rowsOf(() => glance(caller, watched))).toBeLessThan(few)
        })
    )

    it.effect("the runs that a worker takes out of a long queue", () =>
      Effect.gen(function* () {
        const { claim } = yield* Runs
        expect(yield* rowsOf(() => claim("worker", { limit: 8, oldest: 1, backtests: 2 }))).toBeLessThan(few)
      })
    )
  })
})
