/**
 * Writes a file that appears only when it is whole.
 *
 * It is written beside its place, under a name of its own, and moved there when
 * the disk has it; what breaks off, or is found not to be whole, leaves nothing.
 * Who may read the file that it replaces may read it. A link stays a link, and a
 * device or a pipe stays what it is: into those, and to standard output, it is
 * written piece by piece.
 */
import { randomUUID } from "node:crypto"
import { Effect, Exit, FileSystem, Option, Path, Stdio, Stream } from "effect"
import type { PlatformError } from "effect/PlatformError"
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
      return yield* failure(`${argument} is a folder: give a file name.`, exitCodes.usage)
    if (type !== "File") return { type: "stream", file: target, shown: argument }
  }
  const folder = path.dirname(path.resolve(target))
  if (!(yield* Effect.isSuccess(files.access(folder, { writable: true }))))
    return yield* failure(
      `Cannot write to ${folder}: it does not exist or is not writable. Choose another folder.`
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
  return yield* failure(`${file} is a broken link.`, exitCodes.usage)
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
  /** Who may do what with a file that is new; what the system says where it is not told. */
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
    const whole = (
      file: string
    ): Effect.Effect<void, E | Failure | PlatformError, R | FileSystem.FileSystem> =>
      Effect.scoped(
        Effect.gen(function* () {
          const replaced = yield* Effect.option(files.stat(file))
          const kept = Option.getOrUndefined(Option.map(replaced, (facts) => facts.mode & 0o777))
          const part = yield* openPart(file, kept ?? mode)
          yield* Stream.runForEach(shown, part.write)
          yield* check
          // What the system took away from a new file is given back.
          if (kept !== undefined) yield* files.chmod(part.file, kept)
          yield* part.sync
          yield* files.rename(part.file, file)
        })
      )
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
                `The file ${place.shown} could not be written. Check the folder, the free disk space and the permissions.`
              )
      ),
      Effect.ensuring(screen.redraw(undefined))
    )
  })

/** Opens a file beside another one that nobody else writes; it goes with the scope where that fails. */
const openPart = Effect.fnUntraced(function* (beside: string, mode: number | undefined) {
  const files = yield* FileSystem.FileSystem
  const file = `${beside}.${randomUUID().slice(0, 8)}.part`
  const opened = yield* Effect.acquireRelease(
    files.open(file, { flag: "wx", ...(mode === undefined ? {} : { mode }) }),
    (_, exit) => (Exit.isFailure(exit) ? Effect.ignore(files.remove(file)) : Effect.void)
  )
  return { file, sync: opened.sync, write: (bytes: Uint8Array) => opened.writeAll(bytes) }
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
