/**
 * `tropism run AGENT`: triggers an agent by hand and waits for the run.
 *
 * The run belongs to the server: leaving this command does not cancel it.
 */
import { isTerminal, type Run } from "@tropism/domain/run"
import { Effect, Option, Schedule, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { findAgent } from "../agents-by-name.ts"
import { type Access, inProject } from "../access.ts"
import { failure } from "../failure.ts"
import { limits } from "../limits.ts"
import { showStatus } from "../notice.ts"
import { printFacts, printOr } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { runFacts } from "./runs.ts"

export const runCommand = Command.make(
  "run",
  {
    agent: Argument.String("agent").pipe(Argument.withDescription("The agent's name or id")),
    input: Flag.String("input").pipe(
      Flag.withMetavar("<json>"),
      Flag.withDescription("What the agent's prompt sees as input"),
      Flag.withSchema(Schema.fromJsonString(Schema.Json)),
      Flag.optional
    ),
    detach: Flag.Boolean("detach").pipe(
      Flag.withDescription("Do not wait for the run to end"),
      Flag.withDefault(false)
    )
  },
  ({ agent, detach, input }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const screen = yield* Screen
        const { id, name } = yield* findAgent(access, agent)
        const started = yield* access.client.agents.trigger({
          params: { ...access.params, agentId: id },
          query: { wait: "false" },
          payload: Option.isSome(input) ? { input: input.value } : {}
        })
        yield* showStatus(`${name} is at work …`)
        const run = detach ? started : yield* awaitEnd(access, started)
        yield* screen.redraw(undefined)
        const toolCalls = yield* access.client.runs.toolCalls({
          params: { ...access.params, runId: run.id },
          query: { limit: 200 }
        })
        yield* printOr(run, printFacts(runFacts(run, toolCalls.items.length, screen.paint)))
        if (run.status === "failed" || run.status === "cancelled") {
          return yield* failure(
            run.status === "failed"
              ? `The run failed: ${run.errorMessage ?? "no reason was recorded"}`
              : "The run was cancelled."
          )
        }
      })
    )
).pipe(
  Command.withDescription("Trigger an agent by hand and wait for the run to end"),
  Command.withExamples([
    { command: "tropism run digest --input '{\"days\":7}'", description: "Run the agent digest" }
  ])
)

const isOver = (run: Run): boolean => isTerminal(run.status) || run.status === "paused"

const awaitEnd = (access: Access, started: Run) =>
  isOver(started)
    ? Effect.succeed(started)
    : access.client.runs.get({ params: { ...access.params, runId: started.id } }).pipe(
        Effect.repeat({ until: isOver, schedule: Schedule.spaced(limits.runPollBusyMs) }),
        Effect.timeoutOrElse({
          duration: limits.runWaitMs,
          orElse: () =>
            Effect.fail(
              failure(
                `The run ${started.id} is still at work; it goes on without this command. "tropism runs show ${started.id}" shows it.`
              )
            )
        })
      )
