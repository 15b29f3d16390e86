/**
 * `tropism kill-switch`: stops every agent of a project, or of the server, and lets them go on.
 */
import { StopReason, type Stop } from "@tropism/domain/kill-switch"
import { Clock, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { inProject, onServer } from "../access.ts"
import { printOr } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"
import { formatAge } from "../terminal/time.ts"

const server = Flag.Boolean("server").pipe(
  Flag.withDescription("The kill switch of the whole server, not of the project"),
  Flag.withDefault(false)
)

const reason = Flag.String("reason").pipe(
  Flag.withDescription("The reason, shown to anyone who is blocked"),
  Flag.withSchema(StopReason)
)

/** Reads or turns a switch. */
const turn = (ofServer: boolean, payload?: { readonly stopped: boolean; readonly reason?: string }) =>
  ofServer
    ? onServer(({ killSwitch }) =>
        payload === undefined ? killSwitch.ofServer() : killSwitch.setServer({ payload })
      )
    : inProject(({ client: { killSwitch }, params }) =>
        payload === undefined ? killSwitch.ofProject({ params }) : killSwitch.setProject({ params, payload })
      )

const print = ({ stopped }: { readonly stopped: Stop | null }) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const now = yield* Clock.currentTimeMillis
    yield* printOr(
      { stopped },
      screen.print(stopped === null ? "The kill switch is off." : sentenceOf(stopped, now))
    )
  })

const sentenceOf = (stop: Stop, now: number): string =>
  `All agents of this ${stop.scope} are stopped, since ${formatAge(stop.stoppedAt, now)}, by ${printable(stop.stoppedBy)}: ${printable(stop.reason)}`

const status = Command.make("kill-switch", { server }, (flags) =>
  Effect.flatMap(turn(flags.server), print)
).pipe(
  Command.withShortDescription("Stop all agents, resume them, or show the state"),
  Command.withDescription("Show whether the agents are stopped, stop them, or resume them"),
  Command.withExamples([
    {
      command: 'tropism kill-switch on --reason "It deletes too much"',
      description: "Stop the project's agents"
    },
    { command: "tropism kill-switch off", description: "Resume them" }
  ])
)

const on = Command.make("on", { server, reason }, (flags) =>
  Effect.flatMap(turn(flags.server, { stopped: true, reason: flags.reason }), print)
).pipe(Command.withDescription("Stop all agents; events are recorded and queued"))

const off = Command.make("off", { server }, (flags) =>
  Effect.flatMap(turn(flags.server, { stopped: false }), print)
).pipe(Command.withDescription("Resume the agents"))

export const killSwitchCommand = status.pipe(Command.withSubcommands([on, off]))
