/**
 * Lets an agent handle objects or events that a person names.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * Each item is a run and a chain of its own. What `maxConcurrency` or `rateLimit`
 * holds back waits for the releaser, in the chain of its event. What was handled,
 * is being handled or is beyond `maxPendingRuns` is answered with the reason; the
 * unique keys of the processing log decide between two who ask at once.
 */
import type { Agent } from "@tropism/domain/agent"
import { isPurged } from "@tropism/domain/graph"
import type { EntryId, GraphEventId, ObjectId, RunId, UserId } from "@tropism/domain/ids"
import type { BatchTriggered } from "@tropism/domain/processing"
import { refusalSentences, type ReactionConfig, refuses } from "@tropism/domain/reaction"
import { isExclusive, type Wait, waitSentences } from "@tropism/domain/waiting"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { ProjectTransaction } from "../database/database.ts"
import { Projects } from "../database/projects.ts"
import { Ids } from "../ids.ts"
import { dispatchLimits } from "../limits.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import { type NewEntry, ProcessingLog } from "../run/processing-log.ts"
import { Runs } from "../run/runs.ts"
import { noReaction, type TriggerRefused } from "../run/admission.ts"
import { takePlaces } from "../run/chain-places.ts"
import { makeFreePlaces } from "./free-places.ts"
import { reactionRun } from "./reaction-run.ts"
import { makeSubjects, type Subject } from "./subjects.ts"

/** What somebody wants handled. */
export type Wanted =
  | { readonly type: "objects"; readonly ids: ReadonlyArray<ObjectId> }
  | { readonly type: "events"; readonly ids: ReadonlyArray<GraphEventId> }

/** An entry to be, for one item, with its run or waiting for one. */
interface Item {
  readonly subject: Subject
  readonly entry: NewEntry
}

export class BatchTriggers extends Context.Service<
  BatchTriggers,
  {
    readonly trigger: (
      agent: Agent,
      wanted: Wanted,
      by: UserId
    ) => Effect.Effect<BatchTriggered, TriggerRefused, ProjectTransaction>
  }
>()("@tropism/server/dispatch/BatchTriggers") {
  static readonly layer = Layer.effect(
    BatchTriggers,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const projects = yield* Projects
      const ids = yield* Ids
      const log = yield* ProcessingLog
      const runs = yield* Runs
      const { placesOf } = yield* makeFreePlaces
      const wakeUps = yield* WakeUps
      const subjects = yield* makeSubjects

      const itemOf = Effect.fnUntraced(function* (
        subject: Subject,
        config: ReactionConfig,
        agent: Agent,
        by: UserId,
        wait: Wait | undefined
      ) {
        const item: Item = {
          subject,
          entry: {
            id: (yield* ids.next) as EntryId,
            agentId: agent.id,
            entityType: subject.entityType,
            graphObjectId: subject.entityId,
            objectVersion: subject.version,
            eventType: subject.type,
            eventId: subject.eventId,
            attempt: (subject.attempt ?? 0) + 1,
            runId: wait === undefined ? ((yield* ids.next) as RunId) : null,
            exclusive: wait === undefined && isExclusive(config),
            dueAt: null,
            reason: wait === undefined ? null : waitSentences[wait],
            standsInLine: false,
            skips: wait !== undefined && config.concurrencyStrategy === "skip",
            askedBy: by
          }
        }
        return item
      })

      /** Opens the entries, as far as the log lets them, and queues the runs of those that may begin, each the root of its own chain. */
      const begin = Effect.fnUntraced(function* (items: ReadonlyArray<Item>, agent: Agent, by: UserId) {
        const opened = yield* log.open(items.map(({ entry }) => entry))
        const open = items.filter(({ entry }) => opened.has(entry.id))
        const begun = open.flatMap(({ entry, subject }) =>
          entry.runId === null ? [] : [{ runId: entry.runId, subject }]
        )
        yield* takePlaces(begun.map(({ runId }) => [rootOf(runId)])).pipe(
          Effect.provideService(SqlClient.SqlClient, sql),
          Effect.provideService(Projects, projects)
        )
        yield* runs.queue(begun.map(({ runId, subject }) => newRun(runId, subject, agent, by)))
        yield* log.revive(open.flatMap(({ subject }) => subject.entryId ?? []))
        if (begun.length < open.length) yield* sql.afterCommit(wakeUps.signal("releases"))
        return opened
      })

      const trigger = Effect.fn("BatchTriggers.trigger")(function* (
        agent: Agent,
        wanted: Wanted,
        by: UserId
      ) {
        const config = agent.reactionConfig
        if (agent.triggerType !== "reaction" || config === null) return yield* noReaction(agent)
        const places = yield* placesOf(agent.id)
        const found = yield* wanted.type === "objects"
          ? subjects.ofObjects(agent, wanted.ids)
          : subjects.ofEvents(agent, wanted.ids)
        const byId = new Map<string, Subject>(
          found.map((subject) => [wanted.type === "objects" ? subject.entityId : subject.eventId, subject])
        )
        const skipped: Array<BatchTriggered["skipped"][number]> = []
        const items: Array<Item> = []
        for (const id of wanted.ids) {
          const subject = byId.get(id)
          const wait = items.length < places.count ? undefined : places.wait
          const reason =
            obstacleOf(subject, agent, config, by) ??
            (wait === "pendingRuns" ? waitSentences.pendingRuns : undefined)
          if (subject && reason === undefined) items.push(yield* itemOf(subject, config, agent, by, wait))
          else skipped.push({ id, reason: reason ?? nothing })
        }
        const opened = yield* begin(items, agent, by)
        const idOf = ({ subject }: Item) => (wanted.type === "objects" ? subject.entityId : subject.eventId)
        const isOpened = ({ entry }: Item): boolean => opened.has(entry.id)
        const answer: BatchTriggered = {
          queued: items.filter(isOpened).map((item) => ({
            id: idOf(item),
            entryId: item.entry.id,
            runId: item.entry.runId,
            reason: item.entry.reason
          })),
          skipped: [
            ...skipped,
            ...items.filter((item) => !isOpened(item)).map((item) => ({ id: idOf(item), reason: busy }))
          ]
        }
        return answer
      })

      return BatchTriggers.of({ trigger })
    })
  )
}

