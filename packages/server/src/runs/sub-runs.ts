/**
 * Spawns sub-runs: one agent delegates a task to another.
 *
 * Spawning is the effect of a tool: the child is queued in the transaction that records the call, and the end of the child delivers the
 * call's outcome (`completion-and-retry.ts`). The child belongs to its parent's chain and takes a place there. The version that the
 * parent's run pins lists the agents it may spawn; whether such an agent may run is checked now.
 */
import { ContextName } from "@tropism/domain/context-event"
import type { FlowStep } from "@tropism/domain/flow"
import type { AgentId, RunId, ToolCallId, ProjectId } from "@tropism/domain/ids"
import { allows } from "@tropism/domain/tool-pattern"
import { Effect, Layer, Context } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { inputFieldsOf } from "../agents/template.ts"
import { CrashPoint } from "../crash-point.ts"
import { onlyRow, orDie, ProjectTransaction, Database } from "../database/database.ts"
import { refused } from "../graph/change-refused.ts"
import { Ids } from "../ids.ts"
import { runLimits } from "../limits.ts"
import { drive, share, untilNotified, Notifier } from "../outbox/notifier.ts"
import { Projects } from "../tenancy/projects.ts"
import type { RunPrincipal } from "../tools/principal.ts"
import { ChildRuns, type SpawnAgent } from "../tools/run-tools.ts"
import { Admission } from "./admission.ts"
import { RunCancellation } from "./cancellation.ts"
import { takePlaces } from "./chain-caps.ts"
import { Runs } from "./run-store.ts"

/** The run that spawns. */
interface Parent {
  readonly ancestors: ReadonlyArray<RunId>
  /** Names of agents, with * as a wildcard. */
  readonly subAgents: ReadonlyArray<string>
}

/** An agent that may be spawned. */
interface Spawnable {
  readonly id: AgentId
  readonly version: number
  readonly name: string
  readonly role: string | null
  readonly prompt: string
  readonly systemPrompt: string | null
  readonly steps: ReadonlyArray<FlowStep>
}

