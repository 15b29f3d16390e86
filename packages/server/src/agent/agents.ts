/**
 * The agents of a project: definitions, their versions, and their triggers.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * Each save is one transaction: the agent, its new version, the rows by which
 * the dispatcher finds it and the next fire of its schedule agree at any moment.
 * Deleting is soft, so runs and log entries keep their agent.
 */
import type { Agent, AgentDefinition, AgentInput, AgentPatch } from "@tropism/domain/agent"
import { defineAgent, patchAgent } from "@tropism/domain/agent"
import { definitionOf } from "@tropism/domain/agent-version"
import type { AgentId, ProjectId, UserId } from "@tropism/domain/ids"
import { canonicalJson, textFault } from "@tropism/domain/json"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { brokenUniqueKey, lastId, onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { inTurn } from "../database/turns.ts"
import { Ids } from "../ids.ts"
import { agentLimits } from "../limits.ts"
import { checkDefinition, DefinitionRefused, type Measure } from "./checked-definition.ts"
import {
  type AgentRow,
  columnsOf,
  decodeDefinition,
  namesForeign,
  offeringOf,
  type ServerOffer,
  serverOffers,
  toAgent
} from "./rows.ts"
import { MinScheduleSeconds } from "./schedule.ts"
import { makeTriggerRows } from "./trigger-rows.ts"

/** What a run pins: the definition at one version. */
export interface AgentVersion {
  readonly agentId: AgentId
  readonly version: number
  readonly definition: AgentDefinition
}

/** Where a change of an agent comes from. */
export interface RevisionTerms {
  /** The version that the author read; another present one is refused. */
  readonly expectedVersion?: number
  /** The version that the change goes back to. */
  readonly restoredFrom?: number
}

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export class Agents extends Context.Service<
  Agents,
  {
    readonly create: (
      input: AgentInput,
      by: UserId
    ) => Effect.Effect<Agent, DefinitionRefused, ProjectTransaction>
    /** Makes a new version when the patch changes anything; undefined when there is no such agent. */
    readonly update: (
      id: AgentId,
      patch: AgentPatch,
      by: UserId,
      terms?: RevisionTerms
    ) => Effect.Effect<Agent | undefined, DefinitionRefused, ProjectTransaction>
    /** Makes a new version of what a change makes of the definition. */
    readonly revise: (
      id: AgentId,
      change: (before: AgentDefinition) => AgentDefinition,
      by: UserId,
      terms?: RevisionTerms
    ) => Effect.Effect<Agent | undefined, DefinitionRefused, ProjectTransaction>
    /** What definitions are judged against at this moment. */
    readonly measure: Read<Measure>
    /** The agents of these names, by name. */
    readonly named: (names: ReadonlyArray<string>) => Read<ReadonlyMap<string, Agent>>
    /** Deletes softly, at any version or at the one expected; its runs and log stay. False when there is no such agent. */
    readonly delete: (
      id: AgentId,
      expectedVersion?: number
    ) => Effect.Effect<boolean, DefinitionRefused, ProjectTransaction>
    readonly get: (id: AgentId) => Read<Agent | undefined>
    readonly list: (before: string | undefined, limit: number) => Read<ReadonlyArray<Agent>>
    readonly version: (id: AgentId, version: number) => Read<AgentVersion | undefined>
    /** A version that this program has read before, without a question. */
    readonly remembered: (projectId: ProjectId, id: AgentId, version: number) => AgentVersion | undefined
  }
>()("@tropism/server/agent/Agents") {
  static readonly layer = Layer.effect(
    Agents,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const minScheduleSeconds = yield* MinScheduleSeconds
      const triggers = yield* makeTriggerRows

      /** The clock is the database's, as the scheduler's is. */
      const measure = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        const { now, offers, servers } = yield* Effect.flatMap(
          sql<Pick<Measure, "now" | "servers"> & { readonly offers: ReadonlyArray<ServerOffer> }>`
            select now() as now, coalesce((
              select jsonb_agg(jsonb_build_object('name', name, 'allowedEvents', coalesce(config -> 'allowedEvents', '[]')) order by name)
              from kb.mcp_servers where project_id = ${projectId}), '[]') as servers, ${serverOffers(sql, projectId)} as offers`,
          onlyRow
        )
        return { now, minScheduleSeconds, servers, offering: offers.map(offeringOf) } satisfies Measure
      }).pipe(orDie)

      const select = (projectId: ProjectId, where: Statement.Fragment) => sql<AgentRow>`
        select agent.*, schedule.next_fire_at, case when ${namesForeign(sql)} then ${serverOffers(sql, projectId)} end as server_offers
        from kb.agents agent
        left join kb.agent_schedules schedule on schedule.agent_id = agent.id where ${where}`

      const get = Effect.fn("Agents.get")(function* (id: AgentId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* select(
          projectId,
          sql`agent.id = ${id} and agent.project_id = ${projectId} and agent.deleted_at is null`
        )
        return row && toAgent(row)
      }, orDie)

      const list = Effect.fn("Agents.list")(function* (before: string | undefined, limit: number) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* select(
          projectId,
          sql`agent.project_id = ${projectId} and agent.deleted_at is null and agent.id < ${before ?? lastId}
            order by agent.id desc limit ${limit}`
        )
        return rows.map(toAgent)
      }, orDie)

      const named = Effect.fn("Agents.named")(function* (names: ReadonlyArray<string>) {
        const { projectId } = yield* ProjectTransaction
        // PostgreSQL compares with no text that it could not keep, and no agent has such a name.
        const possible = names.filter((name) => textFault(name) === undefined)
        const rows = yield* select(
          projectId,
          sql`agent.project_id = ${projectId} and agent.deleted_at is null and agent.name = any(${possible}::text[])`
        )
        return new Map(rows.map((row) => [row.name, toAgent(row)]))
      }, orDie)

      // A version never changes once it is kept; what is found is remembered, what is missing is asked for again.
      const versions = new Map<string, AgentVersion>()

      const remembered = (projectId: ProjectId, id: AgentId, number: number) =>
        versions.get(versionKey(projectId, id, number))

      const version = Effect.fn("Agents.version")(function* (id: AgentId, number: number) {
        const { projectId } = yield* ProjectTransaction
        const known = remembered(projectId, id, number)
        if (known) return known
        const [row] = yield* sql<{ definition: unknown }>`
          select definition from kb.agent_versions where agent_id = ${id} and version = ${number} and project_id = ${projectId}`
        if (!row) return undefined
        const definition = yield* Effect.orDie(decodeDefinition(row.definition))
        const found: AgentVersion = { agentId: id, version: number, definition }
        const [oldest] = versions.keys()
        if (versions.size >= agentLimits.rememberedVersions && oldest !== undefined) versions.delete(oldest)
        versions.set(versionKey(projectId, id, number), found)
        return found
      }, orDie)

      /** Keeps the version and what follows from the definition. */
      const keepVersion = Effect.fnUntraced(function* (
        id: AgentId,
        number: number,
        definition: AgentDefinition,
        origin: { readonly by: UserId; readonly now: Date; readonly restoredFrom?: number | undefined }
      ) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`
          insert into kb.agent_versions (agent_id, version, project_id, definition, created_by, restored_from)
          values (${id}, ${number}, ${projectId}, ${JSON.stringify(definition)}::text::jsonb, ${origin.by}, ${origin.restoredFrom ?? null})`
        yield* triggers.keep(id, definition, origin.now)
      })

      const create = Effect.fn("Agents.create")(function* (input: AgentInput, by: UserId) {
        const { projectId } = yield* ProjectTransaction
        const against = yield* measure
        const definition = yield* checkDefinition(defineAgent(input), undefined, against)
        const id = (yield* ids.next) as AgentId
        const c = columnsOf(definition)
        const [row] = yield* sql`
          insert into kb.agents (id, project_id, name, version, role, prompt, system_prompt, model, flow_type, tools, trigger_type, cron_schedule,
            timezone, reaction_config, execution_mode, hybrid_policy, capabilities, max_steps, catch_up, overlap_policy, retry_policy, review_policy,
            max_pending_runs, disable_after_failures, enabled, steps, max_iterations, default_timeout_ms, budget, sub_agents,
            repeatable_tools, reducer, enabled_at)
          values (${id}, ${projectId}, ${c.name}, 1, ${c.role}, ${c.prompt}, ${c.systemPrompt}, ${c.model}::text::jsonb, ${c.flowType},
            ${definition.tools}::text[], ${c.triggerType}, ${c.cronSchedule}, ${c.timezone}, ${c.reactionConfig}::text::jsonb, ${c.executionMode},
            ${c.hybridPolicy}::text::jsonb, ${c.capabilities}::text::jsonb, ${c.maxSteps}, ${definition.catchUp}, ${definition.overlapPolicy},
            ${c.retryPolicy}::text::jsonb, ${c.reviewPolicy}::text::jsonb, ${definition.maxPendingRuns}, ${definition.disableAfterFailures}, ${definition.enabled},
            ${c.steps}::text::jsonb, ${c.maxIterations}, ${c.defaultTimeoutMs}, ${c.budget}::text::jsonb, ${definition.subAgents}::text[],
            ${definition.repeatableTools}::text[], ${c.reducer}::text::jsonb, case when ${definition.enabled} then now() end)
          on conflict (project_id, name) where deleted_at is null do nothing returning id`
        if (!row) return yield* nameTaken(c.name)
        yield* keepVersion(id, 1, definition, { by, now: against.now })
        return yield* Effect.flatMap(get(id), (agent) => onlyRow(agent ? [agent] : []))
      }, orDie)

      const revise = Effect.fn("Agents.revise")(function* (
        id: AgentId,
        change: (before: AgentDefinition) => AgentDefinition,
        by: UserId,
        { expectedVersion, restoredFrom }: RevisionTerms = {}
      ) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`
          select 1 from kb.agents where id = any(${inTurn(sql, "agent", sql`select ${id}::uuid`, "alone")}) and project_id = ${projectId} for no key update`
        const current = yield* get(id)
        if (!current) return undefined
        if (expectedVersion !== undefined && expectedVersion !== current.version)
          return yield* wrongVersion(expectedVersion, current.version)
        const before = definitionOf(current)
        const against = yield* measure
        const definition = yield* checkDefinition(change(before), before, against)
        if (canonicalJson(before) === canonicalJson(definition)) return current
        const c = columnsOf(definition)
        yield* sql`
          update kb.agents set name = ${c.name}, version = version + 1, role = ${c.role}, prompt = ${c.prompt}, system_prompt = ${c.systemPrompt},
            model = ${c.model}::text::jsonb, flow_type = ${c.flowType}, tools = ${definition.tools}::text[], trigger_type = ${c.triggerType},
            cron_schedule = ${c.cronSchedule}, timezone = ${c.timezone}, reaction_config = ${c.reactionConfig}::text::jsonb,
            execution_mode = ${c.executionMode}, hybrid_policy = ${c.hybridPolicy}::text::jsonb, capabilities = ${c.capabilities}::text::jsonb,
            steps = ${c.steps}::text::jsonb, max_iterations = ${c.maxIterations}, default_timeout_ms = ${c.defaultTimeoutMs},
            budget = ${c.budget}::text::jsonb, sub_agents = ${definition.subAgents}::text[], repeatable_tools = ${definition.repeatableTools}::text[],
            reducer = ${c.reducer}::text::jsonb,
            max_steps = ${c.maxSteps}, catch_up = ${definition.catchUp}, overlap_policy = ${definition.overlapPolicy},
            retry_policy = ${c.retryPolicy}::text::jsonb, review_policy = ${c.reviewPolicy}::text::jsonb, max_pending_runs = ${definition.maxPendingRuns},
            disable_after_failures = ${definition.disableAfterFailures}, disabled_reason = case when ${definition.enabled} then null else disabled_reason end,
            consecutive_failures = case when ${definition.enabled} and not enabled then 0 else consecutive_failures end,
            enabled_at = case when not ${definition.enabled} then null when enabled then enabled_at else now() end,
            enabled = ${definition.enabled}, updated_at = now()
          where id = ${id}`.pipe(
          Effect.catchIf(
            (error) => brokenUniqueKey(error) === "agents_name",
            () => nameTaken(definition.name)
          )
        )
        yield* keepVersion(id, current.version + 1, definition, { by, now: against.now, restoredFrom })
        return yield* get(id)
      }, orDie)

      const update = (id: AgentId, patch: AgentPatch, by: UserId, terms?: RevisionTerms) =>
        revise(id, (before) => patchAgent(before, patch), by, terms)

      const remove = Effect.fn("Agents.delete")(function* (id: AgentId, expectedVersion?: number) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql`
          update kb.agents set deleted_at = now(), enabled = false, updated_at = now()
          where id = any(${inTurn(sql, "agent", sql`select ${id}::uuid`, "alone")}) and project_id = ${projectId} and deleted_at is null
            and version = coalesce(${expectedVersion ?? null}::bigint, version) returning id`
        if (!row) {
          const there = expectedVersion === undefined ? undefined : yield* get(id)
          return there === undefined ? false : yield* wrongVersion(expectedVersion, there.version)
        }
        yield* triggers.clear(id)
        return true
      }, orDie)

      return Agents.of({
        create,
        update,
        revise,
        measure,
        delete: remove,
        get,
        named,
        list,
        version,
        remembered
      })
    })
  )
}

const versionKey = (projectId: ProjectId, id: AgentId, version: number): string =>
  `${projectId}/${id}@${version}`

const nameTaken = (name: string) =>
  new DefinitionRefused({
    reason: "nameTaken",
    pointer: "/name",
    detail: `There is already an agent named ${name}`
  })

const wrongVersion = (expected: number | undefined, current: number) =>
  new DefinitionRefused({
    reason: "version",
    pointer: "/expectedVersion",
    detail: `The agent is at version ${current}, not ${expected}: read it again`
  })
