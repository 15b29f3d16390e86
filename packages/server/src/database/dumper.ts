/**
 * Writes a whole project as lines, as it was in one moment, while others go on writing.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * Every row comes from one snapshot, through a cursor for each table, and a page
 * of them ends after so many bytes: neither a large project nor large rows nor a
 * slow reader costs memory. Rows are passed on as the database writes them: no
 * number of theirs is read as another one.
 */
import { createHash } from "node:crypto"
import {
  type DumpHead,
  dumpFormat,
  type DumpTable,
  endLineOf,
  failedLineOf,
  rowsIn
} from "@tropism/domain/dump"
import type { ProjectId, UserId } from "@tropism/domain/ids"
import type { ProjectSettingsPatch } from "@tropism/domain/project-settings"
import { Context, Effect, Layer, type Stream } from "effect"
import { SqlClient } from "effect/sql"
import { Database, onlyRow, orDie } from "./database.ts"
import { dumpLimits } from "./dump-limits.ts"
import { dumpParts } from "./dump-plan.ts"
import { schemaVersion } from "./migrations.ts"
import { makeTurns, type Offer, slowlyRead } from "./slow-readers.ts"

export class Dumper extends Context.Service<
  Dumper,
  {
    /** The lines, some at a time. It ends with a line that says so when it cannot be finished, or once the reader may have no more of it. */
    readonly lines: (projectId: ProjectId, by: UserId, lost: Effect.Effect<void>) => Stream.Stream<Uint8Array>
    /** How many rows there are, as nearly as can be said before they are read. */
    readonly count: (projectId: ProjectId) => Effect.Effect<number>
  }
>()("@tropism/server/database/Dumper") {
  static readonly layer = Layer.effect(
    Dumper,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const inTurn = yield* makeTurns(dumpLimits.concurrentDumps)

      const readTables = (projectId: ProjectId) =>
        sql<DumpTable>`
          select part.name, array(
              select attname::text from pg_attribute
              where attrelid = ('kb.' || part.name)::regclass and attnum > 0 and not attisdropped
                and attidentity = '' and attgenerated = '' and not attname = any(string_to_array(part.without, ','))
              order by attnum) as columns,
            0 as rows
          from unnest(${dumpParts.map(({ table }) => table)}::text[], ${dumpParts.map(({ without }) => without?.join(",") ?? "")}::text[])
            with ordinality part(name, without, place) order by place`.pipe(
          Effect.flatMap((tables) => Effect.forEach(tables, (table) => counted(projectId, table))),
          orDie
        )

      const counted = (projectId: ProjectId, table: DumpTable) =>
        Effect.map(
          Effect.flatMap(
            sql<{
              rows: number
            }>`select count(*)::int as rows from ${sql.literal(`kb.${table.name}`)} where project_id = ${projectId}`,
            onlyRow
          ),
          ({ rows }): DumpTable => ({ ...table, rows })
        )

      const readHead = Effect.fnUntraced(function* (projectId: ProjectId, by: UserId) {
        const project = yield* Effect.flatMap(
          sql<ProjectRow>`select name, settings, assistant_id, now() as taken_at from kb.projects where id = ${projectId}`,
          onlyRow
        )
        const { assistantId, name, settings, takenAt } = project
        const head: DumpHead = {
          tropism: "dump",
          format: dumpFormat,
          schema: schemaVersion,
          takenAt: takenAt.toISOString(),
          takenBy: by,
          project: { id: projectId, name, settings, assistantId },
          tables: yield* readTables(projectId)
        }
        return head
      }, orDie)

      /** Reads a table through a cursor and offers its rows as they are. */
      const offerTable = Effect.fnUntraced(function* (
        projectId: ProjectId,
        { name, columns }: DumpTable,
        offer: OfferRows
      ) {
        const order = dumpParts.find(({ table }) => table === name)?.order ?? "project_id"
        // No parameter may stand here; the id was read as one, and the rest is ours.
        yield* sql.unsafe(
          `declare dumped no scroll cursor for select to_jsonb(one)::text as line from (
             select ${columns.map((column) => `"${column}"`).join(", ")} from kb.${name} where project_id = '${projectId}' order by ${order}) one`
        ).unprepared
        while (true) {
          const rows = yield* sql<{ line: string }>`
            select line from kb.fetch_page('dumped', ${dumpLimits.pageRows}, ${dumpLimits.pageBytes}) line`
          if (rows.length === 0) break
          yield* offer(rows.map(({ line }) => `${line}\n`).join(""), rows.length)
        }
        yield* sql.unsafe("close dumped").unprepared
      }, orDie)

      const write = Effect.fnUntraced(function* (projectId: ProjectId, by: UserId, hand: Offer) {
        const hash = createHash("sha256")
        let rows = 0
        const offer: OfferRows = (text, count) => {
          hash.update(text)
          rows += count
          return hand(text)
        }
        const head = yield* readHead(projectId, by)
        yield* offer(`${JSON.stringify(head)}\n`, 0)
        for (const table of head.tables) yield* offerTable(projectId, table, offer)
        yield* hand(endLineOf({ rows, sha256: hash.digest("hex") }))
      })

      const lines = (projectId: ProjectId, by: UserId, lost: Effect.Effect<void>) =>
        slowlyRead({
          name: "dump",
          advice: "Read it faster.",
          maxMs: dumpLimits.dumpMaxMs,
          lost,
          failedLine: failedLineOf,
          write: (offer) => inTurn(projectId, database.inSnapshot(projectId, write(projectId, by, offer)))
        })

      const count = (projectId: ProjectId) =>
        database.inProject(
          projectId,
          Effect.map(readTables(projectId), (tables) => rowsIn({ tables }))
        )

      return Dumper.of({ lines, count })
    })
  )
}

type OfferRows = (text: string, rows: number) => ReturnType<Offer>

interface ProjectRow {
  readonly name: string
  readonly settings: ProjectSettingsPatch
  readonly assistantId: string | null
  readonly takenAt: Date
}
