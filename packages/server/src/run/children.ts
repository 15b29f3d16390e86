/**
 * Runs that runs begin: one agent hands a task to another.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Spawning is a tool's effect: the child is queued in the transaction that
 * records the call, and the end of the child brings the call's outcome
 * (`reporting.ts`). The child belongs to the chain of its parent and takes a
 * place there. Whom an agent may spawn stands in the version that its run pins;
 * whether that agent may run is judged now.
 */
import { ContextName } from "@tropism/domain/context-event"
import type { FlowStep } from "@tropism/domain/flow"
import type { AgentId, RunId, ToolCallId } from "@tropism/domain/ids"
import { allows } from "@tropism/domain/tool-pattern"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { inputFieldsOf } from "../agent/template.ts"
import { CrashPoint } from "../crash-point.ts"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { Projects } from "../database/projects.ts"
import { refused } from "../graph/refused.ts"
import { Ids } from "../ids.ts"
import { runLimits } from "../limits.ts"
import type { RunPrincipal } from "../tool/principal.ts"
import { ChildRuns, type SpawnAgent } from "../tool/run-tools.ts"
import { Admission } from "./admission.ts"
import { takePlaces } from "./chain-places.ts"
import { Runs } from "./runs.ts"

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

    /** The agents that could run now, of which a name or pattern of the parent speaks. */
    const spawnable = Effect.fnUntraced(function* ({ subAgents }: Parent) {
      const { projectId } = yield* ProjectTransaction
      const patterns = subAgents.map((pattern) => pattern.replaceAll("_", "\\_").replaceAll("*", "%"))
      return yield* sql<Spawnable>`
        select ${columns} from kb.agents
        where project_id = ${projectId} and deleted_at is null and enabled and name like any(${patterns}::text[])
        order by name limit ${runLimits.spawnableAgents}`
    }, orDie)

    /** The agent of a name, when the parent may spawn it. */
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

    /** Takes a place among the agent's runs and one in the chain, in the order in which a retry, and the end of a run, write to both. */
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

/** What an agent is given: always a task, and as input what its prompts speak of. */
const takesOf = ({ prompt, steps, systemPrompt }: Spawnable) => {
  const fields = inputFieldsOf([prompt, systemPrompt ?? "", ...steps.map((step) => step.prompt)])
  return {
    task: "text",
    ...(fields === undefined ? {} : { input: fields.length === 0 ? "any data" : fields })
  }
}
