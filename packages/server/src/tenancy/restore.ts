/**
 * Makes a project of a dump: all of it, in one transaction, or nothing.
 *
 * The file lies here and was judged before the transaction begins, so nobody but
 * another restore is waited for while it is open; a program that dies in the
 * middle leaves nothing.
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

/** What a restore is told beside the dump. */
export interface RestoreWish {
  /** The id that the new project gets. */
  readonly projectId: ProjectId
  /** Its name; undefined for that of the dump. */
  readonly name: string | undefined
  readonly by: UserId
}

export interface Restored {
  readonly project: ProjectRow
  readonly rows: number
  /** Whether everything but the project itself has the id that it had. */
  readonly keptIds: boolean
  /** Agents that were enabled, and wait to be enabled here. */
  readonly disabledAgents: number
}

/** Another project has the id that the new one was to get. */
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
       * Waits until no other server of the database restores: which ids are free, and what came of a restore under the same id, can be
       * said only then. It asks now and then, so that a server that leaves waits for nobody.
       */
      const awaitTurn = sql<{ isOurs: boolean }>`
        select pg_try_advisory_xact_lock(hashtextextended('tropism.restores', 0)) as is_ours`.pipe(
        Effect.flatMap(onlyRow),
        Effect.repeat({ until: ({ isOurs }) => isOurs, schedule: Schedule.spaced(dumpLimits.turnLookMs) }),
        orDie
      )

      /** How far back the ids lie in the copy: 0 where all of them are free. */
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
        // Between two statements lies as much of the file as has nothing for the first, however slow the disk is. What is locked
        // meanwhile is new: nobody but other restores waits for it.
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

/** Reads the rows in their order, some of one table at a time; those of a table that is not wanted are passed over. */
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

/** Rows that the database refuses were not written by a server: that is told, and is no fault of this one. */
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

// The rows of a dump on their way into another project: which ids they have there, and what of them is made anew.
//
// Ids stay where none is taken. Else all of them move back by one step of time,
// so their order stays; an id is moved wherever it stands, in logs and in texts
// as well, and what only looks like one is left alone. Hashes over ids follow them.

/** The column that has the id by which others know a row, of the tables that have one. */
const idColumnOf = ({ columns, name }: DumpTable): string | undefined =>
  name === "graph_purges" ? "entity_id" : columns.includes("id") ? "id" : undefined

const anId = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g

const timeBits = 2 ** 48

/** The id that lies a step before another. */
export const stepBack = (id: string, stepMs: number): string => {
  const time = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
  const text = ((time - stepMs + timeBits) % timeBits).toString(16).padStart(12, "0")
  return `${text.slice(0, 8)}-${text.slice(8)}${id.slice(13)}`
}

const makeRestoredRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids

  /** Makes texts of rows those of the copy. */
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

  /** Makes what a dump does not have of a row: a webhook has a token that nobody knows, until it is rotated. */
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
    // PostgreSQL writes none; one of eight characters may take 131,072 where it is kept.
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

  /** Remembers which ids are those of rows that come. */
  const remember = Effect.fnUntraced(function* (found: ReadonlyArray<string>) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`insert into kb.restored_ids (project_id, id) select ${projectId}, unnest(${found}::uuid[]) on conflict do nothing`
  }, orDie)

  /** Forgets them all. */
  const forget = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    yield* sql`delete from kb.restored_ids where project_id = ${projectId}`
  }).pipe(orDie)

  return { write, remember, forget }
})

/** The id of the copy's project, and of nothing else, is another in any case. */
const newId = (head: DumpHead, projectId: ProjectId, id: string, stepMs: number): string =>
  id === head.project.id ? projectId : stepBack(id, stepMs)

// The hashes by which a suggestion is found again, made anew where its ids are others in a copy.
//
// What was rejected and what waits is known by a hash over the change, ids
// included. One that was made of anything else stays as it is.

const hashed: ReadonlySet<string> = new Set(["tasks", "task_revisions"])

/** A row of the copy with the hashes over what it says there; `before` is the row as the dump has it. */
const rehashed = ({ name }: DumpTable, before: string, after: string): string => {
  if (before === after || !hashed.has(name)) return after
  const made = hashesOf(after)
  return hashesOf(before).reduce((text, hash, index) => text.replaceAll(hash, made[index] ?? hash), after)
}

/** That of the change, and the one that stands for the key of a creation without one. */
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

// Puts a project that was made of a dump to rest: nothing in it acts before a person says so.
//
// Whatever was under way goes on where the dump was taken, so here it has ended.
// An agent is disabled as a new version, as one that disables itself.

/** Why an agent of a restored project is disabled, until somebody enables it. */
export const restReason = "The project was restored from a dump: enable the agent when it is to act here"
const ended = "The project was restored from a dump: this goes on, if anywhere, where the dump was taken"

const makeRestoredRest = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Disables every agent and answers how many were enabled. */
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

  /** Ends runs, what waited for them, and what else was under way. */
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
