/**
 * `tropism import FILE`: a project's package-lock.json as objects and relationships.
 */
import { Effect, Path } from "effect"
import { Argument, Command } from "effect/cli"
import { inProject } from "../access.ts"
import { importFile, summarySentence } from "../import-file.ts"
import { printOr } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"

export const importCommand = Command.make(
  "import",
  { file: Argument.String("file").pipe(Argument.withDescription("The path of a package-lock.json")) },
  ({ file }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const screen = yield* Screen
        const summary = yield* importFile(access, (yield* Path.Path).resolve(file))
        yield* printOr(summary, screen.print(summarySentence(summary)))
      })
    )
).pipe(
  Command.withDescription("Import a package-lock.json; importing a changed one updates, creates and deletes"),
  Command.withExamples([
    { command: "tropism import ~/shop/package-lock.json", description: "Import another project" }
  ])
)