export const childRuns = Layer.effect(
  ChildRuns,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const runs = yield* Runs
    const admission = yield* Admission
    const projects = yield* Projects
    const ids = yield* Ids

    const columns = sql.literal("id, version, name, role, prompt, system_prompt, steps")

    const parentOf = Effect.fnUntraced(function* ({ runId }: RunPrincipal) {
      const { projectId } = yield* ProjectTransaction
      return yield* Effect.flatMap(
        sql<Parent>`
          select run.ancestors, coalesce(version.definition -> 'subAgents', '[]') as sub_agents from kb.agent_runs run
          join kb.agent_versions version on version.agent_id = run.agent_id and version.version = run.agent_version
          where run.id = ${runId} and run.project_id = ${projectId}`,
        onlyRow
      )
    }, orDie)

    /** Selects the agents that could run now and match a name or pattern of the parent. */
    const spawnable = Effect.fnUntraced(function* ({ subAgents }: Parent) {
      const { projectId } = yield* ProjectTransaction
      const patterns = subAgents.map((pattern) => pattern.replaceAll("_", "\\_").replaceAll("*", "%"))
      return yield* sql<Spawnable>`
        select ${columns} from kb.agents
        where project_id = ${projectId} and deleted_at is null and enabled and name like any(${patterns}::text[])
        order by name limit ${runLimits.spawnableAgents}`
    }, orDie)

    /** Returns the agent with this name, if the parent may spawn it. */
    const findAgent = Effect.fnUntraced(function* (parent: Parent, name: string) {
      const { projectId } = yield* ProjectTransaction
      if (!allows(parent.subAgents, name)) return undefined
      const [agent] = yield* sql<Spawnable>`
        select ${columns} from kb.agents
        where project_id = ${projectId} and deleted_at is null and enabled and name = ${name}`
      return agent
    }, orDie)

    const refuseAgent = Effect.fnUntraced(function* (parent: Parent, name: string) {
      const names = (yield* spawnable(parent)).map((agent) => agent.name).join(", ")
      return yield* refused(
        "notPermitted",
        `There is no agent ${name} that you may hand tasks to. ${names === "" ? "There is none at all now." : `You may hand them to: ${names}.`}`,
        "/agent"
      )
    })

    /** Takes a place among the agent's runs and one in the chain, in the lock order of a retry and of a run's end. */
    const takePlace = Effect.fnUntraced(function* (agent: Spawnable, { rootEventId }: RunPrincipal) {
      yield* Effect.catchTag(admission.places(agent.id), "TriggerRefused", ({ detail }) =>
        refused("notPermitted", detail)
      )
      const [caps] = yield* takePlaces([[rootEventId]]).pipe(
        Effect.provideService(SqlClient.SqlClient, sql),
        Effect.provideService(Projects, projects)
      )
      const cap = caps?.get(rootEventId)
      if (cap) return yield* refused("notPermitted", cap.reason)
    })

    const spawn = Effect.fn("ChildRuns.spawn")(function* (
      { agent: name, input, task, timeoutMs }: typeof SpawnAgent.Type,
      principal: RunPrincipal,
      callId: ToolCallId
    ) {
      const parent = yield* parentOf(principal)
      if (parent.ancestors.length >= runLimits.spawnMaxDepth)
        return yield* refused(
          "notPermitted",
          `You were handed this task over ${parent.ancestors.length} agents, and nobody hands one on further: do it yourself.`
        )
      const agent = yield* findAgent(parent, name)
      if (!agent) return yield* refuseAgent(parent, name)
      yield* takePlace(agent, principal)
      const id = (yield* ids.next) as RunId
      yield* runs.queue([
        {
          id,
          agentId: agent.id,
          agentVersion: agent.version,
          trigger: {
            type: "agent",
            input: { task, ...(input === undefined || input === null ? {} : { input }) }
          },
          contextName: ContextName.make(`run-${id}`),
          rootEventId: principal.rootEventId,
          depth: principal.depth,
          userId: principal.userId,
          dueAt: null,
          spawn: {
            parentRunId: principal.runId,
            spawnedBy: callId,
            ancestors: [...parent.ancestors, principal.runId],
            limits: typeof timeoutMs === "number" ? { timeoutMs } : {}
          }
        }
      ])
      yield* CrashPoint.hit("run.afterSpawn")
      return {
        result: { runId: id, agent: agent.name, status: "queued" },
        decision: null,
        reads: [],
        waitsFor: "run" as const
      }
    })

    const list = Effect.fn("ChildRuns.list")(function* (principal: RunPrincipal) {
      const found = yield* spawnable(yield* parentOf(principal))
      const agents = found.map((agent) => ({ name: agent.name, role: agent.role, takes: takesOf(agent) }))
      return { result: { agents }, decision: null, reads: [] }
    })

    return ChildRuns.of({ spawn, list })
  })
)

/** Returns what an agent accepts: always a task, and as input the fields that its prompts use. */
const takesOf = ({ prompt, steps, systemPrompt }: Spawnable) => {
  const fields = inputFieldsOf([prompt, systemPrompt ?? "", ...steps.map((step) => step.prompt)])
  return {
    task: "text",
    ...(fields === undefined ? {} : { input: fields.length === 0 ? "any data" : fields })
  }
}

// Cancels sub-runs that are no longer wanted and pauses those whose time is over.
//
// A sub-run is unwanted when its parent was cancelled or has failed, when a run above a completed parent was or has, or when the call that
// spawned it was abandoned. One that is paused at a limit outlives a parent that used its partial result. Each is cancelled in its own
// transaction, after the one that made it unwanted, so no child is locked while a parent is locked. A cancelled run spawns no more, so the
// search repeats until it finds none.
//
// A crash in between loses nothing, because a loop searches again: every second for active runs, and less often for those paused at a
// limit. The same loop pauses runs past their deadline and grace period, whose worker is dead, hangs or waits too long.

interface Unwanted {
  readonly id: RunId
  readonly contextName: string
  readonly because: string
}

export class Descendants extends Context.Service<
  Descendants,
  {
    /** Cancels every live unwanted run below a run and returns their number; none of them can write afterwards. */
    readonly cancelBelow: (projectId: ProjectId, runId: RunId) => Effect.Effect<number>
    /** Cancels unwanted runs of any project that are paused at a limit and returns their number. */
    readonly cancelResting: Effect.Effect<number>
    /**
     * Cancels unwanted runs, pauses those past their grace period, and queues runs that wait for others past their deadline, until
     * interrupted.
     */
    readonly run: Effect.Effect<never>
  }
