/**
 * Streams a project's lines to one reader at the reader's pace, with limits.
 *
 * A writer holds a connection and a snapshot, of which a server has few. So each project has one writer at a time, and a reader that stalls
 * or loses its permission loses its turn. The last line reports that, for a reader that tries again.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Clock, Effect, Queue, RcMap, Schema, Semaphore, Stream } from "effect"
import { dumpLimits } from "./limits.ts"

/** Schedules writers: one per project, a maximum in all, first come first served. */
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

/** The reader has read nothing for too long. */
class ReaderStalled extends Schema.TaggedError<ReaderStalled>()("ReaderStalled", {}) {}

/** The reader has lost its permission. */
class ReaderDismissed extends Schema.TaggedError<ReaderDismissed>()("ReaderDismissed", {}) {}

/** Why a reader did not get everything, as a code. */
export type UnfinishedReason = "readerStalled" | "tookTooLong" | "accessLost" | "serverFault"

/** Delivers lines, and waits until the reader has read the ones before. */
export type Offer = (lines: string) => Effect.Effect<void, ReaderStalled>

/** A stream, and how it reports that it is incomplete. */
export interface SlowlyRead {
  /** Its name, and advice on a faster way. */
  readonly name: string
  readonly advice: string
  readonly maxMs: number
  /** Completes when the reader loses its permission. */
  readonly lost: Effect.Effect<void>
  /** The last line of an incomplete stream. */
  readonly failedLine: (error: string, reason: UnfinishedReason) => string
  /** Writes everything, when its turn has come. */
  readonly write: (offer: Offer) => Effect.Effect<void, ReaderStalled>
}

/** The bytes of the lines for one reader, in chunks that are read one by one. */
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

/** Fails when nothing has been read for too long. */
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
