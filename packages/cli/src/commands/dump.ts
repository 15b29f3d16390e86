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
          screen.print(`The project "${printable(access.project.name)}" was dumped to ${file}: ${rows} rows.`)
        )
      })
    )
).pipe(
  Command.withShortDescription("Dump a whole project to a file"),
  Command.withDescription("Dump a whole project, as a consistent snapshot, to a file for restore"),
  Command.withExamples([
    {
      command: "tropism dump --project shop -o shop.dump",
      description: "Includes everything except secrets and tokens"
    }
  ])
)

const fileNameOf = (name: string): string =>
  name.replaceAll(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[.-]+/, "") || "project"

export const restoreCommand = Command.make(
  "restore",
  {
    file: fileArgument("file").pipe(Argument.withDescription("The file written by dump")),
    name: Flag.String("name").pipe(
      Flag.withDescription("The name of the new project (default: the name in the dump)"),
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
          `The project "${printable(project.name)}" was restored from ${rows} rows: ${project.id}`,
          keptIds ? "All ids are unchanged." : "All ids are new, because some already exist on this server.",
          ...(disabledAgents === 0
            ? []
            : [
                `${disabledAgents} of its agents are disabled until you enable them, so that no action runs twice.`
              ])
        )
      )
    })
).pipe(
  Command.withDescription("Restore a dump as a new project, all or nothing"),
  Command.withExamples([
    { command: "tropism restore shop.dump", description: "Restore it (server admin only)" },
    {
      command: 'tropism restore shop.dump --name "shop, a copy"',
      description: "Restore it next to the original"
    }
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
        Effect.mapError(() => failure(`File not found or not readable: ${file}. Give the path of a dump.`))
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
    `The connection was lost during the restore. It completed fully or not at all: "tropism projects" lists ${id} if it completed; otherwise run the command again.`
  )