>()("@tropism/server/run/Descendants") {
  static readonly layer = Layer.effect(
    Descendants,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const endings = yield* RunCancellation
      const notifier = yield* Notifier

      const unwanted = Effect.fnUntraced(function* (where: Statement.Fragment) {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<Unwanted>`
          select child.id, child.context_name, case
            when parent.status = 'cancelled' then 'The run that spawned it was cancelled'
            when parent.status = 'failed' then 'The run that spawned it failed'
            when call.status = 'abandoned' then 'The run that spawned it does not wait for it any more'
            else 'A run above the one that spawned it was cancelled or failed' end as because
          from kb.agent_runs child
          join kb.agent_runs parent on parent.id = child.parent_run_id
          left join kb.tool_calls call on call.id = child.spawned_by
          where child.project_id = ${projectId} and child.parent_run_id is not null and ${where}
            and child.status in ('queued', 'running', 'paused')
            and (parent.status in ('cancelled', 'failed') or call.status = 'abandoned'
              or parent.status = 'completed' and exists (
                select from kb.agent_runs above where above.id = any(child.ancestors) and above.status in ('cancelled', 'failed')))
          order by child.id limit ${runLimits.cancelBatchRuns}`
      }, orDie)

      /** A run that has ended meanwhile is skipped. */
      const cancel = (projectId: ProjectId, run: Unwanted) =>
        database.inProject(
          projectId,
          Effect.catchTag(endings.cancel(run, { because: run.because }), "RunNotInState", () => Effect.void)
        )

      /** Searches and cancels until none is found: each round may make the runs below unwanted. */
      const cancelWhile = Effect.fnUntraced(function* (projectId: ProjectId, where: Statement.Fragment) {
        const cancelled = new Set<RunId>()
        while (true) {
          const found = yield* database.inProject(projectId, unwanted(where))
          if (found.length === 0) return cancelled.size
          for (const run of found) {
            yield* cancel(projectId, run)
            cancelled.add(run.id)
          }
        }
      })

      const cancelBelow = Effect.fn("Descendants.cancelBelow")((projectId: ProjectId, runId: RunId) =>
        cancelWhile(
          projectId,
          sql`child.id in (
            with recursive below(id) as (
              select id from kb.agent_runs where parent_run_id = ${runId}
              union all select lower.id from below join kb.agent_runs lower on lower.parent_run_id = below.id
            ) select id from below)`
        )
      )

      /** Their deciders then find that the time is up and refuse the waiting calls. */
      const queueOverdue = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql`
          update kb.agent_runs set status = 'queued', pause_reason = null
          where project_id = ${projectId} and status = 'paused' and pause_reason = 'subAgents' and deadline_at < now() returning id`
        if (rows.length > 0) yield* sql.afterCommit(notifier.signal("runs"))
        return rows.length
      }).pipe(orDie)

      const follow = Effect.fnUntraced(function* (projectId: ProjectId) {
        const overdue = yield* database.inProject(projectId, queueOverdue)
        const timedOut = yield* endings.timeOut(projectId)
        return overdue + timedOut + (yield* cancelWhile(projectId, sql`true`))
      })

      const round = Effect.gen(function* () {
        const due = yield* orDie(
          sql<{ projectId: ProjectId }>`select project_id from kb.projects_with_due_waits() as project_id`
        )
        let followed = 0
        for (const { projectId } of due) followed += yield* share("Waits", projectId, follow(projectId))
        if (followed > 0)
          yield* Effect.logInfo(`${followed} runs had used their time, or were wanted by no run above them`)
        return false
      })

      const cancelResting = Effect.gen(function* () {
        const found = yield* orDie(
          sql<{
            projectId: ProjectId
          }>`select project_id from kb.projects_with_unwanted_rests() as project_id`
        )
        const counts = yield* Effect.forEach(found, ({ projectId }) =>
          share("Unwanted runs", projectId, cancelWhile(projectId, sql`true`))
        )
        return counts.reduce((sum, count) => sum + count, 0)
      })

      return Descendants.of({
        cancelBelow,
        cancelResting,
        run: drive("Waits", "waits", untilNotified, round).pipe(Effect.provideService(Notifier, notifier))
      })
    })
  )
}
