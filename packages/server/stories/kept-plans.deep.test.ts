/**
 * Plans that a connection makes once cost no more where much lies behind, and whole transactions go to PostgreSQL in one write.
 *
 * The tables are filled by the owner of the database; then each verb is used as
 * the loops use it. PostgreSQL counts the rows of tables that a transaction has
 * looked at.
 */
import { describe, expect, layer } from "@effect/vitest"
import { AgentId, ProjectId, UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Database, keepingPlans, type ProjectTransaction } from "../src/database/database.ts"
import { standingsOf } from "../src/reactions/agent-capacity.ts"
import { Objects } from "../src/graph/objects.ts"
import { Outbox } from "../src/outbox/outbox.ts"
import { Descendants } from "../src/runs/sub-runs.ts"
import { Runs } from "../src/runs/run-store.ts"
import { WaitingEntries } from "../src/runs/processing-log.ts"
import { Tasks } from "../src/review/tasks.ts"
import { filledBy } from "../testing/filled-database.ts"
import { rowsReadIn } from "../testing/rows-read.ts"

/** Ten projects, of which each has as much behind it and all its rows between those of the others. */
const idOf = (kind: string, number: string): string =>
  `('01990000-0000-7${kind}00-8000-' || lpad(to_hex(${number}), 12, '0'))::uuid`
const projects = 10
const project = ProjectId.make("01990000-0000-7000-8000-000000000001")
const agent = AgentId.make("01990000-0000-7a00-8000-000000000001")

/** Rows of all projects. */
const many = 40_000
/** As many as the live runs that are counted of an agent, and some; a look at all of a project would be more. */
const few = 1_500

const each = `generate_series(1, ${projects}) n`

/** What the events of a past have left; of each, the number of its project, and the state and priority of its run. */
const fillingOf = (past: {
  readonly owner: string
  readonly status: string
  readonly priority: string
  readonly dispatchedAt: string
}) => {
  const events = `(select n, ${idOf("0", past.owner)} as project_id, ${idOf("a", past.owner)} as agent_id, ${idOf("e", "n")} as event_id,
    ${idOf("f", "n")} as run_id from generate_series(1, ${many}) n) past`
  return [
    `insert into kb.projects (id, name, created_by) select ${idOf("0", "n")}, 'x', 'ada' from ${each}`,
    `insert into kb.agents (id, project_id, name, version, prompt, flow_type, tools, trigger_type, timezone, execution_mode, enabled, reaction_config)
      select ${idOf("a", "n")}, ${idOf("0", "n")}, 'reacts', 1, '', 'single', '{}', 'reaction', 'UTC', 'execute', true, '{}' from ${each}`,
    `insert into kb.agent_versions (agent_id, version, project_id, definition, created_by)
      select ${idOf("a", "n")}, 1, ${idOf("0", "n")}, '{"defaultTimeoutMs": 1000}', 'ada' from ${each}`,
    `insert into kb.graph_events (id, project_id, position, entity_type, object_type, entity_id, version, type, changed_properties, snapshot,
        actor_type, actor_id, root_event_id, depth, dispatched_at)
      select event_id, project_id, n, 'graphObject', 'Order', event_id, 1, 'created', '{}', '{}', 'user', 'ada', event_id, 0, ${past.dispatchedAt} from ${events}`,
    `insert into kb.contexts (project_id, name, agent_id) select project_id, 'run-' || run_id, agent_id from ${events}`,
    `insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, priority, trigger, context_name, root_event_id, depth)
      select run_id, project_id, agent_id, 1, ${past.status}, ${past.priority}, '{"type": "reaction"}',
        'run-' || run_id, event_id, 0 from ${events}`,
    `insert into kb.graph_objects (id, project_id, type, key, properties, version) select event_id, project_id, 'Order', 'order-' || n, '{}', 1 from ${events}`,
    `insert into kb.tasks (id, project_id, owner, number, type, title, payload, digest, agent_id, run_id, tool_call_id, evidence, depth)
      select event_id, project_id, '', n, 'object_update_suggestion', 'x', '{}', '', agent_id, run_id, event_id, '[]', 0 from ${events}`,
    `insert into kb.feeds (project_id) select ${idOf("0", "n")} from ${each}`,
    "analyze"
  ]
}

/** Every project has its part of the past, and half of it is done. */
const shared = fillingOf({
  owner: `1 + n % ${projects}`,
  status: "case when n % 20 < 10 then 'completed' else 'queued' end",
  priority: "1",
  dispatchedAt: "now()"
})

/** One project has nine tenths of everything in its queue, half of it a backtest's; what is another's came before it or behind it. */
const crowded = fillingOf({
  owner: `case when n <= ${many} * 0.05 then 3 when n <= ${many} * 0.95 then 2 else 1 end`,
  status: "'queued'",
  priority: "1 + n / 10 % 2",
  dispatchedAt: "null"
})

/** Half of all runs rest at a limit below one that has completed, and nobody wants the first of them any more. */
const resting = [
  ...shared,
  `update kb.agent_runs child set status = 'paused', pause_reason = 'stepLimit', parent_run_id = parent.id, ancestors = array[parent.id]
    from (select n, ${idOf("f", "n")} as run_id, ${idOf("f", "n - 10")} as parent_id from generate_series(1, ${many}) n) place
    join kb.agent_runs parent on parent.id = place.parent_id
    where child.id = place.run_id and n % 20 >= 10`,
  `update kb.agent_runs set status = 'failed' where id = ${idOf("f", "1")}`,
  "analyze"
]

