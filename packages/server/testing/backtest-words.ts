/**
 * The words in which stories run an agent over what happened.
 */
import { Effect } from "effect"
import { eventually, type Json, type Story } from "./platform.ts"

/** Begins a backtest, and answers whatever the door says. */
export const askBacktest = (story: Story, agent: Json, body: unknown) =>
  story.ask("POST", `/agents/${agent.id}/backtests`, body)

export const beginBacktest = (
  story: Story,
  agent: Json,
  body: Record<string, unknown> = {}
): Effect.Effect<Json> => story.post(`/agents/${agent.id}/backtests`, { days: 1, ...body })

export const backtestNow = (story: Story, { agentId, id }: Json): Effect.Effect<Json> =>
  story.get(`/agents/${agentId}/backtests/${id}`)

export const isBacktestOver = ({ status }: Json): boolean => !["queued", "running"].includes(status)

/** A backtest with its report, once it is over. */
export const backtestOver = (story: Story, backtest: Json): Effect.Effect<Json> =>
  eventually(backtestNow(story, backtest), isBacktestOver)

/** Runs a backtest to its end. */
export const backtested = (
  story: Story,
  agent: Json,
  body: Record<string, unknown> = {}
): Effect.Effect<Json> =>
  Effect.flatMap(beginBacktest(story, agent, body), (backtest) => backtestOver(story, backtest))

/** What was suggested then and now, event by event. */
export const resultsOf = (story: Story, { agentId, id }: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/agents/${agentId}/backtests/${id}/results?limit=200`), ({ items }) => items)

/** The runs of a backtest, oldest first. */
export const backtestRuns = (story: Story, { id }: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/runs?backtestId=${id}&limit=200`), ({ items }) => items.toReversed())
