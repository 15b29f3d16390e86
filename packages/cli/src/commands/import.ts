/**
 * `tropism import FILE…`: files of objects and relationships, or a project's package-lock.json.
 */
import { ImportFormat } from "@tropism/api/transfer-api"
import { ImportId } from "@tropism/domain/ids"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { fileArgument } from "../file-word.ts"
import { type Access, inProject } from "../access.ts"
import { exitCodes } from "../exit-codes.ts"
import { failure } from "../failure.ts"
import { importFile, type ImportRequest, summarySentence } from "../import-file.ts"
import { printOr } from "../print-records.ts"
import { JsonFlag } from "../settings.ts"
import { Screen } from "../terminal/screen.ts"

export const importCommand = Command.make(
  "import",
  {
    files: fileArgument("file").pipe(
      Argument.withDescription("A JSONL or CSV file or a package-lock.json; - is standard input"),
      Argument.variadic({ min: 1 })
    ),
    format: Flag.Literals("format", ImportFormat.literals).pipe(
      Flag.withDescription("What the files are (default: by name and content; standard input: jsonl)"),
      Flag.optional
    ),
    type: Flag.String("type").pipe(
      Flag.withDescription("CSV: the type of rows that name none"),
      Flag.optional
    ),
    key: Flag.String("key").pipe(
      Flag.withDescription('CSV: the column whose values are the keys (default: "key")'),
      Flag.optional
    ),
    delimiter: Flag.String("delimiter").pipe(
      Flag.withDescription(
        "CSV: what stands between fields, or its name: comma, semicolon, tab, pipe (default: as the first line shows)"
      ),
      Flag.optional
    ),
    decimal: Flag.Literals("decimal", ["comma", "point"]).pipe(
      Flag.withDescription("CSV: the decimal mark of all numbers (default: as each column shows)"),
      Flag.optional
    ),
    untrusted: Flag.Boolean("untrusted").pipe(
      Flag.withDescription("Nobody vouches for what the files say: agents that read it may only suggest"),
      Flag.withDefault(false)
    ),
    resume: Flag.String("resume").pipe(
      Flag.withMetavar("<import>"),
      Flag.withDescription("Go on with this import: the same file, behind what is committed of it"),
      Flag.withSchema(ImportId),
      Flag.optional
    )
  },
  ({ files, ...flags }) =>
    inProject((access) =>
      Effect.gen(function* () {
        if (Option.isSome(flags.resume) && files.length > 1)
          return yield* failure("--resume goes on with one file. Name that file alone.", exitCodes.usage)
        const results = yield* Effect.forEach(files, (file) =>
          importOne(
            access,
            {
              file,
              format: Option.getOrUndefined(flags.format),
              type: Option.getOrUndefined(flags.type),
              key: Option.getOrUndefined(flags.key),
              delimiter: Option.getOrUndefined(flags.delimiter),
              decimal: Option.getOrUndefined(flags.decimal),
              untrusted: flags.untrusted,
              resume: Option.getOrUndefined(flags.resume)
            },
            files.length > 1
          )
        )
        yield* printOr(results.length === 1 ? results[0] : results, Effect.void)
        const failed = results.reduce((sum, { failed = 0 }) => sum + failed, 0)
        if (failed > 0)
          return yield* failure(
            `${failed} ${failed === 1 ? "line was" : "lines were"} not imported. Mend ${failed === 1 ? "it" : "them"} and import the file again: what is there already is left as it is.`
          )
      })
    )
).pipe(
  Command.withShortDescription("Import objects and relationships: JSON lines, CSV, lockfiles"),
  Command.withDescription(
    "Import objects and relationships; importing a file again changes only what is different"
  ),
  Command.withExamples([
    {
      command: "tropism import people.jsonl",
      description: "Import objects and relationships, one JSON object per line"
    },
    {
      command: "tropism import people.csv --type Person --key email",
      description: "Import the rows of a table"
    },
    {
      command: "tropism import ~/shop/package-lock.json",
      description: "Import another project's dependencies"
    }
  ])
)

/** Imports a file, says what it did, and answers the record for JSON. */
const importOne = (access: Access, request: ImportRequest, isOneOfSeveral: boolean) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const { summary, badLines } = yield* importFile(access, request)
    const file = isOneOfSeveral ? `${request.file}: ` : ""
    if (!(yield* JsonFlag)) yield* screen.print(`${file}${summarySentence(summary)}`)
    return {
      ...(isOneOfSeveral ? { file: request.file } : {}),
      ...summary,
      ...(badLines.length === 0 ? {} : { badLines })
    }
  })
