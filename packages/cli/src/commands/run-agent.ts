/**
 * `tropism run AGENT`: triggers an agent by hand and waits for the run.
 *
 * The run belongs to the server: leaving this command does not cancel it.
 */
import { isResumable, isTerminal, type Run } from "@tropism/domain/run"
import { Effect, Option, Schedule, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { findAgent } from "../agents-by-name.ts"
import { type Access, inProject, withClient } from "../access.ts"
import { exitCodes } from "../exit-codes.ts"
import { failure } from "../failure.ts"
import { limits } from "../limits.ts"
import { showStatus } from "../notice.ts"
import { printFacts, printOr } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { type Begun, withinWait } from "../waiting-for-end.ts"
import { whenAnswered, whenReady } from "../waiting-for-server.ts"
import { runFacts } from "./runs.ts"

/** JSON, or text as it is: what begins like JSON and is none is a mistake, and no text. */
const RunInput = Schema.Union([
  Schema.fromJsonString(Schema.Json),
  Schema.String.check(Schema.isPattern(/^\s*[^\s{["]/))
])

export const runCommand = Command.make(
  "run",
  {
    agent: Argument.String("agent").pipe(Argument.withDescription("The agent's name or id")),
    input: Flag.String("input").pipe(
      Flag.withMetavar("<json or text>"),
      Flag.withDescription("The input for the agent's prompt"),
      Flag.withSchema(RunInput),
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
        const { id, name } = yield* whenReady(access.connection.url, findAgent(access, agent))
        // Made again under one key until it is answered: a server that is started anew meanwhile begins one run of it.
        const started = yield* withClient(
          access.connection,
          (patient) =>
            patient.agents.trigger({
              params: { ...access.params, agentId: id },
              query: { wait: "false" },
              payload: Option.isSome(input) ? { input: input.value } : {}
            }),
          limits.triggerRetries
        )
        yield* showStatus(`${name} is running …`)
        const run = detach ? started : yield* awaitEnd(access, started)
        yield* screen.redraw(undefined)
        const toolCalls = yield* withinWait(
          access,
          begunOf(run),
          whenAnswered(
            access.client.runs.toolCalls({
              params: { ...access.params, runId: run.id },
              query: { limit: 200 }
            })
          )
        )
        yield* printOr(run, printFacts(runFacts(run, toolCalls.items.length, screen.paint)))
        if (run.status === "failed")
          return yield* failure(`The run failed: ${run.errorMessage ?? "no reason recorded"}`)
        if (run.status === "cancelled") return yield* failure(cancelledSentence(run))
        if (run.status === "paused" && !detach)
          return yield* failure(
            run.pauseReason === "question"
              ? `The run is paused and waits for an answer: see "tropism tasks".`
              : `The run is paused (${run.pauseReason ?? "no reason given"}): "tropism runs resume ${run.id}" resumes it.`,
            exitCodes.waits
          )
      })
    )
).pipe(
  Command.withDescription("Trigger an agent by hand and wait for the run to end"),
  Command.withExamples([
    { command: "tropism run digest --input '{\"days\":7}'", description: "Run the agent digest" }
  ])
)

const cancelledSentence = ({ cancelledBy, errorMessage }: Run): string => {
  const fate = cancelledBy === null ? "The run was cancelled" : `${cancelledBy} cancelled the run`
  return errorMessage === null ? `${fate}.` : `${fate}: ${errorMessage}`
}

/** Whether nothing goes on before somebody does something; what waits for other runs goes on by itself. */
const isOver = ({ pauseReason, status }: Run): boolean =>
  isTerminal(status) ||
  (status === "paused" && pauseReason !== null && (pauseReason === "question" || isResumable(pauseReason)))

const awaitEnd = (access: Access, started: Run) =>
  isOver(started)
    ? Effect.succeed(started)
    : withinWait(
        access,
        begunOf(started),
        whenAnswered(access.client.runs.get({ params: { ...access.params, runId: started.id } })).pipe(
          Effect.repeat({ until: isOver, schedule: Schedule.spaced(limits.runPollBusyMs) })
        )
      )

const begunOf = (run: Run): Begun => ({
  name: `The run ${run.id}`,
  shownBy: `tropism runs show ${run.id}`,
  isOver: isOver(run)
})
