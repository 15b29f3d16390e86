/**
 * Lists what an agent has not handled, and why.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * Enabling an agent never replays old events; here they are found. What the
 * agent's rule leaves out of itself (its own changes, other properties) is not
 * pending, and neither is what is on its way.
 */
import type { Agent } from "@tropism/domain/agent"
import { findRefusal } from "@tropism/domain/refusal"
import type { PendingEvent } from "@tropism/domain/processing"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, type ProjectTransaction } from "../database/database.ts"
import { Projects } from "../database/projects.ts"
import { type Looked, makeSubjects, type Subject } from "./subjects.ts"

export class PendingEvents extends Context.Service<
  PendingEvents,
  {
    /** A page of at most `limit` objects, newest first, and the object after which the next page begins. */
    readonly page: (
      agent: Agent,
      before: string | undefined,
      limit: number
    ) => Effect.Effect<
      { readonly items: ReadonlyArray<PendingEvent>; readonly nextCursor: string | null },
      never,
      ProjectTransaction
    >
  }
>()("@tropism/server/dispatch/PendingEvents") {
  static readonly layer = Layer.effect(
    PendingEvents,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const projects = yield* Projects
      const subjects = yield* makeSubjects

      const page = Effect.fn("PendingEvents.page")(function* (
        agent: Agent,
        before: string | undefined,
        limit: number
      ) {
        const { reactionConfig } = agent
        if (reactionConfig === null) return { items: [], nextCursor: null }
        const [row] = yield* sql<{
          enabledAt: Date | null
        }>`select enabled_at from kb.agents where id = ${agent.id}`
        const { chainLimits } = yield* projects.settings
        const { lookedTo, subjects: found } = yield* subjects.page(agent, before, limit)
        const items = found.flatMap((subject) => {
          const refusal = findRefusal(agent.id, reactionConfig, subject, chainLimits)
          // A chain's cap keeps an event back that the agent's own rule is about.
          return refusal === undefined || refusal.rule === "chainDepth"
            ? [shown(subject, agent, row?.enabledAt ?? null)]
            : []
        })
        return { items, nextCursor: lookedTo }
      }, orDie)

      return PendingEvents.of({ page })
    })
  )
}

const shown = (subject: Looked["subjects"][number], agent: Agent, enabledAt: Date | null): PendingEvent => ({
  objectId: subject.entityId as PendingEvent["objectId"],
  objectType: subject.objectType,
  subject: subject.subject,
  version: subject.version,
  eventId: subject.eventId,
  entryId: subject.entryId,
  ...whyOf(subject, agent, enabledAt)
})

const whyOf = (
  { createdAt, entryError, entryReason, entryStatus, refusals }: Subject,
  agent: Agent,
  enabledAt: Date | null
): Pick<PendingEvent, "why" | "reason"> => {
  if (entryStatus === "skipped") return { why: "skipped", reason: entryReason ?? "The agent was busy" }
  if (entryStatus === "failed" || entryStatus === "abandoned")
    return { why: entryStatus, reason: entryError ?? `The entry is ${entryStatus}` }
  const noted = refusals.find((refusal) => refusal.agentId === agent.id)
  if (noted) return { why: "refused", reason: noted.reason }
  return enabledAt === null || createdAt < enabledAt
    ? { why: "notEnabled", reason: "The agent was not enabled when this came; enabling it replays nothing" }
    : { why: "notConcerned", reason: "The agent did not have this rule when this came" }
}
