/**
 * The body of a request as an import reads it: piece by piece, and it may break off.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Nothing is read ahead: while a batch is committed the sender waits. Reading
 * may begin before the request is answered and go on while the answer is sent,
 * so the body has a scope of its own, which whoever answers closes.
 */
import { createHash, type Hash } from "node:crypto"
import { Effect, Exit, Pull, Schema, Scope, Stream } from "effect"
import { transferLimits } from "../limits.ts"

/** No more of the file will come, and it was not its end. */
export class FileBrokeOff extends Schema.TaggedError<FileBrokeOff>()("FileBrokeOff", {
  detail: Schema.String
}) {}

/** The sender may import no more. */
export const senderLost = new FileBrokeOff({
  detail: "The token that it was sent with is not good any more, or has another role by now"
})

export interface ImportSource {
  /** The next pieces of the file, or undefined at its end. */
  readonly next: Effect.Effect<ReadonlyArray<Uint8Array> | undefined, FileBrokeOff>
  readonly close: Effect.Effect<void>
}

export const makeImportSource = Effect.fnUntraced(function* <E>(body: Stream.Stream<Uint8Array, E>) {
  const scope = yield* Scope.make()
  const pull = yield* Scope.provide(Stream.toPull(body), scope)
  const next = pull.pipe(
    Effect.map((pieces): ReadonlyArray<Uint8Array> | undefined => pieces),
    Pull.catchDone(() => Effect.succeed(undefined)),
    Effect.catch(() => Effect.fail(new FileBrokeOff({ detail: "The file is larger than an import takes" }))),
    Effect.catchDefect(() =>
      Effect.fail(new FileBrokeOff({ detail: "The connection broke before the whole file had come" }))
    ),
    Effect.timeoutOrElse({
      duration: transferLimits.senderSilenceMs,
      orElse: () =>
        Effect.fail(
          new FileBrokeOff({
            detail: `Nothing of the file came for ${transferLimits.senderSilenceMs / 1_000} s`
          })
        )
    })
  )
  return { next, close: Scope.close(scope, Exit.void) } satisfies ImportSource
})

/** The first bytes of a file, passed over: their hash, the very first of them, and what had come after them. */
export interface Skipped {
  readonly hash: Hash
  readonly head: Uint8Array
  readonly rest: ReadonlyArray<Uint8Array>
}

export const nothingSkipped = (): Skipped => ({
  hash: createHash("sha256"),
  head: new Uint8Array(0),
  rest: []
})

/** Passes over so many bytes more; undefined when the file ends before. */
export const skipBytes = Effect.fnUntraced(function* (source: ImportSource, before: Skipped, count: number) {
  const hash = before.hash.copy()
  let head = before.head
  let left = count
  let pieces = before.rest
  while (true) {
    const rest: Array<Uint8Array> = []
    for (const piece of pieces) {
      const passed = piece.subarray(0, left)
      hash.update(passed)
      left -= passed.length
      if (head.length < transferLimits.lineMaxBytes)
        head = new Uint8Array(
          Buffer.concat([head, passed.subarray(0, transferLimits.lineMaxBytes - head.length)])
        )
      if (passed.length < piece.length) rest.push(piece.subarray(passed.length))
    }
    if (left === 0) return { hash, head, rest } satisfies Skipped
    const next = yield* source.next
    if (!next) return undefined
    pieces = next
  }
})