const nothing =
  "There is no such object or event, or none of its events is of a kind that the agent reacts to"
const purged = "It was purged: what the event said is gone, and no agent handles it any more"
const busy = "The agent is at work on this object, or the event is being handled already"

/** Why an item is not handled, whoever asks and whatever the agent is doing. */
const obstacleOf = (
  subject: Subject | undefined,
  agent: Agent,
  config: ReactionConfig,
  by: UserId
): string | undefined => {
  if (!subject) return nothing
  // Its entries went with it, so nobody knows any more what the agent has handled.
  if (isPurged(subject)) return purged
  // A person wants it now: who caused the event, and how deep in a chain, is no matter any more.
  const asked = { ...subject, actorType: "user" as const, actorId: by, undoes: [], depth: 0 }
  const refusal = refuses(agent.id, config, asked, 1)
  if (refusal !== undefined && refusal !== "chainDepth") return refusalSentences[refusal]
  if (!subject.isDispatched) return "The event is on its way to the agents: it was not dispatched yet"
  if (subject.entryStatus === "completed" || subject.wasHandled) return "The agent has handled this already"
  if (subject.entryStatus === "pending" || subject.entryStatus === "processing") return busy
  return (subject.tries ?? 0) >= dispatchLimits.entryMaxAttempts
    ? `It was tried ${subject.tries} times, which is as often as it may be`
    : undefined
}

/** A run that nothing caused is its own root. */
const rootOf = (runId: RunId): GraphEventId => runId as string as GraphEventId

/** The run of one item: the root of a chain of its own, as if a person had triggered it. */
const newRun = (runId: RunId, subject: Subject, agent: Agent, by: UserId) =>
  reactionRun(
    runId,
    { agentId: agent.id, agentVersion: agent.version },
    [
      {
        eventId: subject.eventId,
        eventType: subject.type,
        entityType: subject.entityType,
        graphObjectId: subject.entityId,
        objectType: subject.objectType,
        objectVersion: subject.version,
        rootEventId: rootOf(runId),
        depth: 0
      }
    ],
    by
  )
