/**
 * `tropism runs`: what the agents did, newest first, and one run step by step.
 */
import { Instant } from "@tropism/api/instant"
import { ResumeInput } from "@tropism/api/runs-api"
import { RunId } from "@tropism/domain/ids"
import { type Run, RunStatus, Trigger } from "@tropism/domain/run"
import { Clock, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { findAgent } from "../agents-by-name.ts"
import { inProject, readPages } from "../access.ts"
import { contextEventName, contextEventText, runAgentText, triggerText } from "../event-text.ts"
import { type Fact, printFacts, printOr, printRecords } from "../print-records.ts"
import { renderSteps } from "../step-table.ts"
import { type Paint, paintState } from "../terminal/paint.ts"
import { Screen } from "../terminal/screen.ts"
import { renderTable } from "../terminal/table.ts"
import { printable } from "../terminal/text.ts"
import { clockTime, formatAge, formatDuration } from "../terminal/time.ts"
import { typed } from "../typed-input.ts"
import { saidAtEnd } from "../run-line.ts"
import { encodeLog } from "./context-log.ts"
import { taintText } from "../taint-text.ts"
import { limitFlag } from "./limit-flag.ts"

const runArgument = Argument.String("run").pipe(
  Argument.withDescription("A run's id"),
  Argument.withSchema(RunId)
)

const instant = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("<instant>"),
    Flag.withDescription(description),
    Flag.withSchema(Instant),
    Flag.optional
  )

const list = Command.make(
  "runs",
  {
    status: Flag.Literals("status", RunStatus.literals).pipe(
      Flag.withDescription("Only runs with this status"),
      Flag.optional
    ),
    agent: Flag.String("agent").pipe(
      Flag.withDescription("Only runs of this agent, by name or id"),
      Flag.optional
    ),
    parent: Flag.String("parent").pipe(
      Flag.withDescription("Only sub-agent runs of this run"),
      Flag.withSchema(RunId),
      Flag.optional
    ),
    trigger: Flag.Literals("trigger", Trigger.fields.type.literals).pipe(
      Flag.withDescription("Only runs with this trigger"),
      Flag.optional
    ),
    from: instant("from", "Only runs created at or after this time, e.g. 2026-11-20T23:30:00Z"),
    to: instant("to", "Only runs created before this time"),
    query: Flag.String("query").pipe(
      Flag.withDescription("Only runs whose summary or error contains all these words"),
      Flag.optional
    ),
    limit: limitFlag
  },
  ({ agent, from, limit, parent, query: words, status, to, trigger }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const { paint } = yield* Screen
        const now = yield* Clock.currentTimeMillis
        const filter = {
          ...(Option.isSome(status) ? { status: [status.value] } : {}),
          ...(Option.isSome(trigger) ? { trigger: [trigger.value] } : {}),
          ...(Option.isSome(from) ? { from: from.value } : {}),
          ...(Option.isSome(to) ? { to: to.value } : {}),
          ...(Option.isSome(words) ? { query: words.value } : {}),
          ...(Option.isSome(parent) ? { parentRunId: parent.value } : {}),
          ...(Option.isSome(agent) ? { agentId: (yield* findAgent(access, agent.value)).id } : {})
        }
        const { hasMore, items } = yield* readPages(
          (query) => access.client.runs.list({ params: access.params, query: { ...query, ...filter } }),
          limit
        )
        yield* printRecords({
          records: items,
          hasMore,
          nothing: "No runs found.",
          columns: [
            { title: "RUN", cell: (run) => run.id, paint: () => paint.dim },
            { title: "AGENT", cell: runAgentText },
            { title: "STATUS", cell: (run) => run.status, paint: (run) => paintState(paint, run.status) },
            { title: "TRIGGER", cell: triggerText },
            { title: "STEPS", align: "right", cell: (run) => String(run.stepCount) },
            { title: "TOOK", align: "right", cell: tookText },
            {
              title: "AGE",
              align: "right",
              cell: (run) => formatAge(run.createdAt, now),
              paint: () => paint.dim
            },
            { title: "SUMMARY", shrinks: "end", cell: outcomeText }
          ]
        })
      })
    )
).pipe(
  Command.withDescription("List, show, cancel and resume runs"),
  Command.withExamples([
    { command: "tropism runs --status failed", description: "List failed runs" },
    { command: "tropism runs show 0197…", description: "Show one run" }
  ])
)

