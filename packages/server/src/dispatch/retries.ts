/**
 * Lets an agent try again what was abandoned or failed.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * A retry is a new entry with the next attempt and a new run; the old entry stays
 * as it is. The unique key over agent, object, version, event type and attempt
 * decides between two people who ask at once. Nothing is retried by itself.
 */
import { ContextName } from "@tropism/domain/context-event"
import type { Agent } from "@tropism/domain/agent"
import type { EntryId, RunId, UserId } from "@tropism/domain/ids"
import type { ProcessingEntry } from "@tropism/domain/processing"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { ProjectTransaction } from "../database/database.ts"
import { Projects } from "../database/projects.ts"
import { Ids } from "../ids.ts"
import { dispatchLimits } from "../limits.ts"
import { Outbox } from "../outbox/outbox.ts"
import { ProcessingLog } from "../run/processing-log.ts"
import { Runs } from "../run/runs.ts"
import { takePlaces } from "./chains.ts"

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
        const next = {
          id: (yield* ids.next) as EntryId,
          agentId: entry.agentId,
          graphObjectId: entry.graphObjectId,
          objectVersion: entry.objectVersion,
          eventType: entry.eventType,
          eventId: entry.eventId,
          runId,
          exclusive: agent.reactionConfig?.concurrencyStrategy === "skip",
          attempt: entry.attempt + 1
        }
        const opened = yield* log.open([next])
        if (!opened.has(next.id))
          return yield* refuse(
            "The agent is at work on this object, or the entry is being tried again already"
          )
        const [cap] = yield* takePlaces([event.rootEventId]).pipe(
          Effect.provideService(SqlClient.SqlClient, sql),
          Effect.provideService(Projects, projects)
        )
        if (cap) return yield* refuse(cap.reason)
        yield* runs.queue([
          {
            id: runId,
            agentId: agent.id,
            agentVersion: agent.version,
            trigger: {
              type: "reaction",
              events: [
                {
                  id: event.id,
                  type: event.type,
                  objectId: event.entityId,
                  objectType: event.objectType,
                  version: event.version
                }
              ]
            },
            contextName: ContextName.make(`run-${runId}`),
            rootEventId: event.rootEventId,
            depth: event.depth,
            userId: by,
            dueAt: null
          }
        ])
        const found = yield* log.get(next.id)
        return found ?? (yield* Effect.die(new Error("The entry that was just opened is not there")))
      })

      return Retries.of({ retry })
    })
  )
}

const refuse = (detail: string) => Effect.fail(new RetryRefused({ detail }))
