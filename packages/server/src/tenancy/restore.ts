/**
 * Restores a project from a dump, in one transaction: all of it or nothing.
 *
 * The file is local and verified before the transaction begins, so only another restore can delay it. A crash leaves
 * nothing.
 */
import { createHash } from "node:crypto"
import { Change, digestText } from "@tropism/domain/change"
import type { DumpHead, DumpTable } from "@tropism/domain/dump"
import type { ProjectId, UserId } from "@tropism/domain/ids"
import { isJsonObject } from "@tropism/domain/json"
import { hasExponent } from "@tropism/domain/json-text"
import { creationText } from "@tropism/domain/suggestion"
import { Cause, Context, Effect, Layer, Option, Predicate, Random, Schedule, Schema, Semaphore } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { Database, allowIdleInTransaction, onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { dumpLimits } from "../database/limits.ts"
import { Ids } from "../ids.ts"
import { DumpRefused, type JudgedDump, readLines } from "./dump.ts"
import type { ProjectRow } from "./projects.ts"

/** Options of a restore. */
export interface RestoreWish {
  /** Id of the new project. */
  readonly projectId: ProjectId
  /** Its name; undefined to take the dump's. */
  readonly name: string | undefined
  readonly by: UserId
}

export interface Restored {
  readonly project: ProjectRow
  readonly rows: number
  /** Whether all rows but the project keep their ids. */
  readonly keptIds: boolean
  /** Number of agents that were enabled and now need a person to enable them. */
  readonly disabledAgents: number
}

/** Another project has the requested id. */
export class ProjectIdTaken extends Schema.TaggedError<ProjectIdTaken>()("ProjectIdTaken", {}) {}

type Tell = (done: number) => Effect.Effect<unknown>

export class Restorer extends Context.Service<
  Restorer,
  {
    readonly restore: (
      dump: JudgedDump,
      wish: RestoreWish,
      tell: Tell
    ) => Effect.Effect<Restored, DumpRefused | ProjectIdTaken>
  }
>()("@tropism/server/database/Restorer") {
  static readonly layer = Layer.effect(
    Restorer,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const rows = yield* makeRestoredRows
      const { rest } = yield* makeRestoredRest
      const turns = yield* Semaphore.make(dumpLimits.concurrentRestores)

      const begin = ({ digest, head }: JudgedDump, { by, name }: RestoreWish) =>
        orDie(
          sql`select kb.begin_restore(${name ?? head.project.name}, ${JSON.stringify(head.project.settings)}::text::jsonb,
            ${digest}, ${head.takenAt}::timestamptz, ${by})`
        )

      /**
       * Waits until no other server restores into this database: only then are free ids, and the outcome of a restore under the same
       * id, known. It polls, so a server that leaves does not wait for a lock.
       */
      const awaitTurn = sql<{ isOurs: boolean }>`
        select pg_try_advisory_xact_lock(hashtextextended('tropism.restores', 0)) as is_ours`.pipe(
        Effect.flatMap(onlyRow),
        Effect.repeat({ until: ({ isOurs }) => isOurs, schedule: Schedule.spaced(dumpLimits.turnLookMs) }),
        orDie
      )

      /** Returns by how much the copy's ids move back in time; 0 when all of them are free. */
      const findStep = Effect.fnUntraced(function* (dump: JudgedDump) {
        yield* eachBatch(dump, hasIds, (table, texts) => {
          const column = idColumnOf(table) ?? ""
          return rows.remember(
            texts.map((text) => String((JSON.parse(text) as Record<string, unknown>)[column]))
          )
        })
        const { isTaken } = yield* Effect.flatMap(
          sql<{ isTaken: boolean }>`select kb.is_any_restored_id_taken() as is_taken`,
          onlyRow
        ).pipe(orDie)
        return isTaken ? yield* Random.nextIntBetween(1, dumpLimits.stepMaxMs) : 0
      })

      const restoreAll = Effect.fnUntraced(function* (dump: JudgedDump, wish: RestoreWish, tell: Tell) {
        const { projectId } = yield* ProjectTransaction
        const { head } = dump
        // Between two statements the server may read a large part of the file, however slow the disk is. The locked rows are new, so
        // only other restores wait.
        yield* orDie(allowIdleInTransaction(sql))
        yield* awaitTurn
        yield* begin(dump, wish)
        const stepMs = yield* findStep(dump)
        let done = 0
        yield* eachBatch(dump, isAny, (table, texts) => {
          done += texts.length
          return Effect.andThen(rows.write(table, texts, { head, stepMs }), tell(done))
        })
        yield* orDie(sql`select kb.check_restored_references()`)
        yield* rows.forget
        const { assistantId } = head.project
        if (assistantId !== null)
          yield* orDie(
            sql`update kb.projects set assistant_id = ${newId(head, projectId, assistantId, stepMs)} where id = ${projectId}`
          )
        const disabledAgents = yield* rest
        const project = yield* Effect.flatMap(
          sql<{
            id: ProjectId
            name: string
            createdAt: Date
          }>`select id, name, created_at from kb.projects where id = ${projectId}`,
          onlyRow
        ).pipe(orDie)
        return {
          project: { ...project, createdAt: project.createdAt.toISOString() },
          rows: dump.rows,
          keptIds: stepMs === 0,
          disabledAgents
        } satisfies Restored
      })

      const restore = Effect.fn("Restorer.restore")((dump: JudgedDump, wish: RestoreWish, tell: Tell) =>
        turns
          .withPermits(1)(database.inProject(wish.projectId, restoreAll(dump, wish, tell)))
          .pipe(Effect.catchCause(refusing))
      )

      return Restorer.of({ restore })
    })
  )
}

