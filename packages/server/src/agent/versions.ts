/**
 * The versions of agents: which there were, what each changed, and the way back.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * A version never changes. Going back makes a new one, so runs that pin a
 * version find it for ever.
 */
import type { Agent } from "@tropism/domain/agent"
import type { AgentVersionDiff, AgentVersionRecord, AgentVersionSummary } from "@tropism/domain/agent-version"
import type { AgentId, UserId } from "@tropism/domain/ids"
import { diffJson } from "@tropism/domain/json-diff"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { Agents } from "./agents.ts"
import type { DefinitionRefused } from "./checked-definition.ts"
import { decodeDefinition } from "./rows.ts"

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export class Versions extends Context.Service<
  Versions,
  {
    /** The versions of an agent before one, newest first. */
    readonly list: (
      id: AgentId,
      before: number | undefined,
      limit: number
    ) => Read<ReadonlyArray<AgentVersionSummary>>
    readonly get: (id: AgentId, version: number) => Read<AgentVersionRecord | undefined>
    /** What lies between two versions; undefined when there is not one of them. */
    readonly diff: (id: AgentId, from: number | undefined, to: number) => Read<AgentVersionDiff | undefined>
    /** Makes the agent what a version of it was; undefined when there is none. */
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
        // One more than is told: each is compared with the version before it.
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
        // Whether an agent may work is decided now and not by its past: going back never throws a switch.
        return yield* agents.revise(id, ({ enabled }) => ({ ...record.definition, enabled }), by, {
          restoredFrom: version,
          ...(expectedVersion === undefined ? {} : { expectedVersion })
        })
      })

      return Versions.of({ list, get, diff, restore })
    })
  )
}

/** Beyond every version. */
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