const show = Command.make("show", { run: runArgument }, (input) =>
  inProject((access) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      const params = { ...access.params, runId: input.run }
      const run = yield* access.client.runs.get({ params })
      const events = yield* readPages((query) => access.client.runs.events({ params, query }), Infinity)
      const toolCalls = yield* readPages((query) => access.client.runs.toolCalls({ params, query }), Infinity)
      const steps = yield* readPages((query) => access.client.runRecords.steps({ params, query }), Infinity)
      // Lists are newest first and a log is read from its beginning; ids say the order either way.
      const log = events.items.toSorted((a, b) => numberOf(a.id) - numberOf(b.id))
      yield* printOr(
        { run, steps: steps.items, events: encodeLog(log), toolCalls: toolCalls.items },
        Effect.gen(function* () {
          yield* printFacts(runFacts(run, toolCalls.items.length, screen.paint))
          const table = { paint: screen.paint, width: yield* screen.width }
          const told = renderSteps(run, steps.items, table)
          if (told.length > 0) yield* screen.print("", ...told)
          if (log.length === 0) return
          yield* screen.print(
            "",
            ...renderTable(
              log,
              [
                {
                  title: "NO",
                  align: "right",
                  cell: (event) => String(numberOf(event.id)),
                  paint: () => screen.paint.dim
                },
                {
                  title: "TIME",
                  cell: (event) => clockTime(event.timestamp),
                  paint: () => screen.paint.dim
                },
                { title: "EVENT", cell: (event) => contextEventName(event.type) },
                { title: "WHAT", shrinks: "end", cell: contextEventText }
              ],
              table
            )
          )
        })
      )
    })
  )
).pipe(Command.withDescription("Show a run: its steps, log and cost"))

const cancel = Command.make("cancel", { run: runArgument }, (input) =>
  inProject((access) =>
    Effect.flatMap(
      access.client.runs.cancel({ params: { ...access.params, runId: input.run } }),
      printOutcome
    )
  )
).pipe(Command.withDescription("Cancel a run; its output so far becomes its summary"))

const wholeNumber = (name: string, description: string) =>
  Flag.Int(name).pipe(Flag.withDescription(description), Flag.optional)

const resume = Command.make(
  "resume",
  {
    run: runArgument,
    message: Flag.String("message").pipe(Flag.withDescription("A message to the agent"), Flag.optional),
    maxSteps: wholeNumber("max-steps", "Max additional steps"),
    timeoutMs: wholeNumber("timeout-ms", "Timeout from now in milliseconds"),
    maxTokens: wholeNumber("max-tokens", "Max tokens in total"),
    maxCostUsd: Flag.Finite("max-cost-usd").pipe(
      Flag.withDescription("Max cost in total, in dollars"),
      Flag.optional
    )
  },
  ({ run: runId, ...said }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const payload = yield* typed(ResumeInput, {
          message: Option.getOrNull(said.message),
          maxSteps: Option.getOrNull(said.maxSteps),
          timeoutMs: Option.getOrNull(said.timeoutMs),
          maxTokens: Option.getOrNull(said.maxTokens),
          maxCostUsd: Option.getOrNull(said.maxCostUsd)
        })
        yield* printOutcome(
          yield* access.client.runs.resume({ params: { ...access.params, runId }, payload })
        )
      })
    )
).pipe(
  Command.withDescription("Resume a run that was paused by its step limit, timeout or budget"),
  Command.withExamples([
    {
      command: 'tropism runs resume 0197… --message "Skip the tests"',
      description: "Resume it with a message"
    }
  ])
)

/** What a run is after somebody has decided over it. */
const printOutcome = (run: Run) =>
  Effect.flatMap(Screen, ({ paint }) =>
    printOr(
      run,
      printFacts([
        ["Run", run.id],
        ["Status", run.status, paintState(paint, run.status)],
        ["Summary", printable(run.summary ?? "")]
      ])
    )
  )

export const runsCommand = list.pipe(Command.withSubcommands([show, cancel, resume]))

export const runFacts = (run: Run, toolCallCount: number, paint: Paint): ReadonlyArray<Fact> => [
  ["Run", run.id],
  ["Agent", `${run.agentName} v${run.agentVersion}`],
  [
    "Status",
    run.pauseReason === null ? run.status : `${run.status} (${run.pauseReason})`,
    paintState(paint, run.status)
  ],
  ["Waiting for", waitText(run), paint.waiting],
  ["Cancelled by", run.cancelledBy ?? ""],
  ["Parent run", run.parentRunId ?? ""],
  ["Trigger", triggerText(run)],
  ["Model", run.model ?? ""],
  [
    "Steps",
    `${run.stepCount}, with ${toolCallCount} tool calls, ${run.usage.inputTokens} tokens in and ${run.usage.outputTokens} out`
  ],
  ["Untrusted", taintText(run.taintedBy), paint.bad],
  ["Unavailable tools", printable(run.missingTools.join(", ")), paint.waiting],
  ["Attempt", run.attempt > 1 ? String(run.attempt) : ""],
  ["Started", run.startedAt ?? "not yet"],
  ["Took", tookText(run)],
  ["Summary", run.summary ?? ""],
  ["Error", run.errorMessage ?? ""]
]

/** Why a queued run does not go on yet. */
const waitText = ({ waitingFor }: Run): string =>
  waitingFor === null
    ? ""
    : printable(
        `the model provider, unavailable since ${waitingFor.since}: ${waitingFor.message}${waitingFor.nextTryAt === null ? "" : `; next attempt ${waitingFor.nextTryAt}`}`
      )

export const tookText = (run: Run): string => (run.durationMs === null ? "" : formatDuration(run.durationMs))

/** What came of a run, in its own words. */
export const outcomeText = (run: Run): string => printable(saidAtEnd(run))

const numberOf = (eventId: string): number => Number(eventId.slice(eventId.indexOf(":") + 1))
