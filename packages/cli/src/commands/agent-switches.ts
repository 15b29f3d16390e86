/**
 * `tropism agents enable` and `disable`: whether agents are woken, by name or all of them.
 */
import type { Agent } from "@tropism/domain/agent"
import { Effect, Result } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Access, inProject } from "../access.ts"
import { pickAgent, readAgents } from "../agents-by-name.ts"
import { exitCodes } from "../exit-codes.ts"
import { failTogether, failure, requestFailure } from "../failure.ts"
import { limits } from "../limits.ts"
import { printOr } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"

const switchCommand = <Name extends string>(name: Name, enabled: boolean) =>
  Command.make(
    name,
    {
      agents: Argument.String("agent").pipe(
        Argument.withDescription("Names or ids of agents"),
        Argument.variadic()
      ),
      all: Flag.Boolean("all").pipe(
        Flag.withDescription(`Every agent of the project that is ${enabled ? "disabled" : "enabled"}`),
        Flag.withDefault(false)
      )
    },
    ({ agents, all }) =>
      Effect.gen(function* () {
        if (all === agents.length > 0)
          return yield* failure("Name the agents by name or id, or use --all.", exitCodes.usage)
        yield* inProject((access) => switchThem(access, agents, enabled))
      })
  )

export const enableCommand = switchCommand("enable", true).pipe(
  Command.withDescription("Enable agents: they are triggered by new events, not by missed ones"),
  Command.withShortDescription("Enable agents"),
  Command.withExamples([
    { command: "tropism agents enable licence-review", description: "Enable one agent" },
    { command: "tropism agents enable --all", description: "Enable all, e.g. after a restore" }
  ])
)

export const disableCommand = switchCommand("disable", false).pipe(
  Command.withDescription("Disable agents; their running runs are cancelled at the next step"),
  Command.withShortDescription("Disable agents and cancel their running runs"),
  Command.withExamples([
    { command: "tropism agents disable licence-review", description: "Disable one agent" }
  ])
)

/** One that cannot be changed does not keep the others from it; without references it is all that are otherwise. */
const switchThem = Effect.fnUntraced(function* (
  access: Access,
  references: ReadonlyArray<string>,
  enabled: boolean
) {
  const screen = yield* Screen
  const agents = yield* readAgents(access)
  const wanted =
    references.length === 0
      ? agents.filter((agent) => agent.enabled !== enabled).map(({ id }) => id)
      : references
  const results = yield* Effect.forEach(
    [...new Set(wanted)],
    (reference) =>
      pickAgent(agents, reference).pipe(
        Effect.flatMap((agent) => switchOne(access, agent, enabled)),
        Effect.mapError((error) => requestFailure(error, access.connection.url)),
        Effect.result
      ),
    { concurrency: limits.requestsAtOnce }
  )
  const done = results.filter(Result.isSuccess).map(({ success }) => success)
  const word = enabled ? "enabled" : "disabled"
  yield* printOr(
    done.map(({ agent }) => agent),
    screen.print(
      ...(results.length === 0 ? [`Every agent of the project is ${word} already.`] : []),
      ...done.map(({ agent, isChanged }) =>
        isChanged
          ? `${printable(agent.name)} is ${word} now, as version ${agent.version}.`
          : `${printable(agent.name)} was ${word} already.`
      )
    )
  )
  const failures = results.filter(Result.isFailure).map((result) => result.failure)
  yield* failTogether(failures, done.length === 0)
})

const switchOne = ({ client, params }: Access, agent: Agent, enabled: boolean) =>
  agent.enabled === enabled
    ? Effect.succeed({ agent, isChanged: false })
    : Effect.map(
        client.agents.update({
          params: { ...params, agentId: agent.id },
          headers: {},
          payload: { enabled }
        }),
        (changed) => ({ agent: changed, isChanged: true })
      )
