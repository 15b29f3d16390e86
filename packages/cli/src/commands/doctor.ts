/**
 * `tropism doctor`: looks at everything that a server needs, names what is wrong and says the command that mends it.
 *
 * It changes nothing, and works while no server does.
 */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import type { FindingState } from "@tropism/domain/finding"
import { failure } from "../failure.ts"
import { printOr } from "../print-records.ts"
import { readEnvironment } from "../settings.ts"
import { Screen } from "../terminal/screen.ts"
import type { Paint } from "../terminal/paint.ts"
import { printable } from "../terminal/text.ts"

const online = Flag.Boolean("online").pipe(
  Flag.withDescription("Also check the API keys with the model providers (free)"),
  Flag.withDefault(false)
)

const painted = (paint: Paint): Readonly<Record<FindingState, (text: string) => string>> => ({
  ok: paint.good,
  warn: paint.bold,
  fault: paint.bad
})

export const doctorCommand = Command.make("doctor", { online }, ({ online }) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const environment = yield* readEnvironment
    // Loaded here and not above: they know the server, and no other command waits for that.
    const [{ examineMachine }, { examineStore }, { examineServer }, { examineModels }] =
      yield* Effect.promise(() =>
        Promise.all([
          import("../doctor/machine.ts"),
          import("../doctor/database.ts"),
          import("../doctor/server.ts"),
          import("../doctor/models.ts")
        ])
      )
    const parts = yield* Effect.all(
      [
        examineMachine(environment),
        examineStore(environment),
        examineServer(environment),
        examineModels(online)
      ],
      { concurrency: "unbounded" }
    )
    const findings = parts.flat()
    const paint = painted(screen.paint)
    yield* printOr(
      findings,
      screen.print(
        ...findings.flatMap(({ check, detail, fix, state }) => [
          `${paint[state](state.padEnd(5))}  ${check.padEnd(13)}  ${printable(detail)}`,
          ...(fix === null ? [] : [`${" ".repeat(22)}${screen.paint.dim("fix:")} ${printable(fix)}`])
        ])
      )
    )
    const faults = findings.filter(({ state }) => state === "fault").length
    if (faults > 0) return yield* failure(faults === 1 ? "1 problem found." : `${faults} problems found.`)
  })
).pipe(
  Command.withShortDescription("Diagnose this installation and suggest fixes"),
  Command.withDescription(
    "Check everything that a server needs and suggest fixes; exit code 1 if there is a problem"
  ),
  Command.withExamples([
    { command: "tropism doctor", description: "Check the installation; the server need not be running" },
    { command: "tropism doctor --online", description: "Also check the model providers" }
  ])
)
