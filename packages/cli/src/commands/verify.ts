/**
 * `tropism verify`: folds every object, relationship and context anew and tells every difference.
 */
import type { Verification } from "@tropism/domain/verification"
import { Effect } from "effect"
import { Command } from "effect/cli"
import { inProject } from "../access.ts"
import { failure } from "../failure.ts"
import { printOr } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"

const verify = Command.make("verify", {}, () =>
  inProject(({ client, params }) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      const found = yield* client.verification.verify({ params })
      yield* printOr(found, screen.print(linesOf(found).join("\n")))
      if (found.differenceCount > 0)
        return yield* failure(`Differences found: ${found.differenceCount} places.`)
    })
  )
)

const linesOf = ({ checked, differenceCount, differences }: Verification): ReadonlyArray<string> => [
  `Replayed ${checked.objects} objects and ${checked.relationships} relationships from ${checked.versions} versions,`,
  `and ${checked.contexts} contexts with ${checked.runs} runs from ${checked.contextEvents} events.`,
  ...(differenceCount === 0
    ? ["All records match the logs."]
    : differences.map(
        ({ detail, id, kind, rule }) => `${kind} ${printable(id)}  ${rule}  ${printable(detail)}`
      )),
  ...(differenceCount > differences.length ? [`… and ${differenceCount - differences.length} more`] : [])
]

export const verifyCommand = verify.pipe(
  Command.withShortDescription("Check that all records match their logs"),
  Command.withDescription("Replay all logs of the project and report where the records differ"),
  Command.withExamples([{ command: "tropism verify", description: "Exit code 1 if anything differs" }])
)
