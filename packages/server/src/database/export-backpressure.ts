/**
 * Lines of a whole project on their way to one reader: written as fast as they are read, and not for ever.
 *
 * Whoever writes them holds a connection and a moment of the database, of which
 * a server has few. So of one project only one writes at a time, whoever reads,
 * and a reader that takes nothing loses its turn, as does one that may read no more.
 * The last line tells of it, for a reader that comes back.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Clock, Effect, Queue, RcMap, Schema, Semaphore, Stream } from "effect"
import { dumpLimits } from "./limits.ts"

/** Gives turns to writers: one to each project, so many to all; who comes first is first. */
export const makeTurns = Effect.fnUntraced(function* (atOnce: number) {
  const all = yield* Semaphore.make(atOnce)
  const ofProject = yield* RcMap.make({ lookup: (_projectId: ProjectId) => Semaphore.make(1) })
  return <A, E, R>(projectId: ProjectId, writing: Effect.Effect<A, E, R>) =>
    Effect.scoped(
      Effect.flatMap(RcMap.get(ofProject, projectId), (own) =>
        own.withPermits(1)(all.withPermits(1)(writing))
      )
    )
})

/** The reader has taken nothing for too long. */
class ReaderStalled extends Schema.TaggedError<ReaderStalled>()("ReaderStalled", {}) {}

/** The reader may have no more of it. */
class ReaderDismissed extends Schema.TaggedError<ReaderDismissed>()("ReaderDismissed", {}) {}

/** Why a reader did not get all of it, for programs. */
export type UnfinishedReason = "readerStalled" | "tookTooLong" | "accessLost" | "serverFault"

/** Hands lines on, and waits until the reader has taken what came before them. */
export type Offer = (lines: string) => Effect.Effect<void, ReaderStalled>

/** What is written, and what its reader is told where it cannot be finished. */
export interface SlowlyRead {
  /** What it is called, and how it could be had sooner. */
  readonly name: string
  readonly advice: string
  readonly maxMs: number
  /** Done once the reader may have no more of it. */
  readonly lost: Effect.Effect<void>
  /** The last line of one that is not whole. */
  readonly failedLine: (error: string, reason: UnfinishedReason) => string
  /** Writes all of it, when its turn has come. */
  readonly write: (offer: Offer) => Effect.Effect<void, ReaderStalled>
}

/** The bytes of lines for one reader, in pieces of which each is taken by itself. */
export const slowlyRead = ({
  advice,
  failedLine,
  lost,
  maxMs,
  name,
  write
}: SlowlyRead): Stream.Stream<Uint8Array> =>
  Stream.suspend(() => {
    const reader = { tookAtMs: 0 }
    const takes = Effect.map(Clock.currentTimeMillis, (nowMs) => void (reader.tookAtMs = nowMs))
    return Stream.callback<Uint8Array>(
      (queue) => {
        const offer: Offer = (lines) =>
          Effect.andThen(
            takes,
            Effect.raceFirst(Effect.asVoid(Queue.offer(queue, encoder.encode(lines))), stalled(reader))
          )
        const tell = (reason: UnfinishedReason, why: string) =>
          Queue.offer(queue, encoder.encode(failedLine(`This ${name} is not whole: ${why}`, reason)))
        return Effect.raceFirst(write(offer), Effect.andThen(lost, Effect.fail(new ReaderDismissed()))).pipe(
          Effect.timeoutOrElse({
            duration: maxMs,
            orElse: () => tell("tookTooLong", tookTooLong(maxMs, advice))
          }),
          Effect.catchTag("ReaderStalled", () => tell("readerStalled", tookNothing)),
          Effect.catchTag("ReaderDismissed", () => tell("accessLost", lostToken)),
          Effect.catchCause((cause) =>
            Effect.andThen(
              Effect.logError(`The ${name} of a project failed`, cause),
              tell("serverFault", "the server failed; its log says why.")
            )
          ),
          Effect.andThen(Queue.end(queue))
        )
      },
      { bufferSize: 1, strategy: "suspend" }
    ).pipe(
      Stream.flatMap((bytes) => Stream.fromIterable(piecesOf(bytes))),
      Stream.tap(() => takes)
    )
  })

const encoder = new TextEncoder()

/** Fails when nothing has been taken for too long. */
const stalled = (reader: { readonly tookAtMs: number }): Effect.Effect<never, ReaderStalled> =>
  Effect.gen(function* () {
    const nowMs = yield* Clock.currentTimeMillis
    const leftMs = reader.tookAtMs + dumpLimits.readerStallMs - nowMs
    if (leftMs <= 0) return yield* new ReaderStalled()
    return yield* Effect.andThen(Effect.sleep(leftMs), stalled(reader))
  })

function* piecesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += dumpLimits.pieceBytes)
    yield bytes.subarray(from, from + dumpLimits.pieceBytes)
}

const tookTooLong = (maxMs: number, advice: string) =>
  `it took longer than the ${maxMs / 60_000} minutes that one may take, waiting for others included. ${advice}`

const tookNothing = `its reader took nothing for ${dumpLimits.readerStallMs / 1_000} seconds, while others may wait for their turn. Begin anew, and read without such a pause.`

const lostToken =
  "the token that it was asked for with is not good any more, or has another role by now. Begin anew with one that may read it."
