/**
 * How long the oldest queued run waits, where kill switches hold some of the queue.
 *
 * The owner of the database writes the queue, and no loop is at work that would take it.
 */
import { expect, layer } from "@effect/vitest"
import { ProjectId, UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { readGauges } from "../src/database/gauges.ts"
import { KillSwitches } from "../src/run/kill-switches.ts"
import { filledBy } from "../testing/filled-database.ts"

const idOf = (kind: string, project: number): string => `01990000-0000-7${kind}00-8000-00000000000${project}`

/** A project with one queued run that was made so long ago. */
const projectOf = (project: number, age: string) => {
  const [id, agent, run] = ["0", "a", "f"].map((kind) => `'${idOf(kind, project)}'`)
  return [
    `insert into kb.projects (id, name, created_by) values (${id}, 'x', 'ada')`,
    `insert into kb.agents (id, project_id, name, version, prompt, flow_type, tools, trigger_type, timezone, execution_mode, enabled, reaction_config)
      values (${agent}, ${id}, 'helper', 1, '', 'single', '{}', 'manual', 'UTC', 'execute', true, '{}')`,
    `insert into kb.agent_versions (agent_id, version, project_id, definition, created_by)
      values (${agent}, 1, ${id}, '{"defaultTimeoutMs": 1000}', 'ada')`,
    `insert into kb.contexts (project_id, name, agent_id) values (${id}, 'run-1', ${agent})`,
    `insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, trigger, context_name, depth, created_at)
      values (${run}, ${id}, ${agent}, 1, 'queued', '{"type": "manual"}', 'run-1', 0, now() - interval '${age}')`
  ]
}

layer(filledBy([...projectOf(1, "2 hours"), ...projectOf(2, "1 hour")]), {
  excludeTestServices: true,
  timeout: "2 minutes"
})((it) => {
  it.effect("is told of what nobody holds: a project's switch excuses its own runs, the server's all", () =>
    Effect.gen(function* () {
      const switches = yield* KillSwitches
      const oldest = Effect.map(readGauges(), ({ oldestQueuedSeconds, queuedRuns }) => ({
        hours: Math.floor(oldestQueuedSeconds / 3_600),
        queuedRuns
      }))
      const hold = (projectId: ProjectId | null) => switches.stop(projectId, "Stop", UserId.make("ada"))
      expect(yield* oldest).toEqual({ hours: 2, queuedRuns: 2 })
      yield* hold(ProjectId.make(idOf("0", 1)))
      expect(yield* oldest).toEqual({ hours: 1, queuedRuns: 2 })
      yield* hold(null)
      expect(yield* oldest).toEqual({ hours: 0, queuedRuns: 2 })
    })
  )
})
