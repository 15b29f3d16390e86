/**
 * Backtests: begin one, read what came of it, end it.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { Conflict, type InvalidInput } from "@tropism/api/problems"
import type { BacktestResult } from "@tropism/domain/backtest"
import type { AgentId, ProjectId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Agents } from "../agent/agents.ts"
import { BacktestReading } from "../dispatch/backtest-reading.ts"
import { type BacktestRefused, Backtests } from "../dispatch/backtests.ts"
import { inProject, reading } from "./access.ts"
import { pageById, pageByNumber } from "./paging.ts"
import { invalid, orNotFound } from "./refusals.ts"

const knownAgent = orNotFound("agent")
const known = orNotFound("backtest")

/** Backtests outlive their agent, which is known by its versions then. */
const ofAgent = <A, E, R>(
  { agentId, projectId }: { readonly agentId: AgentId; readonly projectId: ProjectId },
  read: Effect.Effect<A, E, R>
) =>
  Effect.flatMap(Agents, (agents) =>
    reading(projectId, Effect.andThen(knownAgent(agents.version(agentId, 1)), read))
  )

const refusal = ({ detail, index, reason }: BacktestRefused): Conflict | InvalidInput => {
  if (reason === "noVersion") return invalid("/version", detail)
  if (reason === "noWindow") return invalid("/days", detail)
  if (reason === "noObject") return invalid(`/objectIds/${index}`, detail)
  return new Conflict({ reason: "state", detail })
}

export const backtestsHandlers = HttpApiBuilder.group(Api, "backtests", (handlers) =>
  handlers.handleAll({
    begin: Effect.fn("http.backtests.begin")(function* ({ params, payload }) {
      const [agents, backtests] = [yield* Agents, yield* Backtests]
      return yield* inProject(params.projectId, "editor", ({ userId }) =>
        Effect.gen(function* () {
          const agent = yield* knownAgent(agents.get(params.agentId))
          return yield* Effect.mapError(backtests.begin(agent, payload, userId), refusal)
        })
      )
    }),
    list: Effect.fn("http.backtests.list")(function* ({ params, query }) {
      const backtests = yield* Backtests
      return yield* ofAgent(
        params,
        pageById(query, (before, limit) => backtests.list(params.agentId, before, limit))
      )
    }),
    get: Effect.fn("http.backtests.get")(function* ({ params }) {
      const [backtests, results] = [yield* Backtests, yield* BacktestReading]
      return yield* reading(
        params.projectId,
        Effect.gen(function* () {
          const backtest = yield* known(backtests.get(params.agentId, params.backtestId))
          return { ...backtest, report: yield* results.report(backtest.id) }
        })
      )
    }),
    results: Effect.fn("http.backtests.results")(function* ({ params, query }) {
      const [backtests, results] = [yield* Backtests, yield* BacktestReading]
      return yield* reading(
        params.projectId,
        Effect.andThen(
          known(backtests.get(params.agentId, params.backtestId)),
          pageByNumber(
            query,
            ({ number }: BacktestResult) => number,
            (after, limit) => results.page(params.backtestId, after ?? 0, limit)
          )
        )
      )
    }),
    cancel: Effect.fn("http.backtests.cancel")(function* ({ params }) {
      const backtests = yield* Backtests
      return yield* inProject(params.projectId, "editor", () =>
        known(backtests.cancel(params.agentId, params.backtestId)).pipe(
          Effect.catchTag("BacktestRefused", ({ detail }) =>
            Effect.fail(new Conflict({ reason: "state", detail }))
          )
        )
      )
    })
  })
)
