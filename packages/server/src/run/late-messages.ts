/**
 * Queues the run that answers what was said too late for a run that has failed.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * A failure answers what its turn had read. What was said since that turn began was
 * kept without a run of its own, because one was at work; so the transaction that
 * fails it queues the next, under the log's lock: whoever speaks later finds that one.
 * Nobody answers for an agent that is disabled, this failure having been the last that
 * it may have: then the failure does.
 */
import type { ReducedContext } from "@tropism/domain/context"
import type { RunId } from "@tropism/domain/ids"
import { Effect, Option } from "effect"
import { Agents } from "../agent/agents.ts"
import { Ids } from "../ids.ts"
import { chainRoot, type FailedRun } from "./claimed-run.ts"
import { Runs } from "./runs.ts"

export const makeLateMessages = Effect.gen(function* () {
  const agents = yield* Agents
  const ids = yield* Ids
  const runs = yield* Runs

  /** Queues a run for what a failed run had not read, and says whether it did; the context is as the failure found it, and its log is held. */
  const answerLate = Effect.fnUntraced(function* (run: Failed, context: ReducedContext) {
    const { agentId, backtestId, contextName, userId } = run
    const isTurnOpen = Option.isSome(context.agentTurnStartedAtEventId)
    // What was said before a run's first turn is answered by its failure: else one would fail after the other for ever.
    if (backtestId !== null || !context.isAsked || !(isTurnOpen || context.run.id === run.id)) return false
    const agent = yield* agents.get(agentId)
    if (agent?.enabled !== true) return false
    const { next, now } = context.speakers
    const [first = null] = isTurnOpen ? next : [...now, ...next]
    yield* runs.queueOn(
      chainRoot((yield* ids.next) as RunId, agent, {
        contextName,
        trigger: { type: "context" },
        userId: first ?? userId
      })
    )
    return true
  })

  return { answerLate }
})

type Failed = Pick<FailedRun, "id" | "agentId" | "backtestId" | "contextName" | "userId">
