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
              preview.active ? "active" : "no scheduled runs: the agent is disabled or has another trigger"
            ],
            ["missed", `${preview.catchUp} of them missed and run later`],
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
  Command.withDescription("Show the next scheduled runs of an agent, in its time zone"),
  Command.withShortDescription("Show the next scheduled runs of an agent")
)
