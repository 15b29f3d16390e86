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
      Argument.withDescription("A JSONL or CSV file or a package-lock.json; - reads standard input"),
      Argument.variadic({ min: 1 })
    ),
    format: Flag.Literals("format", ImportFormat.literals).pipe(
      Flag.withDescription("The file format (default: detected; standard input: jsonl)"),
      Flag.optional
    ),
    type: Flag.String("type").pipe(
      Flag.withDescription("CSV: the type of rows without a type"),
      Flag.optional
    ),
    key: Flag.String("key").pipe(Flag.withDescription('CSV: the key column (default: "key")'), Flag.optional),
    delimiter: Flag.String("delimiter").pipe(
      Flag.withDescription(
        "CSV: the field separator or its name: comma, semicolon, tab, pipe (default: detected from the first line)"
      ),
      Flag.optional
    ),
    decimal: Flag.Literals("decimal", ["comma", "point"]).pipe(
      Flag.withDescription("CSV: the decimal mark of all numbers (default: detected for each column)"),
      Flag.optional
    ),
    untrusted: Flag.Boolean("untrusted").pipe(
      Flag.withDescription("Mark the data as untrusted: agents that read it can only suggest"),
      Flag.withDefault(false)
    ),
    resume: Flag.String("resume").pipe(
      Flag.withMetavar("<import>"),
      Flag.withDescription("Resume this import with the same file, after the committed lines"),
      Flag.withSchema(ImportId),
      Flag.optional
    )
  },
  ({ files, ...flags }) =>
    inProject((access) =>
      Effect.gen(function* () {
        if (Option.isSome(flags.resume) && files.length > 1)
          return yield* failure("--resume takes exactly one file.", exitCodes.usage)
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
            `${failed} ${failed === 1 ? "line was" : "lines were"} not imported. Fix ${failed === 1 ? "it" : "them"} and import the file again; existing data is left unchanged.`
          )
      })
    )
).pipe(
  Command.withShortDescription("Import objects and relationships: JSON lines, CSV, lockfiles"),
  Command.withDescription(
    "Import objects and relationships; importing a file again only updates what differs"
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
