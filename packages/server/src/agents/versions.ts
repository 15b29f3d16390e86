/**
 * Applies definitions to agents by name: all of them or none.
 *
 * Everything is checked before anything is written, and every error is reported. Unchanged agents are left alone, so applying twice creates
 * no second version. A field that a definition omits gets its default, with two exceptions: an omitted `enabled` does not override a
 * person's choice, and an agent without tools gets none from such a file.
 */
import { type Agent, type AgentDefinition, type AgentInput, defineAgent } from "@tropism/domain/agent"
import {
  type AppliedAgent,
  type ApplyInput,
  definitionOf,
  leanAgent,
  type AgentVersionDiff,
  type AgentVersionRecord,
  type AgentVersionSummary
} from "@tropism/domain/agent-version"
import { findWarnings } from "@tropism/domain/agent-warning"
import type { AgentId, UserId } from "@tropism/domain/ids"
import { pointerStep } from "@tropism/domain/json"
import { diffJson } from "@tropism/domain/json-diff"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { inTurn } from "../database/fair-row-locks.ts"
import { Agents, decodeDefinition } from "./agents.ts"
import { checkDefinition, DefinitionRefused } from "./definition-checks.ts"

/** Some definitions are invalid; each error has its pointer in the request. */
export class DeclarationsRefused extends Schema.TaggedError<DeclarationsRefused>()("DeclarationsRefused", {
  faults: Schema.Array(Schema.Struct({ pointer: Schema.String, message: Schema.String }))
}) {}

/** One definition, with the agent that has its name. */
interface Plan {
  readonly definition: AgentDefinition
  readonly agent: Agent | undefined
  readonly told: AppliedAgent
}

interface Leftover {
  readonly id: AgentId
  readonly name: string
  readonly version: number
}

export class Declarations extends Context.Service<
  Declarations,
  {
    /** Returns the outcome for each agent, in the order of the request, followed by those that it leaves out. */
    readonly apply: (
      input: ApplyInput,
      by: UserId
    ) => Effect.Effect<
      ReadonlyArray<AppliedAgent>,
      DeclarationsRefused | DefinitionRefused,
      ProjectTransaction
    >
  }
>()("@tropism/server/agent/Declarations") {
  static readonly layer = Layer.effect(
    Declarations,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const agents = yield* Agents

      /**
       * Serializes applies in a project, because two that name the same agents could deadlock, and locks these agents between reading and
       * writing.
       */
      const alone = Effect.fnUntraced(function* (inputs: ReadonlyArray<AgentInput>) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`select pg_advisory_xact_lock(hashtextextended(${`tropism.apply ${projectId}`}, 0))`
        const named = sql`
          select id from kb.agents where project_id = ${projectId} and deleted_at is null
            and name = any(${inputs.map(({ name }) => name)}::text[])`
        yield* sql`
          select 1 from kb.agents where id = any(${inTurn(sql, "agent", named, "alone")}) order by id for no key update`
      })

      const plan = Effect.fnUntraced(function* (inputs: ReadonlyArray<AgentInput>) {
        const measure = yield* agents.measure
        const existing = yield* agents.named(inputs.map(({ name }) => name))
        const faults = findTwice(inputs)
        const plans: Array<Plan> = []
        for (const [index, input] of inputs.entries()) {
          const agent = existing.get(input.name)
          const before = agent && definitionOf(agent)
          const wanted = defineAgent({
            ...input,
            enabled: input.enabled ?? before?.enabled,
            tools: input.tools ?? (before?.tools.length === 0 ? [] : undefined)
          })
          yield* Effect.match(checkDefinition(wanted, before, measure), {
            onFailure: ({ detail, pointer }) =>
              faults.push({ pointer: `/agents${pointerStep(index)}${pointer}`, message: detail }),
            onSuccess: (definition) =>
              plans.push({
                definition,
                agent,
                told: tell(definition, agent, findWarnings(definition, measure.offering))
              })
          })
        }
        if (faults.length > 0) return yield* new DeclarationsRefused({ faults })
        return plans
      })

      /** Returns agents that were applied before and that these definitions leave out. */
      const leftovers = Effect.fnUntraced(function* (inputs: ReadonlyArray<AgentInput>) {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<Leftover>`
          select id, name, version from kb.agents where project_id = ${projectId} and deleted_at is null and applied
            and name <> all(${inputs.map(({ name }) => name)}::text[]) order by name`
      })

      const perform = Effect.fnUntraced(function* ({ agent, definition, told }: Plan, by: UserId) {
        if (told.outcome === "unchanged") return told
        const kept = agent
          ? yield* agents.revise(agent.id, () => definition, by)
          : yield* agents.create(definition, by)
        return kept ? { ...told, id: kept.id, version: kept.version } : told
      })

      const apply = Effect.fn("Declarations.apply")(function* (input: ApplyInput, by: UserId) {
        const { projectId } = yield* ProjectTransaction
        if (input.dryRun !== true) yield* alone(input.agents)
        const plans = yield* plan(input.agents)
        const left = input.prune === true ? yield* leftovers(input.agents) : []
        const deleted = left.map(({ id, name, version }): AppliedAgent => ({
          name,
          outcome: "deleted",
          id,
          version,
          changes: [],
          warnings: []
        }))
        if (input.dryRun === true) return [...plans.map(({ told }) => told), ...deleted]
        const applied = yield* Effect.forEach(plans, (each) => perform(each, by))
        yield* Effect.forEach(left, ({ id }) => agents.delete(id))
        yield* sql`
          update kb.agents set applied = true where project_id = ${projectId} and not applied and deleted_at is null
            and name = any(${input.agents.map(({ name }) => name)}::text[])`
        return [...applied, ...deleted]
      }, orDie)

      return Declarations.of({ apply })
    })
  )
}

