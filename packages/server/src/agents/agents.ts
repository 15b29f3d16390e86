/**
 * Stores the agents of a project: definitions, their versions, and their triggers.
 *
 * Each save is one transaction, so the agent, its new version, the rows that the dispatcher reads and the schedule's next time always
 * agree. Deleting is soft, so runs and log entries keep their agent.
 */
import { createHash } from "node:crypto"
import {
  type Agent,
  type AgentDefinition,
  AgentInput,
  type AgentPatch,
  defineAgent,
  patchAgent
} from "@tropism/domain/agent"
import { definitionOf } from "@tropism/domain/agent-version"
import { findWarnings, type OfferingServer } from "@tropism/domain/agent-warning"
import type { GraphEvent } from "@tropism/domain/graph"
import type { AgentId, ProjectId, UserId } from "@tropism/domain/ids"
import { canonicalJson, textFault } from "@tropism/domain/json"
import { argumentsOf, type McpEventListener } from "@tropism/domain/mcp-event"
import { isAllowedTool, patternedNameOf, type PinnedTool } from "@tropism/domain/mcp-server"
import { builtInServers } from "@tropism/domain/tool-pattern"
import { standsInLine } from "@tropism/domain/waiting"
import { Context, Effect, Layer, Option, Result, Schema } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { brokenUniqueKey, lastId, onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { inTurn } from "../database/fair-row-locks.ts"
import { Ids } from "../ids.ts"
import { agentLimits } from "../limits.ts"
import { Notifier } from "../outbox/notifier.ts"
import { checkDefinition, DefinitionRefused, type Measure } from "./definition-checks.ts"
import { MinScheduleSeconds, nextInstant, readCron } from "./cron-schedules.ts"

/** What a run pins: the definition at one version. */
export interface AgentVersion {
  readonly agentId: AgentId
  readonly version: number
  readonly definition: AgentDefinition
}

/** The origin of a change to an agent. */
export interface RevisionTerms {
  /** The version that the author read; the change is refused when it is not the current one. */
  readonly expectedVersion?: number
  /** The version that the change restores. */
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
    /** Creates a new version when the patch changes anything; undefined when there is no such agent. */
    readonly update: (
      id: AgentId,
      patch: AgentPatch,
      by: UserId,
      terms?: RevisionTerms
    ) => Effect.Effect<Agent | undefined, DefinitionRefused, ProjectTransaction>
    /** Creates a new version by applying a function to the definition. */
    readonly revise: (
      id: AgentId,
      change: (before: AgentDefinition) => AgentDefinition,
      by: UserId,
      terms?: RevisionTerms
    ) => Effect.Effect<Agent | undefined, DefinitionRefused, ProjectTransaction>
    /** Reads what definitions are currently checked against. */
    readonly measure: Read<Measure>
    /** Returns the agents of these names, by name. */
    readonly named: (names: ReadonlyArray<string>) => Read<ReadonlyMap<string, Agent>>
    /** Deletes softly, at any version or at the expected one; its runs and log stay. False when there is no such agent. */
    readonly delete: (
      id: AgentId,
      expectedVersion?: number
    ) => Effect.Effect<boolean, DefinitionRefused, ProjectTransaction>
    readonly get: (id: AgentId) => Read<Agent | undefined>
    readonly list: (before: string | undefined, limit: number) => Read<ReadonlyArray<Agent>>
    readonly version: (id: AgentId, version: number) => Read<AgentVersion | undefined>
    /** Returns a version from the cache, without a query. */
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

      /** Uses the database's clock, as the scheduler does. */
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
        // PostgreSQL rejects text that it cannot store, and no agent has such a name.
        const possible = names.filter((name) => textFault(name) === undefined)
        const rows = yield* select(
          projectId,
          sql`agent.project_id = ${projectId} and agent.deleted_at is null and agent.name = any(${possible}::text[])`
        )
        return new Map(rows.map((row) => [row.name, toAgent(row)]))
      }, orDie)

      // Versions are immutable, so found ones are cached; missing ones are queried again.
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

      /** Stores the version and the rows derived from the definition. */
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

