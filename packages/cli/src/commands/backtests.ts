/**
 * `tropism backtests`: those that were run, event by event, and several side by side.
 */
import type { Agent } from "@tropism/domain/agent"
import type { Backtest, BacktestResult, ReportedBacktest } from "@tropism/domain/backtest"
import { Clock, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { type Access, inProject, readPages } from "../access.ts"
import { findAgent } from "../agents-by-name.ts"
import { percent, printBacktest, rateText } from "../backtest-report.ts"
import { shortId } from "../change-text.ts"
import { failure } from "../failure.ts"
import { limits } from "../limits.ts"
import { printOr, printRecords } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"
import { formatAge } from "../terminal/time.ts"
import { limitFlag } from "./limit-flag.ts"

const agentArgument = Argument.String("agent").pipe(Argument.withDescription("The agent's name or id"))

const backtestArgument = Argument.String("backtest").pipe(
  Argument.withDescription("Its id or the end of it, as shown by list")
)

const list = Command.make("list", { agent: agentArgument, limit: limitFlag }, ({ agent, limit }) =>
  inProject((access) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const { id } = yield* findAgent(access, agent)
      const { hasMore, items } = yield* readBacktests(access, id, limit)
      yield* printRecords({
        records: items,
        hasMore,
        nothing: `No backtests yet. Run one with "tropism backtest ${printable(agent)}".`,
        columns: [
          { title: "BACKTEST", cell: ({ id }) => shortId(id) },
          { title: "VERSION", align: "right", cell: ({ agentVersion }) => String(agentVersion) },
          { title: "STATUS", cell: ({ status }) => status },
          { title: "DAYS", align: "right", cell: ({ days }) => (days === null ? "chosen" : String(days)) },
          { title: "EVENTS", align: "right", cell: ({ events }) => `${events.done} of ${events.chosen}` },
          { title: "REASON", shrinks: "end", cell: ({ detail }) => detail ?? "" },
          { title: "AGE", align: "right", cell: ({ createdAt }) => formatAge(createdAt, now) }
        ]
      })
    })
  )
).pipe(Command.withDescription("List the backtests of an agent, the newest first"))

const show = Command.make("show", { agent: agentArgument, backtest: backtestArgument }, (input) =>
  withBacktest(input, (_, { name }, backtest) => printOr(backtest, printBacktest(name, backtest)))
).pipe(Command.withDescription("Show a backtest with its report"))

const results = Command.make(
  "results",
  { agent: agentArgument, backtest: backtestArgument, limit: limitFlag },
  ({ limit, ...input }) =>
    withBacktest(input, ({ client, params }, { id: agentId }, { id: backtestId }) =>
      Effect.gen(function* () {
        const { hasMore, items } = yield* readPages(
          (query) => client.backtests.results({ params: { ...params, agentId, backtestId }, query }),
          limit
        )
        yield* printRecords<BacktestResult>({
          records: items,
          hasMore,
          nothing: "No events have been run yet.",
          columns: [
            { title: "NO", align: "right", cell: ({ number }) => String(number) },
            {
              title: "EVENT",
              shrinks: "end",
              cell: ({ event }) => `${event.type} ${event.objectType} ${shortId(event.objectId)}`
            },
            { title: "ORIGINAL", shrinks: "end", cell: thenText },
            { title: "NEW RUN", shrinks: "end", cell: nowText },
            { title: "RUN", cell: ({ runId, runStatus }) => (runId === null ? "" : (runStatus ?? "")) }
          ]
        })
      })
    )
).pipe(
  Command.withDescription("Compare the original suggestions with the new ones, event by event"),
  Command.withShortDescription("Compare original and new suggestions by event")
)

/** What was decided then, and whether the suggestion of now agrees. */
const thenText = ({ earlier }: BacktestResult): string =>
  earlier
    .map(({ agrees, isEdited, number, status }) =>
      [
        `task ${number} ${status}${isEdited ? ", edited" : ""}`,
        ...(agrees === null ? [] : [agrees ? "agrees" : "differs"])
      ].join(": ")
    )
    .join("; ")

const nowText = ({ errorMessage, now }: BacktestResult): string =>
  errorMessage ?? now.map(({ change, isNew }) => `${change.type}${isNew ? " (new)" : ""}`).join(", ")