type Table = JudgedDump["head"]["tables"][number]

const isAny = (): boolean => true
const hasIds = (table: Table): boolean => idColumnOf(table) !== undefined

/** Reads the rows in order, in batches of one table; skips the tables that are not wanted. */
const eachBatch = Effect.fnUntraced(function* <E, R>(
  { file, head }: JudgedDump,
  isWanted: (table: Table) => boolean,
  work: (table: Table, texts: ReadonlyArray<string>) => Effect.Effect<unknown, E, R>
) {
  const next = yield* readLines(file)
  yield* next
  for (const table of head.tables) {
    let left = table.rows
    while (left > 0 && !isWanted(table)) {
      if ((yield* next) === undefined) return
      left -= 1
    }
    while (left > 0) {
      const texts: Array<string> = []
      let bytes = 0
      while (left > 0 && texts.length < dumpLimits.batchRows && bytes < dumpLimits.batchBytes) {
        const line = yield* next
        if (line === undefined) return
        texts.push(decoder.decode(line))
        bytes += line.length
        left -= 1
      }
      yield* work(table, texts)
    }
  }
})

const decoder = new TextDecoder()

/** Rows that the database refuses were not written by a server; reports them as a fault of the dump. */
const refusing = <E>(cause: Cause.Cause<E>): Effect.Effect<never, E | DumpRefused | ProjectIdTaken> => {
  const defects = cause.reasons.flatMap((reason) => (reason._tag === "Die" ? [reason.defect] : []))
  const found = defects.find((defect) => defect instanceof SqlError.SqlError)
  const said = found?.reason.cause
  const code = Predicate.hasProperty(said, "code") ? String(said.code) : ""
  if (found?.reason._tag === "UniqueViolation" && found.reason.constraint === "projects_pkey")
    return Effect.fail(new ProjectIdTaken())
  if (!/^(?:22|23|42|TR)/.test(code) && !defects.some((defect) => defect instanceof SyntaxError))
    return Effect.failCause(cause)
  const sentence = Option.getOrElse(textOf(said), () => "a row of it cannot be read")
  return Effect.fail(
    new DumpRefused({ detail: `This dump cannot be restored here: ${sentence}. Nothing was restored.` })
  )
}

