/**
 * `tropism backtest AGENT --days N`: runs a version over what happened, and prints how it agrees with people.
 *
 * The backtest belongs to the server: leaving this command does not end it.
 */
import { backtestBounds, BacktestInput, type ReportedBacktest } from "@tropism/domain/backtest"
import { Effect, Option, Schedule } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Access, inProject } from "../access.ts"
import { findAgent } from "../agents-by-name.ts"
import { exitCodes } from "../exit-codes.ts"
import { failure } from "../failure.ts"
import { limits } from "../limits.ts"
import { findReferred } from "../object-reference.ts"
import { printBacktest } from "../backtest-report.ts"
import { printOr } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { transferProgress } from "../transfer-progress.ts"
import { typed } from "../typed-input.ts"
import { noticeBegun, withinWait } from "../waiting-for-end.ts"
import { whenAnswered } from "../waiting-for-server.ts"

export const backtestCommand = Command.make(
  "backtest",
  {
    agent: Argument.String("agent").pipe(Argument.withDescription("The agent's name or id")),
    days: Flag.Int("days").pipe(
      Flag.withMetavar("<days>"),
      Flag.withDescription("Use events of the last 1 to 90 days (default: 7)"),
      Flag.optional
    ),
    objects: Flag.String("object").pipe(
      Flag.withMetavar("<Type/key or id>"),
      Flag.withDescription("Instead of --days: use this object as it is now; repeatable"),
      Flag.between(0, backtestBounds.maxObjects)
    ),
    version: Flag.Int("version").pipe(
      Flag.withMetavar("<version>"),
      Flag.withDescription("The version of the agent (default: the latest)"),
      Flag.optional
    ),
    maxEvents: Flag.Int("max-events").pipe(
      Flag.withMetavar("<count>"),
      Flag.withDescription("Use at most this many of the latest matching events (default: 100)"),
      Flag.optional
    ),
    maxCost: Flag.Finite("max-cost").pipe(
      Flag.withMetavar("<dollars>"),
      Flag.withDescription("Start no further runs after spending this amount"),
      Flag.optional
    )
  },
  ({ agent, days, maxCost, maxEvents, objects, version }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const { id, name } = yield* findAgent(access, agent)
        const payload = yield* typed(BacktestInput, {
          ...(yield* chosen(access, days, objects)),
          version: Option.getOrNull(version),
          maxEvents: Option.getOrNull(maxEvents),
          maxCostUsd: Option.getOrNull(maxCost)
        })
        const begun = yield* access.client.backtests.begin({
          params: { ...access.params, agentId: id },
          payload
        })
        const over = yield* follow(access, name, begun)
        yield* printOr(over, printBacktest(name, over))
        if (over.status === "failed" || over.status === "cancelled")
          return yield* failure(
            `The backtest ${over.status === "failed" ? `failed: ${over.detail}` : "was cancelled."}`
          )
      })
    )
).pipe(
  Command.withShortDescription("Test an agent on past events without changing anything"),
  Command.withDescription(
    "Run an agent on past events without changing anything, and compare the result with the reviewers' decisions"
  ),
  Command.withExamples([
    { command: "tropism backtest licence-review --days 30", description: "Test the latest version" },
    {
      command: "tropism backtest licence-review --days 30 --version 3",
      description: "Test an earlier version"
    },
    {
      command: "tropism backtest licence-review --object Package/left-pad",
      description: "Test it on one object"
    }
  ])
)

/** What it runs over: the objects that are named, else days. */
const chosen = Effect.fnUntraced(function* (
  access: Access,
  days: Option.Option<number>,
  objects: ReadonlyArray<string>
) {
  if (objects.length === 0) return { days: Option.getOrElse(days, () => 7) }
  if (Option.isSome(days)) return yield* failure("Use either --days or --object, not both.", exitCodes.usage)
  const found = yield* Effect.forEach(objects, (reference) => findReferred(access, reference, Option.none()))
  return { days: null, objectIds: found.map(({ object }) => object.id) }
})

const isOver = ({ status }: ReportedBacktest): boolean => status !== "queued" && status !== "running"

/** Shows how far it has come until it is over. */
const follow = Effect.fnUntraced(function* (
  access: Access,
  agentName: string,
  { agentId, id }: Pick<ReportedBacktest, "agentId" | "id">
) {
  const screen = yield* Screen
  const begun = { name: `The backtest ${id}`, shownBy: `tropism backtests show ${agentName} ${id}` }
  yield* noticeBegun(begun)
  const progress = yield* transferProgress("Backtest")
  const look = access.client.backtests
    .get({ params: { ...access.params, agentId, backtestId: id } })
    .pipe(Effect.tap(({ events: { chosen, done } }) => progress({ done, total: chosen, unit: "steps" })))
  return yield* withinWait(
    access,
    begun,
    whenAnswered(look).pipe(
      Effect.repeat({ until: isOver, schedule: Schedule.spaced(limits.runPollBusyMs) }),
      Effect.ensuring(screen.redraw(undefined))
    )
  )
})
