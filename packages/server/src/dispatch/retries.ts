/**
 * Lets an agent try again what was abandoned or failed.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * A retry is a new entry with the next attempt and a new run, or one that waits
 * where the agent may begin no run now; the old entry stays as it is, but is no
 * dead letter any more, unless its next attempt is skipped before it began; what
 * a person asked for goes on in the chain that it began.
 * The unique key over agent, object, version, event type and attempt decides
 * between two people who ask at once.
 * What an agent's own policy tries again is opened where the attempt ends.
 */
import type { Agent } from "@tropism/domain/agent"
import type { EntryId, GraphEventId, RunId, UserId } from "@tropism/domain/ids"
import { batchMaxItems, type ProcessingEntry } from "@tropism/domain/processing"
import { isExclusive, waitSentences } from "@tropism/domain/waiting"
import { triggeringOf } from "@tropism/domain/mcp-event"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, type ProjectTransaction } from "../database/database.ts"
import { Projects } from "../database/projects.ts"
import { Ids } from "../ids.ts"
import { dispatchLimits } from "../limits.ts"
import { Outbox } from "../outbox/outbox.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import type { Attempts } from "../run/attempts.ts"
import { type NewEntry, ProcessingLog } from "../run/processing-log.ts"
import { askedRun } from "../run/asked-chains.ts"
import { makeOccurrences } from "../run/occurrences.ts"
import { Runs } from "../run/runs.ts"
import { Admission, noReaction, type TriggerRefused } from "../run/admission.ts"
import { takePlaces } from "../run/chain-places.ts"
import { makeFreePlaces } from "./free-places.ts"
import { type HandledEvent, reactionRun } from "./reaction-run.ts"

/** Why an entry cannot be tried again. */
export class RetryRefused extends Schema.TaggedError<RetryRefused>()("RetryRefused", {
  detail: Schema.String
}) {}

/** What became of dead letters that somebody wants tried again. */
export interface Redriven {
  readonly redriven: ReadonlyArray<{
    readonly entryId: EntryId
    readonly newEntryId: EntryId
    readonly attempt: number
  }>
  readonly skipped: ReadonlyArray<{ readonly entryId: EntryId; readonly reason: string }>
}

export class Retries extends Context.Service<
  Retries,
  {
    /** Opens the next attempt of an abandoned or failed entry (S001-R43); it waits, and says for what, where the agent may begin no run now. */
    readonly retry: (
      agent: Agent,
      entry: ProcessingEntry,
      by: UserId
    ) => Effect.Effect<ProcessingEntry, RetryRefused | TriggerRefused, ProjectTransaction>
    /** Opens the next attempts of dead letters, the oldest or those named; they begin as the agent's limits allow. */
    readonly redrive: (
      agent: Agent,
      ids: ReadonlyArray<EntryId> | undefined,
      by: UserId
    ) => Effect.Effect<Redriven, TriggerRefused, ProjectTransaction>
  }
