/**
 * Makes a project of a dump: all of it, in one transaction, or nothing.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * The file lies here and was judged before the transaction begins, so nobody but
 * another restore is waited for while it is open; a program that dies in the
 * middle leaves nothing.
 */
import type { ProjectId, UserId } from "@tropism/domain/ids"
import { Cause, Context, Effect, Layer, Option, Predicate, Random, Schedule, Schema, Semaphore } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { Database, maySlumber, onlyRow, orDie, ProjectTransaction } from "./database.ts"
import { DumpRefused, type JudgedDump, readLines } from "./dump-file.ts"
import { dumpLimits } from "./dump-limits.ts"
import { makeRestoredRest } from "./restored-rest.ts"
import { idColumnOf, makeRestoredRows, newId } from "./restored-rows.ts"
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
        yield* orDie(maySlumber(sql))
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
