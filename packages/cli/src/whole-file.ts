/**
 * Writes a file that appears only when it is whole.
 *
 * It is written beside its place and moved there at the end; what breaks off, or
 * is found not to be whole, leaves nothing. A link stays a link, and a device or
 * a pipe stays what it is: into those, and to standard output, it is written
 * piece by piece.
 */
import { Effect, FileSystem, Option, Path, Stdio, Stream } from "effect"
import { exitCodes } from "./exit-codes.ts"
import { Failure, failure, outputLost } from "./failure.ts"
import { limits } from "./limits.ts"
import { onlyPrinting } from "./only-printing.ts"
import { Screen } from "./terminal/screen.ts"
import { transferProgress } from "./transfer-progress.ts"

/** Where something is written, judged before anybody is asked for it. */
export interface Place {
  readonly type: "file" | "stream" | "output"
  /** Where it lies, behind all links. */
  readonly file: string
  /** As whoever named it called it. */
  readonly shown: string
}

/** The place that an argument names: a file, what a link leads to, or `-` for standard output. */
export const placeOf = Effect.fnUntraced(function* (
  argument: string
): Effect.fn.Return<Place, Failure, FileSystem.FileSystem | Path.Path> {
  if (argument === "-") return { type: "output", file: "", shown: "standard output" }
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const target = yield* linkedFrom(argument)
  const facts = yield* Effect.option(files.stat(target))
  if (Option.isSome(facts)) {
    const { type } = facts.value
    if (type === "Directory")
      return yield* failure(`${argument} is a folder: name the file that is to be written.`, exitCodes.usage)
    if (type !== "File") return { type: "stream", file: target, shown: argument }
  }
  const folder = path.dirname(path.resolve(target))
  if (!(yield* Effect.isSuccess(files.access(folder, { writable: true }))))
    return yield* failure(
      `No file can be written in ${folder}: it is not there, or this user may not write there. Nothing was asked for.`
    )
  return { type: "file", file: target, shown: argument }
})

/** What a link leads to in the end, also where nothing is there yet; the path itself where it is no link. */
const linkedFrom = Effect.fnUntraced(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  let at = file
  for (let links = 0; links < limits.followedLinks; links += 1) {
    const next = yield* Effect.option(files.readLink(at))
    if (Option.isNone(next)) return at
    at = path.resolve(path.dirname(at), next.value)
  }
  return yield* failure(`${file} is a link that leads nowhere.`, exitCodes.usage)
})

/** What is told of a long transfer. */
interface Progress {
  readonly label: string
  /** Lines that have come so far, and how many are expected. */
  readonly lines: () => number
  readonly total: number | undefined
}

export const writeWholeFile = <E, R>(options: {
  readonly content: Stream.Stream<Uint8Array, E, R>
  readonly place: Place
  readonly progress?: Progress
  /** Who may do what with the file; what the system says where it is not told. */
  readonly mode?: number
  /** Fails where what has come is not whole. */
  readonly check?: Effect.Effect<void, Failure>
}) =>
  Effect.gen(function* () {
    const { check = Effect.void, content, mode, place, progress } = options
    const files = yield* FileSystem.FileSystem
    const screen = yield* Screen
    const stdio = yield* Stdio.Stdio
    const shown = progress === undefined ? content : yield* telling(content, place, progress)
    const whole = (file: string) => {
      const part = `${file}.part`
      return Stream.run(shown, files.sink(part, mode === undefined ? {} : { mode })).pipe(
        Effect.andThen(check),
        Effect.andThen(files.rename(part, file)),
        Effect.onError(() => Effect.ignore(files.remove(part)))
      )
    }
    const written = {
      file: whole,
      stream: (file: string) => Effect.andThen(Stream.run(shown, files.sink(file)), check),
      output: () =>
        onlyPrinting.pipe(
          Effect.andThen(Stream.run(content, stdio.stdout({ endOnDone: false }))),
          Effect.andThen(check)
        )
    }[place.type](place.file)
    yield* written.pipe(
      Effect.mapError((error) =>
        error instanceof Failure
          ? error
          : place.type === "output"
            ? outputLost(error)
            : failure(
                `The file ${place.shown} could not be written. Check its folder, the room on the disk and who may write there.`
              )
      ),
      Effect.ensuring(screen.redraw(undefined))
    )
  })

/** The same content, of which it is told how far it has come. */
const telling = Effect.fnUntraced(function* <E, R>(
  content: Stream.Stream<Uint8Array, E, R>,
  place: Place,
  { label, lines, total }: Progress
) {
  const path = yield* Path.Path
  const show = yield* transferProgress(`${label} ${path.basename(place.shown)}`)
  return Stream.tap(content, () =>
    show({ done: Math.min(lines(), total ?? Infinity), total, unit: "steps", lines: lines() })
  )
})
