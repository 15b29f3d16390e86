/**
 * Dumps a whole project as lines from one snapshot, while others keep writing.
 *
 * Each table is read through a cursor, and a page ends at a number of bytes, so neither a large project, large rows nor
 * a slow reader costs memory. Rows are passed through as PostgreSQL writes them, so no number changes.
 */
import { createHash } from "node:crypto"
import {
  DumpHead,
  dumpFormat,
  type DumpTable,
  endLineOf,
  failedLineOf,
  rowsIn,
  DumpEnd
} from "@tropism/domain/dump"
import type { ProjectId, UserId } from "@tropism/domain/ids"
import type { ProjectSettingsPatch } from "@tropism/domain/project-settings"
import { Context, Effect, Layer, Stream, FileSystem, Option, Path, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Database, onlyRow, orDie } from "../database/database.ts"
import { makeTurns, type Offer, slowlyRead } from "../database/export-backpressure.ts"
import { dumpLimits } from "../database/limits.ts"
import { schemaVersion } from "../database/migrations.ts"

export class Dumper extends Context.Service<
  Dumper,
  {
    /** Streams the lines; ends with an error line when the dump fails or the reader's authority is gone. */
    readonly lines: (projectId: ProjectId, by: UserId, lost: Effect.Effect<void>) => Stream.Stream<Uint8Array>
    /** Returns the estimated number of rows. */
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

      /** Reads a table through a cursor and offers its rows unchanged. */
      const offerTable = Effect.fnUntraced(function* (
        projectId: ProjectId,
        { name, columns }: DumpTable,
        offer: OfferRows
      ) {
        const order = dumpParts.find(({ table }) => table === name)?.order ?? "project_id"
        // This statement takes no parameters. The id was decoded as one, and the rest is our own text.
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

// Lists the tables of a dump in restore order, and the tables it leaves out.
//
// A referenced row precedes the row that refers to it, except within one table, where the restore defers it. A test fails when
// a new table is in neither list.

export interface DumpPart {
  readonly table: string
  /** The order of its rows. */
  readonly order: string
  /** Columns left out: values of one database, and secrets. */
  readonly without?: ReadonlyArray<string>
}

const part = (table: string, order = "id", without: ReadonlyArray<string> = []): DumpPart => ({
  table,
  order,
  without
})

export const dumpParts: ReadonlyArray<DumpPart> = [
  part("members", "user_id"),
  part("feeds", "project_id"),
  part("task_counters", "project_id"),
  part("todo_counters", "owner"),
  part("kill_switches", "project_id"),
  part("graph_objects"),
  part("graph_object_versions", "object_id, version"),
  part("graph_relationships"),
  part("graph_relationship_versions", "relationship_id, version"),
  // Restored in this order, events get sequence numbers in the same order.
  part("graph_events", "seq"),
  part("graph_purges"),
  part("imports"),
  part("imported_objects", "source_id"),
  part("agents"),
  part("agent_versions", "agent_id, version"),
  part("agent_handled_versions", "agent_id, graph_object_id"),
  part("mcp_servers"),
  part("mcp_event_sources", "id", ["claim_token", "claimed_until"]),
  part("mcp_occurrences", "source_id, number"),
  part("attachments", "digest"),
  part("attachment_readers", "digest, reader"),
  // A fork is younger than its source, within clock accuracy; where it is not, the restore defers it (migration 67).
  part("contexts", "created_at, forked_from is not null, name"),
  part("brought_contexts", "context_name"),
  part("context_events", "context_name, number"),
  part("responses"),
  part("passages", "context_name, number"),
  part("backtests"),
  // A run's id may be smaller than its parent's, because each id has the time of its own server.
  part("agent_runs", "spawn_depth, id", [
    "attempt_token",
    "worker_id",
    "lease_expires_at",
    "progressed_at",
    "progress_of",
    "waits_for",
    "waits_since",
    "waits_until",
    "wait_tries",
    "wait_message",
    "deaths",
    "deaths_step",
    "shares_blame"
  ]),
  part("tool_lists", "digest"),
  part("model_calls", "run_id, number"),
  part("review_records", "agent_id, agent_version, operation, object_type"),
  part("promotions"),
  part("tool_calls"),
  part("tasks"),
  part("task_revisions", "task_id, revision"),
  part("undo_items", "task_id, revision, place"),
  part("rejections", "agent_id, object_id, rejected_at, task_id"),
  part("denials"),
  part("declined_inputs", "run_id, user_id, key"),
  part("backtest_events", "backtest_id, number"),
  part("backtest_suggestions", "tool_call_id"),
  part("agent_processing_log"),
  part("conversations"),
  part("webhooks", "id", ["token_hash", "previous_token_hash", "previous_valid_until"]),
  part("webhook_deliveries", "webhook_id, delivery_id"),
  part("budgets", "scope, scope_id, period")
]

/** Tables that are not in a dump, with the reason. */
export const leftOut: Readonly<Record<string, string>> = {
  projects: "the first line has it",
  agent_reactions: "made when an agent is enabled",
  agent_schedules: "made when an agent is enabled",
  agent_mcp_events: "made when an agent is enabled",
  context_snapshots: "made of the log when it is read",
  api_tokens: "secrets; a copy has tokens of its own",
  login_codes: "secrets",
  sealing_keys: "of the database",
  idempotency_keys: "of requests to the server that was asked",
  server_request_keys: "of requests to the server that was asked",
  mcp_grants: "secrets; somebody signs in again",
  mcp_sign_ins: "secrets",
  mcp_clients: "secrets; a client is registered with the next sign-in",
  event_subscriptions: "of clients of the server, with their secrets and their tokens",
  resource_subscriptions: "of sessions with the server",
  provider_outages: "of the servers of the database",
  restores: "of the database",
  restored_ids: "empty but while a restore is under way"
}

// Receives a dump as a local file: stored whole, verified whole, then read line by line as often as needed.
//
// The file is unlinked when it is opened, so no exit of this program leaves it behind. At most one line is in memory.

/** The folder for temporary files; undefined or missing for the system's. */
export class PassingFolder extends Context.Reference<string | undefined>(
  "@tropism/server/database/PassingFolder",
  { defaultValue: () => undefined }
) {}

/** Why a file cannot be restored, with what to do. */
export class DumpRefused extends Schema.TaggedError<DumpRefused>()("DumpRefused", {
  detail: Schema.String
}) {}

/** A complete dump that this version can read. */
export interface JudgedDump {
  readonly file: FileSystem.File
  readonly head: DumpHead
  readonly digest: string
  readonly rows: number
}

/** The oldest schema whose rows fit the current tables; before it there were no dumps. */
const oldestSchema = 47

/** Stores a body as an unlinked file for the scope. */
export const receiveDump = Effect.fn("receiveDump")(function* <E>(body: Stream.Stream<Uint8Array, E>) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const data = yield* PassingFolder
  const hasData = data !== undefined && (yield* Effect.orElseSucceed(files.exists(data), () => false))
  const folder = yield* Effect.orDie(
    files.makeTempDirectoryScoped({ prefix: "restore-", ...(hasData ? { directory: data } : {}) })
  )
  const file = yield* Effect.orDie(files.open(path.join(folder, "dump"), { flag: "w+", mode: 0o600 }))
  yield* Effect.ignore(files.remove(folder, { recursive: true }))
  yield* body
    .pipe(
      Stream.timeoutOrElse({
        duration: dumpLimits.senderSilenceMs,
        orElse: () => Stream.fail("silent" as const)
      }),
      Stream.mapError(() => brokeOff),
      Stream.runForEach((bytes) => Effect.mapError(file.writeAll(bytes), () => noRoom))
    )
    .pipe(Effect.catchDefect(() => Effect.fail(brokeOff)))
  return file
})

const brokeOff = new DumpRefused({
  detail: "The connection broke before the whole dump had come. Nothing was restored."
})
const noRoom = new DumpRefused({
  detail: "The server has no room for the dump on its disk. Nothing was restored."
})

/** Reads a file to its end and verifies that it is an unmodified dump. */
export const judgeDump = Effect.fn("judgeDump")(function* (file: FileSystem.File) {
  const next = yield* readLines(file)
  const first = yield* next
  if (first === undefined) return yield* refuse("The file is empty.")
  const head = yield* judgeHead(first)
  const hash = createHash("sha256").update(first).update("\n")
  let rows = 0
  let read = first.length + 1
  let line = yield* next
  while (line !== undefined) {
    const after = yield* next
    if (after === undefined) break
    hash.update(line).update("\n")
    rows += 1
    read += line.length + 1
    line = after
  }
  const expected = rowsIn(head)
  const digest = hash.digest("hex")
  const last = line === undefined ? "" : decoder.decode(line)
  const failed = decodeFailed(last)
  if (Option.isSome(failed)) return yield* refuse(failed.value.error)
  if (Option.isNone(decodeEnd(last)) || rows < expected)
    return yield* refuse(
      `This dump is not whole: it has ${rows} of ${expected} rows, or was cut before its last line. Take it, or copy it, again.`
    )
  const { size } = yield* Effect.orDie(file.stat)
  const bytes = read + last.length + 1
  if (`${last}\n` !== endLineOf({ rows: expected, sha256: digest }) || BigInt(size) !== BigInt(bytes))
    return yield* refuse(
      "This dump was damaged since it was taken: its bytes do not have the digest of its last line. Take it, or copy it, again."
    )
  return { file, head, digest, rows } satisfies JudgedDump
})

const judgeHead = Effect.fnUntraced(function* (line: Uint8Array) {
  const text = decoder.decode(line)
  const stamp = decodeStamp(text)
  if (Option.isNone(stamp))
    return yield* refuse(
      'This file is no dump of a project: its first line does not say so. "tropism dump" makes one; what "tropism export" wrote is for "tropism import".'
    )
  const { format, schema } = stamp.value
  if (format > dumpFormat || schema > schemaVersion)
    return yield* refuse(
      `This dump was taken by a newer version of the program (its schema is ${schema}, this server knows ${schemaVersion}): restore it on a server of that version, or newer.`
    )
  if (format < dumpFormat || schema < oldestSchema)
    return yield* refuse(
      `This dump was taken by a version that is too old (its schema is ${schema}, this server reads from ${oldestSchema} on): restore it on a server of that version, start this one on its database, and dump again.`
    )
  const head = decodeHead(text)
  if (Option.isNone(head)) return yield* refuse("This dump was damaged: its first line cannot be read.")
  const unknown = head.value.tables.find(({ name }) => !dumpParts.some(({ table }) => table === name))
  if (unknown !== undefined) return yield* refuse(`This dump has rows of ${unknown.name}, which no dump has.`)
  return head.value
})

/** Reads the lines of a file from its beginning, without line ends; undefined after the last. */
export const readLines = Effect.fnUntraced(function* (file: FileSystem.File) {
  yield* Effect.orDie(file.seek(0n, "start"))
  let piece: Uint8Array = new Uint8Array(0)
  let from = 0
  /** Earlier chunks of the line that continues in this chunk. */
  let before: Array<Uint8Array> = []
  let beforeBytes = 0
  const take = (end: number): Uint8Array => {
    const rest = piece.subarray(from, end)
    const line = before.length === 0 ? rest : Buffer.concat([...before, rest])
    before = []
    beforeBytes = 0
    from = end + 1
    return line
  }
  const next: Effect.Effect<Uint8Array | undefined, DumpRefused> = Effect.gen(function* () {
    while (true) {
      const end = piece.indexOf(lineFeed, from)
      if (end !== -1) return take(end)
      if (from < piece.length) {
        before.push(piece.subarray(from))
        beforeBytes += piece.length - from
      }
      if (beforeBytes > dumpLimits.lineMaxBytes) return yield* refuse("A line of this dump is too long.")
      const more = yield* Effect.orDie(file.readAlloc(dumpLimits.readBytes))
      piece = Option.getOrElse(more, () => new Uint8Array(0))
      from = 0
      if (Option.isNone(more)) return beforeBytes > 0 ? take(0) : undefined
    }
  })
  return next
})

const refuse = (detail: string) => Effect.fail(new DumpRefused({ detail: `${detail} Nothing was restored.` }))

const lineFeed = 10
const decoder = new TextDecoder()

const Stamp = Schema.Struct({ tropism: Schema.Literal("dump"), format: Schema.Int, schema: Schema.Int })
const Failed = Schema.Struct({ tropism: Schema.Literal("failed"), error: Schema.String })
const decodeStamp = Schema.decodeUnknownOption(Schema.fromJsonString(Stamp))
const decodeHead = Schema.decodeUnknownOption(Schema.fromJsonString(DumpHead))
const decodeEnd = Schema.decodeUnknownOption(Schema.fromJsonString(DumpEnd))
const decodeFailed = Schema.decodeUnknownOption(Schema.fromJsonString(Failed))
