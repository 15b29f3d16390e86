/**
 * `tropism agents schedule`: when an agent's schedule fires next.
 */
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { inProject } from "../access.ts"
import { findAgent } from "../agents-by-name.ts"
import { printFacts, printOr } from "../print-records.ts"

export const scheduleCommand = Command.make(
  "schedule",
  { agent: Argument.String("agent").pipe(Argument.withDescription("The agent's name or id")) },
  ({ agent }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const { id } = yield* findAgent(access, agent)
        const preview = yield* access.client.agents.schedule({ params: { ...access.params, agentId: id } })
        yield* printOr(
          preview,
          printFacts([
            ["schedule", `${preview.cronSchedule} ${preview.timezone}`],
            [
              "state",
              preview.active ? "active" : "does not fire: the agent is disabled or has another trigger"
            ],
            ["missed", `${preview.catchUp} of them made up for`],
            ["overlap", preview.overlapPolicy],
            ...(preview.waiting
              ? [["waiting", `from ${preview.waiting.from} until ${preview.waiting.until}`] as const]
              : []),
            ...preview.fires.map(
              ({ localTime }, index) => [index === 0 ? "next" : "then", localTime] as const
            )
          ])
        )
      })
    )
).pipe(
  Command.withDescription("Show when an agent's schedule fires next, by its zone's clock"),
  Command.withShortDescription("Show when an agent's schedule fires next")
)
