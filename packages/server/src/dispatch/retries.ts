/**
 * Lets an agent try again what was abandoned or failed.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * A retry is a new entry with the next attempt and a new run; the old entry stays
 * as it is. The unique key over agent, object, version, event type and attempt
 * decides between two people who ask at once. Nothing is retried by itself.
 */
import type { Agent } from "@tropism/domain/agent"
import type { EntryId, RunId, UserId } from "@tropism/domain/ids"
import type { ProcessingEntry } from "@tropism/domain/processing"
import { isExclusive } from "@tropism/domain/waiting"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { ProjectTransaction } from "../database/database.ts"
import { Projects } from "../database/projects.ts"
import { Ids } from "../ids.ts"
import { dispatchLimits } from "../limits.ts"
import { Outbox } from "../outbox/outbox.ts"
import { type NewEntry, ProcessingLog } from "../run/processing-log.ts"
import { Runs } from "../run/runs.ts"
import { takePlaces } from "./chains.ts"
import { type HandledEvent, reactionRun } from "./reaction-run.ts"

/** Why an entry cannot be tried again. */
export class RetryRefused extends Schema.TaggedError<RetryRefused>()("RetryRefused", {
  detail: Schema.String
}) {}

export class Retries extends Context.Service<
  Retries,
  {
    /** Opens the next attempt of an abandoned or failed entry (S001-R43). */
    readonly retry: (
      agent: Agent,
      entry: ProcessingEntry,
      by: UserId
    ) => Effect.Effect<ProcessingEntry, RetryRefused, ProjectTransaction>
  }
>()("@tropism/server/dispatch/Retries") {
  static readonly layer = Layer.effect(
    Retries,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const log = yield* ProcessingLog
      const outbox = yield* Outbox
      const runs = yield* Runs
      const projects = yield* Projects

      const retry = Effect.fn("Retries.retry")(function* (agent: Agent, entry: ProcessingEntry, by: UserId) {
        if (entry.status !== "abandoned" && entry.status !== "failed")
          return yield* refuse(
            `The entry is ${entry.status}: only what was abandoned or failed can be tried again`
          )
        if (entry.attempt >= dispatchLimits.entryMaxAttempts)
          return yield* refuse(`The entry was tried ${entry.attempt} times, which is as often as it may be`)
        if (!agent.enabled) return yield* refuse(`The agent ${agent.name} is disabled: enable it first`)
        const event = yield* outbox.get(entry.eventId)
        if (!event) return yield* refuse("The event of this entry is no longer kept")
        const runId = (yield* ids.next) as RunId
        const next: NewEntry = {
          id: (yield* ids.next) as EntryId,
          agentId: entry.agentId,
          entityType: entry.entityType,
          graphObjectId: entry.graphObjectId,
          objectVersion: entry.objectVersion,
          eventType: entry.eventType,
          eventId: entry.eventId,
          runId,
          exclusive: agent.reactionConfig !== null && isExclusive(agent.reactionConfig),
          attempt: entry.attempt + 1,
          dueAt: null,
          reason: null,
          standsInLine: false,
          skips: false
        }
        const opened = yield* log.open([next])
        if (!opened.has(next.id))
          return yield* refuse(
            "The agent is at work on this object, or the entry is being tried again already"
          )
        const [caps] = yield* takePlaces([[event.rootEventId]]).pipe(
          Effect.provideService(SqlClient.SqlClient, sql),
          Effect.provideService(Projects, projects)
        )
        const cap = caps?.get(event.rootEventId)
        if (cap) return yield* refuse(cap.reason)
        const handled: HandledEvent = {
          eventId: event.id,
          eventType: event.type,
          entityType: event.entityType,
          graphObjectId: event.entityId,
          objectType: event.objectType,
          objectVersion: event.version,
          rootEventId: event.rootEventId,
          depth: event.depth
        }
        yield* runs.queue([
          reactionRun(runId, { agentId: agent.id, agentVersion: agent.version }, [handled], by)
        ])
        const found = yield* log.get(next.id)
        return found ?? (yield* Effect.die(new Error("The entry that was just opened is not there")))
      })

      return Retries.of({ retry })
    })
  )
}

const refuse = (detail: string) => Effect.fail(new RetryRefused({ detail }))