>()("@tropism/server/dispatch/Retries") {
  static readonly layer = Layer.effect(
    Retries,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const log = yield* ProcessingLog
      const outbox = yield* Outbox
      const occurrences = yield* makeOccurrences
      const runs = yield* Runs
      const projects = yield* Projects
      const admission = yield* Admission
      const { placesOf } = yield* makeFreePlaces
      const wakeUps = yield* WakeUps

      /** What an entry is about, as far as it is kept. */
      const handledBy = Effect.fnUntraced(function* (entry: ProcessingEntry) {
        const about = { eventId: entry.eventId, eventType: entry.eventType, entityType: entry.entityType }
        const thing = { graphObjectId: entry.graphObjectId, objectVersion: entry.objectVersion }
        if (entry.entityType === "mcpEvent") {
          const told = (yield* occurrences.getAll([entry.eventId])).get(entry.eventId)
          if (!told) return undefined
          const occurrence = triggeringOf(told)
          const handled: HandledEvent = {
            ...about,
            ...thing,
            occurrence,
            objectType: told.name,
            rootEventId: told.id,
            depth: 0
          }
          return handled
        }
        const event = yield* outbox.get(entry.eventId)
        if (!event) return undefined
        const { depth, objectType, rootEventId } = event
        const [asked] = yield* orDie(sql<{ id: GraphEventId }>`${askedRun(sql, sql`${entry.id}`)}`)
        const chain = asked ? { rootEventId: asked.id, depth: 0 } : { rootEventId, depth }
        const handled: HandledEvent = { ...about, ...thing, objectType, ...chain }
        return handled
      })

      /** An entry as it was opened just now. */
      const asOpened = Effect.fnUntraced(function* ({ id }: NewEntry) {
        const found = yield* log.get(id)
        return found ?? (yield* Effect.die(new Error("The entry that was just opened is not there")))
      })

      const retry = Effect.fn("Retries.retry")(function* (agent: Agent, entry: ProcessingEntry, by: UserId) {
        if (entry.status !== "abandoned" && entry.status !== "failed")
          return yield* refuse(
            `The entry is ${entry.status}: only what was abandoned or failed can be tried again`
          )
        const places = yield* placesOf(agent.id)
        const attempts = (yield* log.attemptsOf([entry.id])).get(entry.id)
        const obstacle = obstacleOf(attempts)
        if (!attempts || obstacle !== undefined) return yield* refuse(obstacle ?? forgotten)
        const handled = yield* handledBy(entry)
        if (!handled) return yield* refuse("The event of this entry is no longer kept")
        const runId = (yield* ids.next) as RunId
        const isAlone = agent.reactionConfig !== null && isExclusive(agent.reactionConfig)
        const waiting = nextEntry(entry, (yield* ids.next) as EntryId, attempts.next, by)
        const next: NewEntry =
          places.count > 0
            ? { ...waiting, runId, exclusive: isAlone }
            : { ...waiting, reason: waitSentences[places.wait], skips: isAlone }
        const opened = yield* log.open([next])
        if (!opened.has(next.id)) return yield* refuse(atWork)
        yield* log.revive([entry.id])
        if (next.runId === null) {
          yield* sql.afterCommit(wakeUps.signal("releases"))
          return yield* asOpened(next)
        }
        const [caps] = yield* takePlaces([[handled.rootEventId]]).pipe(
          Effect.provideService(SqlClient.SqlClient, sql),
          Effect.provideService(Projects, projects)
        )
        const cap = caps?.get(handled.rootEventId)
        if (cap) return yield* refuse(cap.reason)
        yield* runs.queue([
          reactionRun(runId, { agentId: agent.id, agentVersion: agent.version }, [handled], by)
        ])
        return yield* asOpened(next)
      })

      const redrive = Effect.fn("Retries.redrive")(function* (
        agent: Agent,
        wanted: ReadonlyArray<EntryId> | undefined,
        by: UserId
      ) {
        if (agent.triggerType !== "reaction" || agent.reactionConfig === null) return yield* noReaction(agent)
        // What has no place now waits for one, so a full agent is no reason to refuse.
        yield* Effect.catchIf(
          admission.places(agent.id),
          (refused) => refused.reason === "pendingRuns",
          () => Effect.succeed(0)
        )
        const found = yield* log.takeDead(agent.id, wanted, batchMaxItems)
        const attempts = yield* log.attemptsOf(found.map(({ id }) => id))
        const items = yield* Effect.forEach(found, (entry) =>
          Effect.map(ids.next, (id) => {
            const own = attempts.get(entry.id)
            const next = nextEntry(entry, id as EntryId, own?.next ?? entry.attempt + 1, by)
            return { entry, next, obstacle: obstacleOf(own) }
          })
        )
        const opened = yield* log.open(
          items.filter(({ obstacle }) => obstacle === undefined).map(({ next }) => next)
        )
        const isOpened = ({ next }: (typeof items)[number]): boolean => opened.has(next.id)
        yield* log.revive(items.filter(isOpened).map(({ entry }) => entry.id))
        yield* sql.afterCommit(wakeUps.signal("releases"))
        const known = new Set(found.map(({ id }) => id))
        const redriven: Redriven = {
          redriven: items
            .filter(isOpened)
            .map(({ entry, next }) => ({ entryId: entry.id, newEntryId: next.id, attempt: next.attempt })),
          skipped: [
            ...(wanted ?? []).filter((id) => !known.has(id)).map((entryId) => ({ entryId, reason: notDead })),
            ...items
              .filter((item) => !isOpened(item))
              .map(({ entry, next, obstacle }) => ({
                entryId: entry.id,
                reason: obstacle ?? triedAgain(next.attempt)
              }))
          ]
        }
        return redriven
      })

      return Retries.of({ retry, redrive })
    })
  )
}

const notDead = "It is not a dead letter of this agent, or not any more"
const atWork = "The agent is at work on this object: try again when its run has ended"
const forgotten = "The entry is no longer kept"
const triedAgain = (attempt: number): string => `The entry was tried again already: see attempt ${attempt}`
const triedOften = (tries: number): string =>
  `The entry was tried ${tries} times, which is as often as it may be`

/** Why an entry has no next attempt now. */
const obstacleOf = (attempts: Attempts | undefined): string | undefined => {
  if (!attempts) return forgotten
  if (attempts.tries >= dispatchLimits.entryMaxAttempts) return triedOften(attempts.tries)
  return attempts.triedAs === null ? undefined : triedAgain(attempts.triedAs)
}

/** The next attempt of an entry, which somebody asks for, as one that waits. */
const nextEntry = (entry: ProcessingEntry, id: EntryId, attempt: number, askedBy: UserId): NewEntry => ({
  id,
  agentId: entry.agentId,
  entityType: entry.entityType,
  graphObjectId: entry.graphObjectId,
  objectVersion: entry.objectVersion,
  eventType: entry.eventType,
  eventId: entry.eventId,
  attempt,
  runId: null,
  exclusive: false,
  dueAt: null,
  reason: null,
  standsInLine: false,
  skips: false,
  askedBy
})

const refuse = (detail: string) => Effect.fail(new RetryRefused({ detail }))