const textOf = (error: unknown): Option.Option<string> =>
  error instanceof Error ? Option.some(error.message.replace(/\.$/, "")) : Option.none()

// Rewrites rows of a dump for another project: their ids, and values that are not in the dump.
//
// Ids stay where none is taken. Otherwise all move back by one step of time, which keeps their order. An id is replaced
// wherever it occurs, in logs and texts too; text that only looks like an id is unchanged. Hashes over ids are recomputed.

/** Returns the id column by which other rows refer to a table's row, if any. */
const idColumnOf = ({ columns, name }: DumpTable): string | undefined =>
  name === "graph_purges" ? "entity_id" : columns.includes("id") ? "id" : undefined

const anId = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g

const timeBits = 2 ** 48

/** Returns the id one step earlier. */
export const stepBack = (id: string, stepMs: number): string => {
  const time = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
  const text = ((time - stepMs + timeBits) % timeBits).toString(16).padStart(12, "0")
  return `${text.slice(0, 8)}-${text.slice(8)}${id.slice(13)}`
}

const makeRestoredRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids

  /** Rewrites texts of rows for the copy. */
  const moved = Effect.fnUntraced(function* (
    texts: ReadonlyArray<string>,
    { head, stepMs }: { readonly head: DumpHead; readonly stepMs: number }
  ) {
    const { projectId } = yield* ProjectTransaction
    const own = texts.map((text) => text.replaceAll(head.project.id, projectId))
    if (stepMs === 0) return own
    const seen = [...new Set(own.flatMap((text) => text.match(anId) ?? []))]
    const known = yield* sql<{ id: string }>`
      select id from kb.restored_ids where project_id = ${projectId} and id = any(${seen}::uuid[])`
    const steps = new Map(known.map(({ id }) => [id, stepBack(id, stepMs)]))
    return own.map((text) => text.replace(anId, (id) => steps.get(id) ?? id))
  }, orDie)

  /** Adds values that a dump leaves out: a webhook gets an unknown random token until it is rotated. */
  const completed = Effect.fnUntraced(function* (table: DumpTable, texts: ReadonlyArray<string>) {
    if (table.name !== "webhooks") return { columns: table.columns, texts }
    const made = yield* Effect.forEach(texts, (text) =>
      Effect.map(ids.secret, (secret) =>
        JSON.stringify({ ...JSON.parse(text), token_hash: createHash("sha256").update(secret).digest("hex") })
      )
    )
    return { columns: [...table.columns, "token_hash"], texts: made }
  })

  /** Writes rows of one table. */
  const write = Effect.fnUntraced(function* (
    table: DumpTable,
    texts: ReadonlyArray<string>,
    copy: { readonly head: DumpHead; readonly stepMs: number }
  ) {
    // PostgreSQL writes no exponent; eight characters of one may expand to 131,072 when stored.
    if (texts.some(hasExponent))
      return yield* new DumpRefused({
        detail: `This dump was written by no server: a row of ${table.name} has a number with an exponent. Nothing was restored.`
      })
    const own = yield* moved(texts, copy)
    const rows = yield* completed(
      table,
      own.map((text, index) => rehashed(table, texts[index] ?? text, text))
    )
    yield* sql`select kb.restore_rows(${table.name}, ${rows.columns}::text[], ${`[${rows.texts.join(",")}]`}::text::jsonb)`
  }, orDie)

  /** Records which ids belong to the rows of the dump. */
  const remember = Effect.fnUntraced(function* (found: ReadonlyArray<string>) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`insert into kb.restored_ids (project_id, id) select ${projectId}, unnest(${found}::uuid[]) on conflict do nothing`
  }, orDie)

  /** Deletes the recorded ids. */
  const forget = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    yield* sql`delete from kb.restored_ids where project_id = ${projectId}`
  }).pipe(orDie)

  return { write, remember, forget }
})

