/**
 * Turns committed events into queued runs: event × agent, once.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * One transaction claims events, opens their processing entries, queues their
 * runs and marks the events: dying before its commit leaves everything to be
 * done again, dying after it leaves nothing to do. A unique key, not this code,
 * keeps an agent from handling an event twice. Projects take turns.
 */
import type { EntryId, ObjectId, ProjectId, RunId } from "@tropism/domain/ids"
import { ContextName } from "@tropism/domain/context-event"
import type { NotedRefusal } from "@tropism/domain/graph"
import { findRefusal, type Told } from "@tropism/domain/refusal"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { CrashPoint } from "../crash-point.ts"
import { Database, orDie } from "../database/database.ts"
import { Projects } from "../database/projects.ts"
import { Ids } from "../ids.ts"
import { dispatchLimits } from "../limits.ts"
import { type ClaimedEvent, type Dispatched, Outbox } from "../outbox/outbox.ts"
import { drive, share, WakeUps } from "../outbox/wake-ups.ts"
import { type NewEntry, ProcessingLog } from "../run/processing-log.ts"
import type { NewRun } from "../run/claimed-run.ts"
import { Runs } from "../run/runs.ts"
import { type Candidate, findCandidates } from "./candidates.ts"
import { takePlaces } from "./chains.ts"

/** An agent that an event wakes. */
interface Match {
  readonly event: ClaimedEvent
  readonly candidate: Candidate
  readonly entry: NewEntry
}

/** The refusals of one round, by event. */
type Refusals = Map<ClaimedEvent["id"], Array<NotedRefusal>>

export class Dispatcher extends Context.Service<
  Dispatcher,
  {
    /** Dispatches for ever. */
    readonly run: Effect.Effect<never>
    /** One batch of each project that has events; true when there was any. */
    readonly round: Effect.Effect<boolean>
  }
>()("@tropism/server/dispatch/Dispatcher") {
  static readonly layer = Layer.effect(
    Dispatcher,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const outbox = yield* Outbox
      const log = yield* ProcessingLog
      const runs = yield* Runs
      const projects = yield* Projects
      const ids = yield* Ids
      const wakeUps = yield* WakeUps

      /** Judges each candidate and notes why the others are refused. */
      const judge = Effect.fnUntraced(function* (events: ReadonlyArray<ClaimedEvent>, refusals: Refusals) {
        const candidates = Map.groupBy(
          yield* findCandidates(events).pipe(Effect.provideService(SqlClient.SqlClient, sql)),
          (candidate) => candidate.eventId
        )
        const { chainLimits } = yield* projects.settings
        const matches: Array<Match> = []
        for (const event of events) {
          // Relationships wake nobody yet: a reaction names object types (S001-R47).
          if (event.entityType !== "graphObject") continue
          for (const candidate of candidates.get(event.id) ?? []) {
            const refusal = findRefusal(candidate.agentId, candidate.config, event, chainLimits)
            if (refusal === undefined)
              matches.push({ event, candidate, entry: yield* newEntry(event, candidate) })
            else note(refusals, event, candidate, refusal)
          }
        }
        return matches
      })

      const newEntry = Effect.fnUntraced(function* (event: ClaimedEvent, candidate: Candidate) {
        const entry: NewEntry = {
          id: (yield* ids.next) as EntryId,
          agentId: candidate.agentId,
          graphObjectId: event.entityId as ObjectId,
          objectVersion: event.version,
          eventType: event.type,
          eventId: event.id,
          runId: (yield* ids.next) as RunId,
          exclusive: candidate.config.concurrencyStrategy === "skip",
          attempt: 1
        }
        return entry
      })

      /** Opens entries, takes places in the chains and queues the runs that got both. */
      const wake = Effect.fnUntraced(function* (matches: ReadonlyArray<Match>, refusals: Refusals) {
        if (matches.length === 0) return
        const opened = yield* log.open(matches.map((match) => match.entry))
        yield* log.skip(matches.filter(({ entry }) => !opened.has(entry.id)).map(({ entry }) => entry))
        const woken = matches.filter(({ entry }) => opened.has(entry.id))
        const caps = yield* takePlaces(woken.map(({ event }) => event.rootEventId)).pipe(
          Effect.provideService(SqlClient.SqlClient, sql),
          Effect.provideService(Projects, projects)
        )
        const capped = woken.flatMap((match, index) => {
          const cap = caps[index]
          return cap ? [{ ...match, cap }] : []
        })
        for (const { event, candidate, cap } of capped) note(refusals, event, candidate, cap)
        if (capped.length > 0) yield* log.withdraw(capped.map(({ entry }) => entry.id))
        yield* runs.queue(woken.filter((_, index) => caps[index] === undefined).map(newRun))
      })

      const batch = Effect.gen(function* () {
        const events = yield* outbox.claim(dispatchLimits.batchEvents)
        if (events.length === 0) return 0
        const refusals: Refusals = new Map()
        yield* wake(yield* judge(events, refusals), refusals)
        yield* outbox.settle(events.map(({ id }): Dispatched => ({ id, refusals: refusals.get(id) ?? [] })))
        yield* CrashPoint.hit("dispatch.beforeCommit")
        return events.length
      })

      const round = Effect.gen(function* () {
        const due = yield* orDie(
          sql<{ projectId: ProjectId }>`select project_id from kb.projects_with_events() as project_id`
        )
        let dispatched = 0
        for (const { projectId } of due) {
          const count = yield* share("Dispatcher", projectId, database.inProject(projectId, batch))
          if (count === 0) continue
          dispatched += count
          yield* CrashPoint.hit("dispatch.afterCommit")
          yield* wakeUps.signal(`feed:${projectId}`)
        }
        return dispatched > 0
      }).pipe(Effect.withSpan("Dispatcher.round"))

      return Dispatcher.of({
        run: drive("Dispatcher", "events", dispatchLimits.sweepIntervalMs, round).pipe(
          Effect.provideService(WakeUps, wakeUps)
        ),
        round
      })
    })
  )
}

const note = (refusals: Refusals, event: ClaimedEvent, { agentId }: Candidate, told: Told): void => {
  const noted = { agentId, rule: told.rule, reason: told.reason }
  refusals.set(event.id, [...(refusals.get(event.id) ?? []), noted])
}

const newRun = ({ event, candidate, entry }: Match): NewRun => ({
  id: entry.runId,
  agentId: candidate.agentId,
  agentVersion: candidate.agentVersion,
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
  contextName: ContextName.make(`run-${entry.runId}`),
  rootEventId: event.rootEventId,
  depth: event.depth,
  userId: null,
  dueAt: null
})