// Writes the rows by which the dispatcher, the scheduler and the external-event poller find an agent.
//
// They are derived from the definition in the transaction that stores it. A schedule whose expression and zone are unchanged keeps its row,
// so that another change loses no time that is due and has not fired yet.

/** The writes of an agent's triggers. */
const makeTriggerRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const notifier = yield* Notifier
  const { clearListening, keepListening } = yield* makeListeningRows

  /** Brings the rows in line with the definition. */
  const keep = Effect.fnUntraced(function* (id: AgentId, definition: AgentDefinition, now: Date) {
    yield* keepReaction(id, definition)
    yield* keepListening(id, definition)
    yield* keepSchedule(id, definition, now)
  })

  const keepReaction = Effect.fnUntraced(function* (id: AgentId, definition: AgentDefinition) {
    const { projectId } = yield* ProjectTransaction
    yield* clearReaction(id, definition.reactionConfig === null || standsInLine(definition.reactionConfig))
    if (!definition.enabled || definition.triggerType !== "reaction" || !definition.reactionConfig) return
    const { objectTypes, relationshipTypes, events } = definition.reactionConfig
    const heard = JSON.stringify([
      ...listening("graphObject", objectTypes),
      ...(relationshipTypes === null ? [] : listening("relationship", relationshipTypes))
    ])
    yield* sql`
      insert into kb.agent_reactions (project_id, entity_type, object_type, event_type, agent_id)
      select distinct ${projectId}::uuid, heard."entityType", heard.type, event_type, ${id}::uuid
      from jsonb_to_recordset(${heard}::text::jsonb) as heard("entityType" text, type text), unnest(${events}::text[]) event_type`
  })

  /**
   * Deletes what the agent listens to. Its waiting entries, also those after the head of their line, are decided again by the current rule;
   * the back-off of a retry stays.
   */
  const clearReaction = Effect.fnUntraced(function* (id: AgentId, isInLine: boolean) {
    yield* sql`delete from kb.agent_reactions where agent_id = ${id}`
    yield* sql`
      update kb.agent_processing_log
      set due_at = case when attempt > 1 then due_at end, parked = parked and ${isInLine}
      where agent_id = ${id} and status = 'pending' and run_id is null
        and ((attempt = 1 and due_at is not null) or (parked and not ${isInLine}))`
    yield* sql.afterCommit(notifier.signal("releases"))
  })

  const keepSchedule = Effect.fnUntraced(function* (id: AgentId, definition: AgentDefinition, now: Date) {
    const { projectId } = yield* ProjectTransaction
    const { cronSchedule, timezone } = definition
    const next = nextFireOf(definition, now)
    if (next === undefined) return yield* sql`delete from kb.agent_schedules where agent_id = ${id}`
    yield* sql`
      delete from kb.agent_schedules where agent_id = ${id} and (cron, timezone) is distinct from (${cronSchedule}, ${timezone})`
    yield* sql`
      insert into kb.agent_schedules (agent_id, project_id, cron, timezone, next_fire_at)
      values (${id}, ${projectId}, ${cronSchedule}, ${timezone}, ${next}) on conflict (agent_id) do nothing`
  })

  /** Removes all triggers of the agent. */
  const clear = Effect.fnUntraced(function* (id: AgentId) {
    yield* clearReaction(id, true)
    yield* clearListening(id)
    yield* sql`delete from kb.agent_schedules where agent_id = ${id}`
  })

  return { keep, clear }
})

/** Returns the types under which the dispatcher finds a listener; an empty list listens to all. */
const listening = (entityType: GraphEvent["entityType"], types: ReadonlyArray<string>) =>
  (types.length === 0 ? ["*"] : types).map((type) => ({ entityType, type }))

const nextFireOf = (definition: AgentDefinition, now: Date): Date | undefined => {
  const { cronSchedule, enabled, timezone, triggerType } = definition
  if (!enabled || triggerType !== "schedule" || cronSchedule === null) return undefined
  return Result.getSuccess(readCron(cronSchedule, timezone)).pipe(
    Option.map((rule) => nextInstant(rule, now)),
    Option.getOrUndefined
  )
}

