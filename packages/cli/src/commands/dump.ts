/**
 * `tropism dump` and `tropism restore`: a whole project into a file, and a new project out of one.
 */
import { randomUUID } from "node:crypto"
import type { RestoreLine } from "@tropism/api/dumps-api"
import { ProjectInput } from "@tropism/api/system-api"
import { ProjectId } from "@tropism/domain/ids"
import { Effect, FileSystem, Option, Path, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { fileArgument, fileFlag } from "../file-word.ts"
import { inProject, onServer } from "../access.ts"
import { dumpFile } from "../dump-file.ts"
import { Failure, failure } from "../failure.ts"
import { printOr } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"
import { transferProgress } from "../transfer-progress.ts"
import { placeOf } from "../whole-file.ts"

export const dumpCommand = Command.make(
  "dump",
  {
    output: fileFlag("output").pipe(
      Flag.withAlias("o"),
      Flag.withMetavar("<file>"),
      Flag.withDescription(
        "The file to write, or - for standard output (default: the project's name with .dump)"
      ),
      Flag.optional
    )
  },
  ({ output }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const screen = yield* Screen
        const file = Option.getOrElse(output, () => `${fileNameOf(access.project.name)}.dump`)
        const place = yield* placeOf(file)
        const { rows } = yield* dumpFile(access, place)
        if (place.type === "output") return
        yield* printOr(
          { file, projectId: access.project.id, rows },
          screen.print(
            `The project "${printable(access.project.name)}" was dumped to ${file}: ${rows} rows of one moment.`
          )
        )
      })
    )
).pipe(
  Command.withShortDescription("Write a whole project into a file that restore reads"),
  Command.withDescription("Write a whole project, as it is in one moment, into a file that restore reads"),
  Command.withExamples([
    { command: "tropism dump --project shop -o shop.dump", description: "Everything but secrets and tokens" }
  ])
)

const fileNameOf = (name: string): string =>
  name.replaceAll(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[.-]+/, "") || "project"

export const restoreCommand = Command.make(
  "restore",
  {
    file: fileArgument("file").pipe(Argument.withDescription("The file that dump wrote")),
    name: Flag.String("name").pipe(
      Flag.withDescription("What the new project is called (default: what the dumped one was)"),
      Flag.withSchema(ProjectInput.fields.name),
      Flag.optional
    )
  },
  ({ file, name }) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      const restored = yield* onServer((client) =>
        Effect.gen(function* () {
          const content = yield* openFile(file)
          const id = ProjectId.make(randomUUID())
          const lines = yield* client.dumps.restoreDump({
            query: { id, ...(Option.isSome(name) ? { name: name.value } : {}) },
            payload: content
          })
          return yield* follow(file, lines, id)
        })
      ).pipe(Effect.ensuring(screen.redraw(undefined)))
      const { disabledAgents, keptIds, project, rows } = restored
      yield* printOr(
        restored,
        screen.print(
          `The project "${printable(project.name)}" was made of ${rows} rows: ${project.id}`,
          keptIds
            ? "All that is in it has the ids that it had."
            : "All that is in it has new ids, because some were taken here.",
          ...(disabledAgents === 0
            ? []
            : [
                `${disabledAgents} of its agents are disabled until you enable them, so nothing happens twice.`
              ])
        )
      )
    })
).pipe(
  Command.withDescription("Make a new project of a dump: all of it, or nothing"),
  Command.withExamples([
    { command: "tropism restore shop.dump", description: "For the server's admin" },
    { command: 'tropism restore shop.dump --name "shop, a copy"', description: "Beside the original" }
  ])
)

const openFile = (file: string) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const place = path.resolve(file)
    yield* files
      .access(place, { readable: true })
      .pipe(
        Effect.mapError(() =>
          failure(
            `There is no file ${file} that this user may read. Give the path of a file that dump wrote.`
          )
        )
      )
    return Stream.orDie(files.stream(place))
  })

type Finished = Extract<RestoreLine, { readonly type: "finished" }>

/** Shows how far it has come, and answers what came of it. */
const follow = <E, R>(file: string, lines: Stream.Stream<RestoreLine, E, R>, id: ProjectId) =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const show = yield* transferProgress(`Restoring ${path.basename(file)}`)
    const last = yield* lines.pipe(
      Stream.mapError(() => brokenOff(id)),
      Stream.tap((line) =>
        line.type === "progress" ? show({ done: line.done, total: line.total, unit: "steps" }) : Effect.void
      ),
      Stream.runFold(
        (): RestoreLine | undefined => undefined,
        (_, line) => line
      )
    )
    if (last?.type === "finished") return last satisfies Finished
    return yield* last?.type === "failed" ? failure(last.message) : brokenOff(id)
  })

const brokenOff = (id: ProjectId): Failure =>
  failure(
    `The connection broke during the restore. It was done as a whole or not at all: "tropism projects" lists ${id} if it was; else run the same command again.`
  )
