/**
 * How long runs wait for a worker and schedules for their turn, and what rests, where kill switches hold some of it.
 *
 * The owner of the database writes the rows, and no loop is at work that would take them.
 */
import { expect, layer } from "@effect/vitest"
import { ProjectId, UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Database, orDie } from "../src/database/database.ts"
import { readGauges } from "../src/http/operations-routes.ts"
import { readVitalSigns } from "../src/reactions/health.ts"
import { KillSwitches } from "../src/runs/kill-switches.ts"
import { filledBy } from "../testing/filled-database.ts"

const idOf = (kind: string, project: number): string => `01990000-0000-7${kind}00-8000-00000000000${project}`

/** A project with one agent, and of it one run that was queued so long ago. */
const projectOf = (project: number, age: string) => {
  const [id, agent, run] = ["0", "a", "f"].map((kind) => `'${idOf(kind, project)}'`)
  return [
    `insert into kb.projects (id, name, created_by) values (${id}, 'x', 'ada')`,
    `insert into kb.agents (id, project_id, name, version, prompt, flow_type, tools, trigger_type, timezone, execution_mode, enabled, reaction_config)
      values (${agent}, ${id}, 'helper', 1, '', 'single', '{}', 'manual', 'UTC', 'execute', true, '{}')`,
    `insert into kb.agent_versions (agent_id, version, project_id, definition, created_by)
      values (${agent}, 1, ${id}, '{"defaultTimeoutMs": 1000}', 'ada')`,
    `insert into kb.contexts (project_id, name, agent_id) values (${id}, 'run-1', ${agent})`,
    `insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, trigger, context_name, depth, created_at, queued_at)
      values (${run}, ${id}, ${agent}, 1, 'queued', '{"type": "manual"}', 'run-1', 0, now() - interval '${age}', now() - interval '${age}')`,
    `insert into kb.agent_schedules (agent_id, project_id, cron, timezone, next_fire_at) values (${agent}, ${id}, '* * * * *', 'UTC', now() - interval '${age}')`
  ]
}

const hoursOf = (seconds: number): number => Math.floor(seconds / 3_600)

layer(filledBy([...projectOf(1, "2 hours"), ...projectOf(2, "1 hour")]), {
  excludeTestServices: true,
  timeout: "2 minutes"
})((it) => {
  it.effect("is told of what nobody holds: a project's switch excuses its own runs, the server's all", () =>
    Effect.gen(function* () {
      const switches = yield* KillSwitches
      const oldest = Effect.map(
        readGauges(),
        ({ oldestQueuedSeconds, overdueScheduleSeconds, queuedRuns }) => ({
          hours: hoursOf(oldestQueuedSeconds),
          overdueHours: hoursOf(overdueScheduleSeconds),
          queuedRuns
        })
      )
      const hold = (projectId: ProjectId | null) => switches.stop(projectId, "Stop", UserId.make("ada"))
      expect(yield* oldest).toEqual({ hours: 2, overdueHours: 2, queuedRuns: 2 })
      yield* hold(ProjectId.make(idOf("0", 1)))
      expect(yield* oldest).toEqual({ hours: 1, overdueHours: 1, queuedRuns: 2 })
      yield* hold(null)
      expect(yield* oldest).toEqual({ hours: 0, overdueHours: 0, queuedRuns: 2 })
    })
  )
})

const [project, agent, backtest, theRun] = ["0", "a", "b", "f"].map((kind) => idOf(kind, 1))

/** A run of the first project's agent, in a context of its own. */
const runOf = (number: number, columns: string, values: string) => [
  `insert into kb.contexts (project_id, name, agent_id) values ('${project}', 'more-${number}', '${agent}')`,
  `insert into kb.agent_runs (id, project_id, agent_id, agent_version, trigger, context_name, depth, ${columns})
    values (gen_random_uuid(), '${project}', '${agent}', 1, '{"type": "manual"}', 'more-${number}', 0, ${values})`
]

const resting = ["question", "stepLimit", "stepLimit", "timeout", "budget", "killSwitch", "toolResult"]

layer(
  filledBy([
    ...projectOf(1, "2 hours"),
    `insert into kb.backtests (id, project_id, agent_id, agent_version, status, days, max_events, from_at, to_at, created_by)
      values ('${backtest}', '${project}', '${agent}', 1, 'running', 1, 1, now(), now(), 'ada')`,
    ...runOf(
      0,
      "status, backtest_id, priority, queued_at",
      `'queued', '${backtest}', 2, now() - interval '3 hours'`
    ),
    ...resting.flatMap((reason, index) => runOf(index + 1, "status, pause_reason", `'paused', '${reason}'`))
  ]),
  { excludeTestServices: true, timeout: "2 minutes" }
)((it) => {
  it.effect(
    "is counted from when a run was queued last, and not of a backtest's, for which nobody waits",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const database = yield* Database
        const here = ProjectId.make(idOf("0", 1))
        const oldest = Effect.gen(function* () {
          const { oldestQueuedSeconds, queuedRuns } = yield* readGauges()
          const { queued } = yield* database.inProject(here, readVitalSigns())
          expect([queued.count, hoursOf(queued.oldestSeconds)]).toEqual([
            queuedRuns,
            hoursOf(oldestQueuedSeconds)
          ])
          return { hours: hoursOf(oldestQueuedSeconds), queuedRuns }
        })
        const become = (status: string, reason: string | null) =>
          database.inProject(
            here,
            orDie(
              sql`update kb.agent_runs set status = ${status}, pause_reason = ${reason} where id = ${theRun}`
            )
          )
        expect(yield* oldest).toEqual({ hours: 2, queuedRuns: 2 })
        yield* become("paused", "question")
        expect(yield* oldest).toEqual({ hours: 0, queuedRuns: 1 })
        yield* become("queued", null)
        expect(yield* oldest).toEqual({ hours: 0, queuedRuns: 2 })
      })
  )

  it.effect("tell of every reason for which a run may rest how many rest for it", () =>
    Effect.map(
      readGauges(),
      ({ budgetRuns, killSwitchRuns, pausedRuns, questionRuns, toolResultRuns, ...others }) => {
        const { stepLimitRuns, subAgentRuns, timeoutRuns } = others
        expect([questionRuns, subAgentRuns, stepLimitRuns, timeoutRuns, budgetRuns, killSwitchRuns]).toEqual([
          1, 0, 2, 1, 1, 1
        ])
        expect(toolResultRuns).toBe(1)
        expect(pausedRuns).toBe(resting.length)
      }
    )
  )
})