/** Maps an id; the project's own id always changes. */
const newId = (head: DumpHead, projectId: ProjectId, id: string, stepMs: number): string =>
  id === head.project.id ? projectId : stepBack(id, stepMs)

// Recomputes the hashes that identify a suggestion, when its ids change in a copy.
//
// A hash over the change, ids included, identifies rejected and waiting suggestions. A hash of anything else stays.

const hashed: ReadonlySet<string> = new Set(["tasks", "task_revisions"])

/** Returns a row of the copy with recomputed hashes; `before` is the row in the dump. */
const rehashed = ({ name }: DumpTable, before: string, after: string): string => {
  if (before === after || !hashed.has(name)) return after
  const made = hashesOf(after)
  return hashesOf(before).reduce((text, hash, index) => text.replaceAll(hash, made[index] ?? hash), after)
}

/** The hash of the change, and the one that stands in for the key of a creation without one. */
const hashesOf = (text: string): ReadonlyArray<string> => {
  const row: unknown = JSON.parse(text)
  if (!isJsonObject(row) || !isJsonObject(row.payload)) return []
  const change = row.payload.suggestedChanges
  if (!isChange(change)) return []
  const about = Array.isArray(row.about) ? row.about.map(String) : []
  return [digestText(change), creationText(change, about)].map((words) =>
    createHash("sha256").update(words, "utf8").digest("hex")
  )
}

const isChange = Schema.is(Change)

// Stops all work of a restored project: nothing in it runs before a person enables it.
//
// Work in progress continues at the source of the dump, so here it has ended. Each agent is disabled as a new version, like an
// agent that disables itself.

/** Why an agent of a restored project is disabled. */
export const restReason = "The project was restored from a dump: enable the agent when it is to act here"
const ended = "The project was restored from a dump: this goes on, if anywhere, where the dump was taken"

const makeRestoredRest = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Disables every agent and returns how many were enabled. */
  const disableAgents = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql`
      with disabled as (
        update kb.agents set enabled = false, enabled_at = null, disabled_reason = ${restReason}, version = version + 1, updated_at = now()
        where project_id = ${projectId} and enabled and deleted_at is null returning id, project_id, version
      )
      insert into kb.agent_versions (agent_id, version, project_id, definition, created_by)
      select disabled.id, disabled.version, disabled.project_id, jsonb_set(before.definition, '{enabled}', 'false'), 'system'
      from disabled join kb.agent_versions before on before.agent_id = disabled.id and before.version = disabled.version - 1
      returning 1`
    return rows.length
  })

  /** Ends runs, their waiting tasks, and other work in progress. */
  const endWork = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      update kb.agent_runs set status = 'cancelled', completed_at = now(), pause_reason = null, deadline_at = null, error_message = ${ended}
      where project_id = ${projectId} and status in ('queued', 'running', 'paused')`
    yield* sql`
      update kb.agent_processing_log set status = case status when 'pending' then 'skipped' else 'abandoned' end,
        completed_at = now(), reason = ${ended}, due_at = null
      where project_id = ${projectId} and status in ('pending', 'processing')`
    yield* sql`
      update kb.tasks set status = 'expired', resolved_at = now()
      where project_id = ${projectId} and type = 'question' and status = 'pending'`
    yield* sql`
      update kb.tool_calls set status = 'abandoned', completed_at = now() where project_id = ${projectId} and status = 'started'`
    yield* sql`
      update kb.backtests set status = 'cancelled', completed_at = now(), detail = ${ended}
      where project_id = ${projectId} and status in ('queued', 'running')`
    yield* sql`update kb.imports set status = 'interrupted' where project_id = ${projectId} and status = 'running'`
    yield* sql`update kb.mcp_servers set enabled = false where project_id = ${projectId} and enabled`
  })

  return { rest: orDie(Effect.tap(disableAgents, () => endWork)) }
})