const findTwice = (inputs: ReadonlyArray<AgentInput>) => {
  const seen = new Set<string>()
  return inputs.flatMap(({ name }, index) => {
    const isTwice = seen.has(name)
    seen.add(name)
    return isTwice
      ? [
          {
            pointer: `/agents${pointerStep(index)}/name`,
            message: `The agent "${name}" is defined twice here`
          }
        ]
      : []
  })
}

/** Returns the changes to an agent; for a new one, those from the default. */
const tell = (
  definition: AgentDefinition,
  agent: Agent | undefined,
  warnings: AppliedAgent["warnings"]
): AppliedAgent => {
  const { name } = definition
  if (agent === undefined) {
    const changes = diffJson({}, leanAgent(definition))
    return { name, outcome: "created", id: null, version: 1, changes, warnings }
  }
  const changes = diffJson(definitionOf(agent), definition)
  return changes.length === 0
    ? { name, outcome: "unchanged", id: agent.id, version: agent.version, changes, warnings }
    : { name, outcome: "updated", id: agent.id, version: agent.version + 1, changes, warnings }
}

// Lists the versions of agents, their differences, and restores them.
//
// Versions are immutable. Restoring creates a new version, so runs always find the version that they pin.

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export class Versions extends Context.Service<
  Versions,
  {
    /** Returns the versions of an agent before one, newest first. */
    readonly list: (
      id: AgentId,
      before: number | undefined,
      limit: number
    ) => Read<ReadonlyArray<AgentVersionSummary>>
    readonly get: (id: AgentId, version: number) => Read<AgentVersionRecord | undefined>
    /** Returns the differences between two versions; undefined when one of them does not exist. */
    readonly diff: (id: AgentId, from: number | undefined, to: number) => Read<AgentVersionDiff | undefined>
    /** Restores an agent's version; undefined when there is none. */
    readonly restore: (
      id: AgentId,
      version: number,
      by: UserId,
      expectedVersion?: number
    ) => Effect.Effect<Agent | undefined, DefinitionRefused, ProjectTransaction>
  }
>()("@tropism/server/agent/Versions") {
  static readonly layer = Layer.effect(
    Versions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const agents = yield* Agents

      const read = Effect.fnUntraced(function* (id: AgentId, before: number, limit: number) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<VersionRow>`
          select version, definition, created_by, created_at, restored_from from kb.agent_versions
          where agent_id = ${id} and project_id = ${projectId} and version < ${before} order by version desc limit ${limit}`
        return yield* Effect.forEach(rows, (row) => toRecord(id, row))
      }, orDie)

      const get = Effect.fn("Versions.get")(function* (id: AgentId, version: number) {
        const [record] = yield* read(id, version + 1, 1)
        return record?.version === version ? record : undefined
      })

      const list = Effect.fn("Versions.list")(function* (
        id: AgentId,
        before: number | undefined,
        limit: number
      ) {
        // Reads one more than the limit, because each version is compared with the one before it.
        const records = yield* read(id, before ?? newest, limit + 1)
        return records.slice(0, limit).map((record, index) => summaryOf(record, records[index + 1]))
      })

      const diff = Effect.fn("Versions.diff")(function* (id: AgentId, from: number | undefined, to: number) {
        const after = yield* get(id, to)
        const start = from ?? (to > 1 ? to - 1 : undefined)
        const before = start === undefined ? undefined : yield* get(id, start)
        if (after === undefined || (start !== undefined && before === undefined)) return undefined
        const found: AgentVersionDiff = {
          agentId: id,
          from: start ?? null,
          to,
          changes: diffJson(before?.definition ?? {}, after.definition)
        }
        return found
      })

      const restore = Effect.fn("Versions.restore")(function* (
        id: AgentId,
        version: number,
        by: UserId,
        expectedVersion?: number
      ) {
        const record = yield* get(id, version)
        if (record === undefined) return undefined
        // Restoring keeps the current `enabled`: an old version must not switch an agent on or off.
        return yield* agents.revise(id, ({ enabled }) => ({ ...record.definition, enabled }), by, {
          restoredFrom: version,
          ...(expectedVersion === undefined ? {} : { expectedVersion })
        })
      })

      return Versions.of({ list, get, diff, restore })
    })
  )
}

/** Larger than any version number. */
const newest = 2_147_483_647

interface VersionRow {
  readonly version: number
  readonly definition: unknown
  readonly createdBy: string
  readonly createdAt: Date
  readonly restoredFrom: number | null
}

const toRecord = (agentId: AgentId, row: VersionRow) =>
  Effect.map(Effect.orDie(decodeDefinition(row.definition)), (definition): AgentVersionRecord => ({
    agentId,
    version: row.version,
    definition,
    createdBy: row.createdBy,
    createdAt: row.createdAt.toISOString(),
    restoredFrom: row.restoredFrom
  }))

const summaryOf = (
  { version, createdBy, createdAt, restoredFrom, definition }: AgentVersionRecord,
  before: AgentVersionRecord | undefined
): AgentVersionSummary => ({
  version,
  createdBy,
  createdAt,
  restoredFrom,
  changed: before ? diffJson(before.definition, definition).map(({ pointer }) => pointer) : []
})
