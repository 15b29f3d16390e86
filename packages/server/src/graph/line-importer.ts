/**
 * Imports a file of lines while it comes: read, committed and told in batches.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Each batch is one transaction that also says in the import's record how far
 * the file is committed. So whatever dies, sending the file again with the
 * import's id goes on behind the last committed line, and no line works twice;
 * the digest of what is skipped shows that it is the same file.
 */
import type { BadLine, ImportLine, LineCounts } from "@tropism/api/transfer-api"
import { direct } from "@tropism/domain/actor"
import { Cause, Context, Effect, Layer, Predicate, Schedule, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { Database } from "../database/database.ts"
import { passingFault } from "../database/database-away.ts"
import { transferLimits } from "../limits.ts"
import { countAsGrown } from "./grown-tables.ts"
import { type ImportAnswer, makeImportAnswer } from "./import-answer.ts"
import { ImportBatch } from "./import-batch.ts"
import { type FileBatch, type LineImport, type OpenFile, openFile } from "./import-file.ts"
import type { FilePlace } from "./import-records.ts"
import type { ImportRefused } from "./import-refused.ts"
import { FileBrokeOff, senderLost } from "./import-source.ts"
import { ImportTurns } from "./import-turns.ts"
import { Imports, noCounts, type Sending, type SendingLost } from "./imports.ts"
import { keepableText } from "./keepable-text.ts"

/** An import that somebody is sending a file for. */
interface Session {
  readonly request: LineImport<unknown>
  readonly sending: Sending
  readonly file: OpenFile
  readonly answer: ImportAnswer
  counts: LineCounts
  badLines: ReadonlyArray<BadLine>
  lines: number
}

export class LineImporter extends Context.Service<
  LineImporter,
  {
    /** Reads as much as it needs to judge whether the import may begin or go on; the rest is read while the answer is sent. */
    readonly open: <E>(request: LineImport<E>) => Effect.Effect<Stream.Stream<ImportLine>, ImportRefused>
  }
>()("@tropism/server/graph/LineImporter") {
  static readonly layer = Layer.effect(
    LineImporter,
    Effect.gen(function* () {
      const database = yield* Database
      const sql = yield* SqlClient.SqlClient
      const imports = yield* Imports
      const batch = yield* ImportBatch
      const turns = yield* ImportTurns

      /** Commits a batch together with how far it is; done again when other writers were in its way. */
      const commit = (
        session: Session,
        { lines, badLines, place }: FileBatch,
        tries: number
      ): Effect.Effect<void, SendingLost | FileBrokeOff> => {
        const { projectId, by, file } = session.request
        const author = { actor: { actorType: "user", actorId: by }, cause: direct } as const
        const care = tries === 1 ? "quick" : tries < transferLimits.batchCarefulTries ? "careful" : "last"
        const transaction = Effect.gen(function* () {
          const outcome = yield* batch.apply(
            lines,
            { author, untrusted: file.settings.untrusted === true },
            care
          )
          const bad = [...badLines, ...outcome.badLines].toSorted((a, b) => a.line - b.line).map(keepable)
          const counts = addCounts(session.counts, outcome.counts, badLines.length)
          const shown = [...session.badLines, ...bad].slice(0, transferLimits.badLinesShown)
          const hasNews = shown.length > session.badLines.length
          yield* imports.advance(session.sending, { place, counts, badLines: hasNews ? shown : undefined })
          return { counts, shown }
        })
        return turns.batch(database.inProject(projectId, transaction)).pipe(
          Effect.flatMap(({ counts, shown }) => {
            const news = shown.slice(session.badLines.length)
            session.counts = counts
            session.badLines = shown
            session.lines = place.lines
            return session.answer.tell(
              ...news.map((one): ImportLine => ({ type: "badLine", ...one })),
              progressOf(session, place)
            )
          }),
          Effect.catchTag("BatchUndone", () =>
            tries < transferLimits.batchTries
              ? commit(session, { lines, badLines, place }, tries + 1)
              : Effect.fail(new FileBrokeOff({ detail: "Others change the same objects all the time" }))
          )
        )
      }

      /** Commits all that comes, until the file ends. */
      const work = Effect.fn("LineImporter.work")(function* (session: Session) {
        const { file, sending, request } = session
        const count = countAsGrown(sql, session.lines)
        while (true) {
          const next = yield* file.nextBatch
          if (!next) break
          yield* commit(session, next, 1)
          yield* count(session.lines)
        }
        yield* database.inProject(request.projectId, imports.finish(sending))
        yield* session.answer.tell(finishedOf(session))
      })

      /** Leaves an import so that it can be gone on with, and says so. */
      const leave = (session: Session, reason: string) =>
        database.inProject(session.request.projectId, imports.interrupt(session.sending, reason)).pipe(
          Effect.catchCause((cause) => Effect.logWarning("An import's end could not be kept", cause)),
          Effect.andThen(
            session.answer.tell({
              type: "failed",
              message: `${reason}. Send the file again to go on.`,
              resume: session.sending.id
            })
          )
        )

      const lost = (session: Session) =>
        session.answer.tell({
          type: "failed",
          message: "The same import is being gone on with by somebody else, who has it now"
        })

      const ended = (
        session: Session,
        cause: Cause.Cause<SendingLost | FileBrokeOff>
      ): Effect.Effect<void> => {
        if (Cause.hasInterrupts(cause)) return leave(session, "The connection to the sender ended")
        const error = Cause.squash(cause)
        if (isTagged(error, "SendingLost")) return lost(session)
        if (isTagged(error, "FileBrokeOff")) return leave(session, (error as FileBrokeOff).detail)
        // What is held, or away, may be there when the file is sent again.
        const passing = passingFault(error)
        if (passing !== undefined) return leave(session, passing)
        return Effect.andThen(
          Effect.logError("An import failed", cause),
          leave(session, "The server failed; its log says why")
        )
      }

      /** Works until the file ends, or its sender goes or may import no more. */
      const run = (session: Session): Stream.Stream<ImportLine> =>
        Stream.unwrap(
          Effect.gen(function* () {
            const { request, sending, answer, file } = session
            yield* Effect.addFinalizer(() => file.close)
            yield* answer.tell({ type: "started", importId: sending.id, skippedLines: file.skippedLines })
            const stillThere = Effect.ignoreCause(
              database.inProject(request.projectId, imports.touch(sending))
            )
            yield* Effect.forkScoped(
              Effect.repeat(stillThere, Schedule.spaced(transferLimits.touchIntervalMs))
            )
            yield* Effect.raceFirst(
              work(session),
              Effect.andThen(request.lost, Effect.fail(senderLost))
            ).pipe(
              Effect.onError((cause) => ended(session, cause)),
              Effect.ignoreCause,
              Effect.ensuring(answer.end),
              Effect.forkScoped
            )
            return answer.lines
          })
        )

      const open = Effect.fn("LineImporter.open")(function* <E>(request: LineImport<E>) {
        const { sending, file, record } = yield* openFile(request, { database, imports })
        return run({
          request,
          sending,
          file,
          answer: yield* makeImportAnswer,
          counts: record?.counts ?? noCounts,
          badLines: record?.badLines ?? [],
          lines: record?.lines ?? 0
        })
      })

      return LineImporter.of({ open })
    })
  )
}

const isTagged = (error: unknown, tag: string): boolean => Predicate.isTagged(error, tag)

/** Whatever a line holds, what is wrong with it can be kept and told. */
const keepable = ({ line, message }: BadLine): BadLine => ({
  line,
  message: keepableText(message, transferLimits.badLineMaxChars)
})

const addCounts = (before: LineCounts, more: LineCounts, unread: number): LineCounts => ({
  created: before.created + more.created,
  updated: before.updated + more.updated,
  unchanged: before.unchanged + more.unchanged,
  relationshipsCreated: before.relationshipsCreated + more.relationshipsCreated,
  relationshipsUpdated: before.relationshipsUpdated + more.relationshipsUpdated,
  relationshipsUnchanged: before.relationshipsUnchanged + more.relationshipsUnchanged,
  failed: before.failed + more.failed + unread
})

const progressOf = ({ request, counts }: Session, place: FilePlace): ImportLine => ({
  type: "progress",
  done: place.bytes,
  total: request.totalBytes,
  lines: place.lines,
  counts
})

const finishedOf = ({ sending, counts, lines }: Session): ImportLine => ({
  type: "finished",
  importId: sending.id,
  lines,
  ...counts,
  deleted: 0,
  relationshipsDeleted: 0
})