const compare = Command.make(
  "compare",
  {
    agent: agentArgument,
    backtests: Argument.String("backtest").pipe(
      Argument.withDescription("Ids or the ends of ids (default: the latest of each version)"),
      Argument.variadic({ max: limits.comparedBacktests })
    )
  },
  ({ agent, backtests }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const { id: agentId } = yield* findAgent(access, agent)
        const { items } = yield* readBacktests(access, agentId, limits.backtestsLooked)
        const chosen =
          backtests.length === 0
            ? newestOfEachVersion(items)
            : yield* Effect.forEach(backtests, (reference) => pick(items, reference))
        const compared = yield* Effect.forEach(
          chosen,
          ({ id }) => access.client.backtests.get({ params: { ...access.params, agentId, backtestId: id } }),
          { concurrency: limits.requestsAtOnce }
        )
        yield* printCompared(compared)
      })
    )
).pipe(
  Command.withDescription("Compare backtests: which version agrees most with the reviewers' decisions"),
  Command.withShortDescription("Compare backtests of several versions"),
  Command.withExamples([
    { command: "tropism backtests compare licence-review", description: "Compare the latest of each version" }
  ])
)

const printCompared = (compared: ReadonlyArray<ReportedBacktest>) =>
  printRecords({
    records: compared,
    nothing: "No backtests to compare.",
    columns: [
      { title: "VERSION", align: "right", cell: ({ agentVersion }) => String(agentVersion) },
      { title: "BACKTEST", cell: ({ id }) => shortId(id) },
      { title: "STATUS", cell: ({ status }) => status },
      { title: "EVENTS", align: "right", cell: ({ events }) => `${events.done} of ${events.chosen}` },
      { title: "AGREES", cell: ({ report }) => rateText(report.agreement) },
      { title: "PRECISION", align: "right", cell: ({ report }) => percent(report.properties.precision) },
      { title: "RECALL", align: "right", cell: ({ report }) => percent(report.properties.recall) },
      { title: "NEW", align: "right", cell: ({ report }) => String(report.newSuggestions) },
      { title: "COST", align: "right", cell: ({ report }) => `$${report.costUsd}` }
    ]
  })

const cancel = Command.make("cancel", { agent: agentArgument, backtest: backtestArgument }, (input) =>
  withBacktest(input, ({ client, params }, agent, { id }) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      const cancelled = yield* client.backtests.cancel({
        params: { ...params, agentId: agent.id, backtestId: id }
      })
      yield* printOr(cancelled, screen.print(`The backtest ${shortId(id)} is ${cancelled.status}.`))
    })
  )
).pipe(Command.withDescription("Cancel a running backtest; results so far are kept"))

const readBacktests = ({ client, params }: Access, agentId: Agent["id"], count: number) =>
  readPages((query) => client.backtests.list({ params: { ...params, agentId }, query }), count)

const newestOfEachVersion = (items: ReadonlyArray<Backtest>): ReadonlyArray<Backtest> =>
  items
    .filter(
      (one, index) => items.findIndex(({ agentVersion }) => agentVersion === one.agentVersion) === index
    )
    .slice(0, limits.comparedBacktests)

const pick = (items: ReadonlyArray<Backtest>, reference: string) => {
  const found = items.filter(({ id }) => id === reference || (reference !== "" && id.endsWith(reference)))
  if (found.length === 1 && found[0]) return Effect.succeed(found[0])
  return Effect.fail(
    failure(
      found.length === 0
        ? `Backtest not found: ${printable(reference)}. "tropism backtests list AGENT" lists them.`
        : `${found.length} backtests end with ${printable(reference)}. Give more of the id.`
    )
  )
}

/** Finds the backtest that is meant, with its report, and does something with it. */
const withBacktest = <A, E, R>(
  { agent, backtest }: { readonly agent: string; readonly backtest: string },
  act: (access: Access, agent: Agent, backtest: ReportedBacktest) => Effect.Effect<A, E, R>
) =>
  inProject((access) =>
    Effect.gen(function* () {
      const found = yield* findAgent(access, agent)
      const { items } = yield* readBacktests(access, found.id, limits.backtestsLooked)
      const { id: backtestId } = yield* pick(items, backtest)
      const params = { ...access.params, agentId: found.id, backtestId }
      return yield* act(access, found, yield* access.client.backtests.get({ params }))
    })
  )

export const backtestsCommand = Command.make("backtests").pipe(
  Command.withDescription("List, show and compare backtests"),
  Command.withSubcommands([list, show, results, compare, cancel])
)
