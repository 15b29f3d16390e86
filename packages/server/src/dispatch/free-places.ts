/**
 * How many runs of an agent a person's wish may begin now, and what makes the others wait.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * For wishes about events: their runs count in `maxConcurrency` and `rateLimit`.
 * The agent's row is held from the first count on, so that nobody takes the same
 * place; whoever releases what waits counts under a lock that this excludes.
 */
import type { AgentId } from "@tropism/domain/ids"
import type { Wait } from "@tropism/domain/waiting"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Admission } from "../run/admission.ts"
import { standingsOf } from "./standing.ts"

/** How many runs may begin now, none where it is not positive, and what holds back the others. */
export interface FreePlaces {
  readonly count: number
  readonly wait: Wait
}

export const makeFreePlaces = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const admission = yield* Admission

  /** At least one place below `maxPendingRuns`, or a refusal; the bounds of the rule hold for an agent that reacts. */
  const placesOf = Effect.fn("placesOf")(function* (agentId: AgentId) {
    const places: Array<FreePlaces> = [{ count: yield* admission.places(agentId), wait: "pendingRuns" }]
    const [standing] = yield* Effect.provideService(standingsOf([agentId]), SqlClient.SqlClient, sql)
    const config = standing?.isActive === true ? standing.config : null
    if (standing && config && config.maxConcurrency !== null)
      places.push({ count: config.maxConcurrency - standing.liveReactions, wait: "concurrency" })
    if (standing && config && config.rateLimit !== null)
      places.push({ count: config.rateLimit.maxRuns - standing.begunRuns, wait: "rateLimit" })
    return places.reduce((a, b) => (b.count <= a.count ? b : a))
  })

  return { placesOf }
})
