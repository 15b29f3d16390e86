/**
 * `tropism export`: a project's objects and relationships, one JSON object per line.
 */
import { Instant } from "@tropism/api/instant"
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { fileFlag } from "../file-word.ts"
import { inProject } from "../access.ts"
import { exportFile } from "../export-file.ts"
import { printOr } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { placeOf } from "../whole-file.ts"

export const exportCommand = Command.make(
  "export",
  {
    output: fileFlag("output").pipe(
      Flag.withAlias("o"),
      Flag.withMetavar("<file>"),
      Flag.withDescription("The file to write (default: -, standard output)"),
      Flag.optional
    ),
    types: Flag.String("types").pipe(
      Flag.withMetavar("<types>"),
      Flag.withDescription("Only these types (comma-separated) and the relationships between them"),
      Flag.optional
    ),
    asOf: Flag.String("as-of").pipe(
      Flag.withMetavar("<time>"),
      Flag.withDescription("The graph at this time, e.g. 2026-11-20T08:00:00Z"),
      Flag.withSchema(Instant),
      Flag.optional
    )
  },
  ({ output, types, asOf }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const place = yield* placeOf(Option.getOrElse(output, () => "-"))
        const { lines } = yield* exportFile(access, {
          place,
          types: Option.getOrUndefined(types),
          asOf: Option.getOrUndefined(asOf)
        })
        if (place.type === "output") return
        const screen = yield* Screen
        yield* printOr(
          { file: place.shown, lines },
          screen.print(`${lines} lines were written to ${place.shown}.`)
        )
      })
    )
).pipe(
  Command.withShortDescription("Export objects and relationships as JSON lines"),
  Command.withDescription("Export objects and relationships as JSON lines for import"),
  Command.withExamples([
    { command: "tropism export -o graph.jsonl", description: "Write the whole project to a file" },
    { command: "tropism export --types Person | jq .key", description: "Print the keys of one type" }
  ])
)