const rowsOf: ReturnType<typeof rowsReadIn> = (use) => keepingPlans(rowsReadIn(project)(use))
const places = (time: number) => ({ limit: 8, oldest: time % 2, backtests: 4 })

layer(filledBy(shared), { excludeTestServices: true, timeout: "5 minutes" })((it) => {
  describe("Plans that a connection keeps", () => {
    it.effect("claims out of a long queue look at what they claim", () =>
      Effect.gen(function* () {
        const { claim, takeOver } = yield* Runs
        expect(yield* rowsOf((time) => claim("worker", places(time)))).toBeLessThan(few)
        expect(yield* rowsOf((time) => takeOver("worker", places(time)))).toBeLessThan(few)
      })
    )

    it.effect("so do the rounds of those who dispatch and release", () =>
      Effect.gen(function* () {
        const outbox = yield* Outbox
        const { dueAgents } = yield* WaitingEntries
        expect(yield* rowsOf(() => outbox.claim(100))).toBeLessThan(few)
        expect(yield* rowsOf(() => dueAgents(undefined, 100))).toBeLessThan(few)
        expect(yield* rowsOf(() => standingsOf([agent]))).toBeLessThan(few)
      })
    )

    it.effect("a transaction keeps its plans where it is told so, and no other does", () =>
      Effect.gen(function* () {
        const database = yield* Database
        const sql = yield* SqlClient.SqlClient
        const mode = sql<{ mode: string }>`select current_setting('plan_cache_mode') as mode`
        const seen = []
        for (let time = 0; time < 3; time++) {
          seen.push(yield* database.ask(project, mode))
          seen.push(yield* database.inProject(project, mode))
          seen.push(yield* keepingPlans(database.inProject(project, mode)))
        }
        const modes = seen.flat().map((row) => row.mode)
        expect(modes.filter((_, index) => index % 3 !== 1)).toEqual(
          Array.from({ length: 6 }, () => "force_generic_plan")
        )
        expect(modes.filter((_, index) => index % 3 === 1)).toEqual(["auto", "auto", "auto"])
      })
    )
  })

  describe("Two statements that are a whole transaction", () => {
    it.effect("the second sees what the first has done, and when it is refused nothing is kept", () =>
      Effect.gen(function* () {
        const database = yield* Database
        const sql = yield* SqlClient.SqlClient
        const look = sql<{
          name: string
        }>`select name from kb.contexts where project_id = ${project} and name like 'said-%'`
        const begin = (name: string) =>
          sql`insert into kb.contexts (project_id, name, agent_id) values (${project}, ${name}, ${agent})`
        const [, seen] = yield* database.askBoth(project, begin("said-1"), look)
        expect(seen).toEqual([{ name: "said-1" }])
        const refused = yield* Effect.exit(database.askBoth(project, begin("said-2"), begin("said-1")))
        expect(refused._tag).toBe("Failure")
        expect(yield* database.ask(project, look)).toEqual([{ name: "said-1" }])
      })
    )
  })
})

layer(filledBy(crowded), { excludeTestServices: true, timeout: "5 minutes" })((it) => {
  describe("Behind the queue of another project", () => {
    it.effect("a claim looks at what it claims", () =>
      Effect.gen(function* () {
        const { claim } = yield* Runs
        expect(yield* rowsOf((time) => claim("worker", places(time)))).toBeLessThan(few)
      })
    )

    it.effect("a round of dispatch looks at what it dispatches", () =>
      Effect.gen(function* () {
        const outbox = yield* Outbox
        const claimed = Effect.map(outbox.claim(100), (events) => expect(events.length).toBe(100))
        expect(yield* rowsOf(() => claimed)).toBeLessThan(few)
      })
    )

    it.effect("a page of what came before it is read alone", () =>
      Effect.gen(function* () {
        const runs = yield* Runs
        const tasks = yield* Tasks
        const objects = yield* Objects
        const older = rowsReadIn(ProjectId.make("01990000-0000-7000-8000-000000000003"))
        const pages: ReadonlyArray<Effect.Effect<ReadonlyArray<unknown>, never, ProjectTransaction>> = [
          runs.list({}, undefined, 50),
          tasks.list({}, UserId.make("ada"), undefined, 50),
          objects.list({}, "createdAt", undefined, 50)
        ]
        for (const page of pages) {
          const whole = Effect.map(page, (rows) => expect(rows.length).toBe(50))
          expect(yield* older(() => whole)).toBeLessThan(few)
        }
      })
    )
  })
})

layer(filledBy(resting), { excludeTestServices: true, timeout: "5 minutes" })((it) => {
  describe("Beside sub-runs that rest at a limit", () => {
    it.effect(
      "a look for runs that nobody wants looks at those at work, and a slower one finds the others",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const due = Effect.orDie(sql`select project_id from kb.projects_with_due_waits() as project_id`)
          expect(yield* rowsOf(() => due)).toBeLessThan(few)
          expect(yield* due).toEqual([])
          const { cancelResting } = yield* Descendants
          expect(yield* cancelResting).toBe(1)
          const [unwanted] = yield* (yield* Database).inProject(
            ProjectId.make("01990000-0000-7000-8000-000000000002"),
            Effect.orDie(sql`select status from kb.agent_runs where id = ${sql.literal(idOf("f", "11"))}`)
          )
          expect(unwanted).toEqual({ status: "cancelled" })
        })
    )
  })
})
