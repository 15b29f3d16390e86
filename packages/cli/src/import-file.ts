/**
 * Sends a lockfile to the server and shows how far the import has come.
 *
 * The import is idempotent on the server: what is already there makes no
 * version and no event, so after a broken connection the same command again is
 * right. This file judges only what would be pointless to send.
 */
import { type ImportLine, importMaxBytes } from "@tropism/api/graph-api"
import { Clock, Effect, FileSystem, Path, Stream } from "effect"
import type { Access } from "./access.ts"
import { failure } from "./failure.ts"
import { limits } from "./limits.ts"
import { JsonFlag } from "./settings.ts"
import { drawBar, milestone } from "./terminal/progress-bar.ts"
import { Screen } from "./terminal/screen.ts"

export type ImportSummary = Extract<ImportLine, { readonly type: "finished" }>

/** Imports a file and returns what changed. */
export const importFile = (access: Access, file: string) =>
  Effect.gen(function* () {
    yield* checkFile(file)
    const screen = yield* Screen
    const files = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const label = `Importing ${path.basename(file)}`
    // A project that does not say its name is called after its folder.
    const name = path.basename(path.dirname(path.resolve(file)))
    const lines = yield* access.client.feed.import({
      params: access.params,
      query: { format: "package-lock", ...(name === "" ? {} : { name }) },
      payload: files.stream(file).pipe(Stream.orDie)
    })
    const show = yield* progressShower(label)
    const last = yield* lines.pipe(
      Stream.mapError(() => failure(brokenOff)),
      Stream.tap((line) => (line.type === "progress" ? show(line.done, line.total) : Effect.void)),
      Stream.runFold(
        (): ImportLine | undefined => undefined,
        (_, line) => line
      ),
      Effect.ensuring(screen.redraw(undefined))
    )
    if (last?.type === "finished") return last
    return yield* failure(last?.type === "failed" ? `The import stopped: ${last.message}` : brokenOff)
  })

const brokenOff =
  "The connection broke during the import. Run the same command again: what is already there is left as it is."

/** Draws the bar on a terminal, at most every so often; elsewhere prints a line for each quarter, or nothing where JSON is wanted. */
const progressShower = (label: string) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const isJson = yield* JsonFlag
    let drawnAt = 0
    let shown = 0
    return (done: number, total: number) =>
      Effect.gen(function* () {
        const progress = { label, done, total }
        if (screen.isLive) {
          const now = yield* Clock.currentTimeMillis
          if (done < total && now - drawnAt < limits.redrawMs) return
          drawnAt = now
          return yield* screen.redraw((columns) => drawBar(progress, columns, screen.paint))
        }
        if (isJson) return
        const quarter = milestone(shown, progress)
        shown = done
        if (quarter !== undefined) yield* screen.print(`${label}: ${done} of ${total}`)
      })
  })

const checkFile = (file: string) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const facts = yield* files
      .stat(file)
      .pipe(
        Effect.mapError((error) =>
          failure(
            error.reason._tag === "NotFound"
              ? `There is no file ${file}. Give the path of a package-lock.json.`
              : `The file ${file} cannot be read (${error.reason._tag}). Check who may read it.`
          )
        )
      )
    if (facts.type !== "File")
      return yield* failure(`${file} is not a file. Give the path of a package-lock.json.`)
    if (Number(facts.size) > importMaxBytes) {
      return yield* failure(
        `${file} has ${Number(facts.size)} bytes; an import takes at most ${importMaxBytes}.`
      )
    }
    yield* files
      .access(file, { readable: true })
      .pipe(
        Effect.mapError(() =>
          failure(`The file ${file} may not be read by this user. Check who may read it.`)
        )
      )
  })

/** What an import did, as a sentence. */
export const summarySentence = (summary: ImportSummary): string => {
  const objects = counts([
    [summary.created, "created"],
    [summary.updated, "updated"],
    [summary.deleted, "deleted"],
    [summary.unchanged, "unchanged"]
  ])
  const relationships = counts([
    [summary.relationshipsCreated, "created"],
    [summary.relationshipsDeleted, "deleted"]
  ])
  return `Objects: ${objects}. Relationships: ${relationships}.`
}

const counts = (pairs: ReadonlyArray<readonly [number, string]>): string => {
  const told = pairs.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
  return told.length === 0 ? "no change" : told.join(", ")
}