// Writes the rows by which the poller finds which external events agents listen to.
//
// They are written in the transaction that stores the definition and holds the agent's lock. A source is created when it is first named. A
// source without other listeners starts now: enabling an agent replays nothing, even if the server would still deliver it.

/** The writes of what an agent listens to. */
const makeListeningRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const notifier = yield* Notifier

  /** Brings the rows in line with the definition; unchanged rows keep their start time. */
  const keepListening = Effect.fnUntraced(function* (id: AgentId, definition: AgentDefinition) {
    const { projectId } = yield* ProjectTransaction
    const listened = listenedTo(definition)
    if (listened.length === 0) return yield* clearListening(id)
    const wanted = yield* Effect.forEach(listened, (one) => Effect.map(ids.next, (id) => ({ id, ...one })))
    const rows = JSON.stringify(wanted)
    const row = sql`jsonb_to_recordset(${rows}::text::jsonb) as row(id uuid, server text, name text, arguments jsonb, digest text)`
    yield* sql`
      insert into kb.mcp_event_sources (id, project_id, server_name, name, arguments, arguments_digest)
      select row.id, ${projectId}::uuid, row.server, row.name, row.arguments, row.digest from ${row}
      order by row.server, row.name, row.digest on conflict do nothing`
    // In one order, so that two saves with the same sources cannot deadlock.
    const sources = yield* sql<{ readonly id: string }>`
      select source.id from kb.mcp_event_sources source join ${row}
        on source.server_name = row.server and source.name = row.name and source.arguments_digest = row.digest
      where source.project_id = ${projectId} order by source.id for no key update of source`
    const sourceIds = sources.map((source) => source.id)
    yield* sql`delete from kb.agent_mcp_events where agent_id = ${id} and source_id <> all(${sourceIds}::uuid[])`
    // A source without listeners starts now, and a running request for it loses its claim.
    yield* sql`
      update kb.mcp_event_sources source set due_at = now(), cursor = null, claim_token = null, claimed_until = null,
        failures = 0, failed_since = null, last_fault = null
      where source.id = any(${sourceIds}::uuid[]) and not exists (
        select 1 from kb.agent_mcp_events heard join kb.agents agent on agent.id = heard.agent_id
        where heard.source_id = source.id and agent.enabled and agent.deleted_at is null)`
    yield* sql`
      insert into kb.agent_mcp_events (agent_id, source_id, project_id)
      select ${id}::uuid, source_id, ${projectId}::uuid from unnest(${sourceIds}::uuid[]) as source_id on conflict do nothing`
    yield* sql.afterCommit(notifier.signal("sources"))
  })

  /** Removes the agent as a listener; the poller finds sources without listeners. */
  const clearListening = (id: AgentId) => sql`delete from kb.agent_mcp_events where agent_id = ${id}`

  return { keepListening, clearListening }
})

const listenedTo = ({ enabled, reactionConfig, triggerType }: AgentDefinition) =>
  enabled && triggerType === "reaction" ? (reactionConfig?.mcpEvents ?? []).map(rowOf) : []

const rowOf = (listener: McpEventListener) => ({
  server: listener.server,
  name: listener.name,
  arguments: argumentsOf(listener),
  digest: createHash("sha256")
    .update(canonicalJson(argumentsOf(listener)))
    .digest("hex")
})

// Encodes and decodes the rows of agents.

/** An external server, and its tools that have not changed since they were pinned. */
interface ServerOffer {
  readonly name: string
  readonly isEnabled: boolean
  readonly allowedTools: ReadonlyArray<string>
  readonly tools: ReadonlyArray<Pick<PinnedTool, "name" | "isReadOnly">>
}

