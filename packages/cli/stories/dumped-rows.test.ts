/**
 * Every row of a project and every column of it comes back of a dump, but for what is put to rest.
 */
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { dumpParts } from "../../server/src/tenancy/dump.ts"
import { migrate } from "../../server/src/database/schema.ts"
import type { PostgresAccess } from "../../server/src/database/postgres-access.ts"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { everyRow, olderDatabase } from "../../server/testing/older-database.ts"
import { ask, holding, lockOf } from "../../server/testing/owner-rows.ts"
import { startServer, storyIn } from "../../server/testing/platform.ts"
import { folder, json } from "../testing/dump-words.ts"

type Row = Readonly<Record<string, unknown>>

/** What belongs to one database, and secrets: no dump has them. */
const staysBehind: Readonly<Record<string, ReadonlyArray<string>>> = {
  graph_events: ["seq"],
  mcp_event_sources: ["claim_token", "claimed_until"],
  agent_runs: ["attempt_token", "worker_id", "lease_expires_at"],
  webhooks: ["token_hash", "previous_token_hash", "previous_valid_until"]
}

/** The rows of the tables that a dump has, as JSON in an order of their own, without the columns that stay behind. */
const rowsIn = (access: PostgresAccess, told = (text: string) => text) =>
  Effect.map(everyRow(access), (all): Readonly<Record<string, ReadonlyArray<string>>> =>
    Object.fromEntries(
      dumpParts.map(({ table }) => {
        const gone = staysBehind[table] ?? []
        const kept = all
          .filter((one) => one.table === table)
          .map(({ row }) => JSON.stringify(row, (name, value) => (gone.includes(name) ? undefined : value)))
        return [table, kept.map(told).toSorted()]
      })
    )
  )

const read = (row: string): Row => JSON.parse(row)

/** What was under way when the dump was taken. */
const underWay = [
  "update kb.agent_runs set status = 'queued', completed_at = null where id = (select min(id::text) from kb.agent_runs)::uuid",
  "update kb.agent_processing_log set status = 'pending', completed_at = null where id = (select min(id::text) from kb.agent_processing_log)::uuid",
  "update kb.agent_processing_log set status = 'processing', completed_at = null where id = (select max(id::text) from kb.agent_processing_log)::uuid",
  "update kb.tool_calls set status = 'started', completed_at = null where id = (select min(id::text) from kb.tool_calls)::uuid"
]

describe("Requirement: a restored project has what was dumped, row by row", () => {
  it.live("and what was under way has ended in it", () =>
    Effect.gen(function* () {
      const here = yield* olderDatabase(30)
      yield* migrate(here.ownerUrl)
      const [[id] = []] = yield* ask(here, "select id from kb.projects")
      // Nothing begins while one looks.
      yield* ask(here, "update kb.agent_schedules set next_fire_at = '2100-01-01'")
      const server = yield* startServer(here)
      const story = storyIn(server, here, String(id))
      expect((yield* story.ask("PUT", "/kill-switch", { stopped: true, reason: "Dump" })).status).toBe(200)
      yield* story.post("/mcp-servers", {
        name: "elsewhere",
        transport: { type: "http", url: "https://mcp.example.com/mcp" },
        allowedTools: ["search_*"]
      })
      // No sweep finds stuck meanwhile what seems to be under way.
      yield* holding(here, lockOf(`stuck ${story.projectId}`))
      for (const statement of underWay) yield* ask(here, statement)
      const file = join(yield* folder, "whole.dump")
      yield* json(story, "dump", "--project", story.projectId, "-o", file)
      const dumped = yield* rowsIn(here)

      const there = yield* freshDatabase
      const { project } = yield* json(yield* startServer(there), "restore", file)
      const restored = yield* rowsIn(there, (text) => text.replaceAll(project.id, story.projectId))

      /** The rows that are not in both, as they were and as they are. */
      const changed = Object.fromEntries(
        dumpParts.flatMap(({ table }) => {
          const [was, is] = [dumped[table] ?? [], restored[table] ?? []]
          const [gone, come] = [
            was.filter((row) => !is.includes(row)),
            is.filter((row) => !was.includes(row))
          ]
          return gone.length + come.length === 0
            ? []
            : [[table, { gone: gone.map(read), come: come.map(read) }]]
        })
      )
      const rested = (table: string, columns: Row) => {
        const { come, gone }: { come: ReadonlyArray<Row>; gone: ReadonlyArray<Row> } = changed[table] ?? {
          come: [],
          gone: []
        }
        expect(come).toEqual(
          gone.map((row) =>
            Object.fromEntries(
              Object.entries(row).map(([name, value]) => [name, name in columns ? columns[name] : value])
            )
          )
        )
        return come.length
      }
      const ended = { completed_at: expect.any(String) }
      const reason = expect.stringMatching(/\S/)
      expect(Object.keys(changed).toSorted()).toEqual([
        "agent_processing_log",
        "agent_runs",
        "agent_versions",
        "agents",
        "mcp_servers",
        "tool_calls"
      ])
      expect(rested("agent_runs", { ...ended, status: "cancelled", error_message: reason })).toBe(1)
      expect(rested("tool_calls", { ...ended, status: "abandoned" })).toBe(1)
      expect(rested("mcp_servers", { enabled: false })).toBe(1)
      const statuses = expect.stringMatching(/^(skipped|abandoned)$/)
      expect(rested("agent_processing_log", { ...ended, status: statuses, reason })).toBe(2)
      const disabled = { enabled: false, enabled_at: null, disabled_reason: reason, version: 2 }
      expect(rested("agents", { ...disabled, updated_at: expect.any(String) })).toBe(4)
      expect(changed["agent_versions"]).toMatchObject({
        gone: [],
        come: Array.from({ length: 4 }, () => ({ version: 2, created_by: "system" }))
      })
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
