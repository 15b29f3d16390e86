/**
 * Writes a file that appears only when it is whole.
 *
 * It is written beside its place and moved there at the end; what breaks off, or
 * is found not to be whole, leaves nothing.
 */
import { Effect, FileSystem, Path, Stream } from "effect"
import { Failure, failure } from "./failure.ts"
import { Screen } from "./terminal/screen.ts"
import { transferProgress } from "./transfer-progress.ts"

export const writeWholeFile = <E, R>(options: {
  readonly content: Stream.Stream<Uint8Array, E, R>
  readonly file: string
  readonly label: string
  /** Lines that have come so far, and how many are expected. */
  readonly lines: () => number
  readonly total: number | undefined
  /** Who may do what with the file; what the system says where it is not told. */
  readonly mode?: number
  /** Fails where what has come is not whole. */
  readonly check: Effect.Effect<void, Failure>
}) =>
  Effect.gen(function* () {
    const { check, content, file, label, lines, mode, total } = options
    const files = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const screen = yield* Screen
    const show = yield* transferProgress(`${label} ${path.basename(file)}`)
    const part = `${file}.part`
    const write = content.pipe(
      Stream.tap(() =>
        show({ done: Math.min(lines(), total ?? Infinity), total, unit: "steps", lines: lines() })
      ),
      Stream.run(files.sink(part, mode === undefined ? {} : { mode }))
    )
    yield* Effect.andThen(write, check).pipe(
      Effect.andThen(files.rename(part, file)),
      Effect.mapError((error) =>
        error instanceof Failure
          ? error
          : failure(
              `The file ${file} could not be written. Check its folder, the room on the disk and who may write there.`
            )
      ),
      Effect.onError(() => Effect.ignore(files.remove(part))),
      Effect.ensuring(screen.redraw(undefined))
    )
  })