interface AgentRow extends Omit<Agent, "nextFireAt" | "warnings" | "createdAt" | "updatedAt"> {
  /** Null when the agent names no external tool. */
  readonly serverOffers: ReadonlyArray<ServerOffer> | null
  readonly nextFireAt: Date | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

const toAgent = (row: AgentRow): Agent => ({
  id: row.id,
  version: row.version,
  name: row.name,
  role: row.role,
  prompt: row.prompt,
  systemPrompt: row.systemPrompt,
  model: row.model,
  flowType: row.flowType,
  steps: row.steps,
  maxIterations: row.maxIterations,
  tools: row.tools,
  triggerType: row.triggerType,
  cronSchedule: row.cronSchedule,
  timezone: row.timezone,
  reactionConfig: row.reactionConfig,
  executionMode: row.executionMode,
  hybridPolicy: row.hybridPolicy,
  capabilities: row.capabilities,
  maxSteps: row.maxSteps,
  defaultTimeoutMs: row.defaultTimeoutMs,
  budget: row.budget,
  subAgents: row.subAgents,
  repeatableTools: row.repeatableTools,
  reducer: row.reducer,
  catchUp: row.catchUp,
  overlapPolicy: row.overlapPolicy,
  retryPolicy: row.retryPolicy,
  reviewPolicy: row.reviewPolicy,
  maxPendingRuns: row.maxPendingRuns,
  disableAfterFailures: row.disableAfterFailures,
  enabled: row.enabled,
  disabledReason: row.disabledReason,
  nextFireAt: row.nextFireAt?.toISOString() ?? null,
  warnings: findWarnings(row, (row.serverOffers ?? []).map(offeringOf)),
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString()
})

const offeringOf = ({ allowedTools, isEnabled, name, tools }: ServerOffer): OfferingServer => {
  const allowed = isEnabled ? tools.filter((tool) => isAllowedTool({ allowedTools }, tool.name)) : []
  const named = (some: ServerOffer["tools"]) => some.map((tool) => patternedNameOf(name, tool.name))
  return { name, tools: named(allowed), acting: named(allowed.filter(({ isReadOnly }) => !isReadOnly)) }
}

/** Selects the external servers of a project as `ServerOffer`s; it depends on no row, so a statement evaluates it at most once. */
const serverOffers = (sql: SqlClient.SqlClient, projectId: ProjectId) => sql`(
  select coalesce(jsonb_agg(jsonb_build_object('name', server.name, 'isEnabled', server.enabled,
    'allowedTools', server.config -> 'allowedTools', 'tools', (
      select coalesce(jsonb_agg(jsonb_build_object('name', tool -> 'name', 'isReadOnly', tool -> 'isReadOnly')), '[]') from jsonb_array_elements(server.tools) tool
      where tool ->> 'changedAt' is null))), '[]')
  from kb.mcp_servers server where server.project_id = ${projectId})`

/** Whether an agent names tools that are not built in. */
const namesForeign = (sql: SqlClient.SqlClient) => {
  const builtIn = `^(${builtInServers.join("|")})[.]`
  return sql`(exists (select from unnest(agent.tools) pattern where pattern !~ ${builtIn})
    or jsonb_path_exists(agent.steps, ${`$[*].tools[*] ? (!(@ like_regex "${builtIn}"))`}::jsonpath))`
}

/** Returns the columns of a definition. */
const columnsOf = (definition: AgentDefinition) => ({
  name: definition.name,
  role: definition.role,
  prompt: definition.prompt,
  systemPrompt: definition.systemPrompt,
  flowType: definition.flowType,
  steps: JSON.stringify(definition.steps),
  maxIterations: definition.maxIterations,
  triggerType: definition.triggerType,
  cronSchedule: definition.cronSchedule,
  timezone: definition.timezone,
  executionMode: definition.executionMode,
  maxSteps: definition.maxSteps,
  defaultTimeoutMs: definition.defaultTimeoutMs,
  budget: json(definition.budget),
  model: json(definition.model),
  reactionConfig: json(definition.reactionConfig),
  hybridPolicy: json(definition.hybridPolicy),
  capabilities: json(definition.capabilities),
  retryPolicy: json(definition.retryPolicy),
  reducer: json(definition.reducer),
  reviewPolicy: json(definition.reviewPolicy)
})

const json = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))

/** Decodes a stored version; a field that did not exist then gets its default. */
export const decodeDefinition = (kept: unknown) =>
  Effect.map(Schema.decodeUnknownEffect(AgentInput)(kept), defineAgent)
