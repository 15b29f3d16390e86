/**
 * `tropism why OBJECT.PROPERTY`: why a value is what it is, back to the root event.
 */
import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { inProject } from "../access.ts"
import { findReferred } from "../object-reference.ts"
import { printOr } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"
import { deletionLines, whyLines } from "../why-lines.ts"

export const whyCommand = Command.make(
  "why",
  {
    reference: Argument.String("reference").pipe(
      Argument.withDescription("Type/key.property or id.property; without a property, all properties")
    ),
    property: Flag.String("property").pipe(
      Flag.withDescription("The property, if the key contains dots"),
      Flag.optional
    )
  },
  ({ reference, property }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const screen = yield* Screen
        const { object, provenance } = yield* findReferred(access, reference, property)
        const title = `${object.type} ${printable(object.key ?? object.id)}, version ${object.version}`
        const stories = provenance.properties.map((one) => whyLines(provenance, one, screen.paint))
        yield* printOr(
          provenance,
          screen.print(
            title,
            ...deletionLines(provenance),
            ...(stories.length === 0 ? ["No properties."] : stories.flatMap((lines) => ["", ...lines]))
          )
        )
      })
    )
).pipe(
  Command.withShortDescription("Show where a value comes from"),
  Command.withDescription("Show where a value comes from, back to the root event"),
  Command.withExamples([
    { command: "tropism why Package/left-pad.license", description: "Show who set the license, and why" },
    { command: "tropism why Package/left-pad", description: "Show all properties of the package" }
  ])
)
