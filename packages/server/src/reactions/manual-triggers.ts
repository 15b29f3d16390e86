/**
 * Starts an agent on request: manually, or by a message in a context.
 *
 * A trigger is committed before it is acknowledged: the caller may wait for the run, but the run does not wait for the caller. A message
 * and the run that answers it are one transaction, so no message stays unanswered.
 */
import type { Agent } from "@tropism/domain/agent"
import { ContextName, type NewEvent } from "@tropism/domain/context-event"
import { isPurged } from "@tropism/domain/graph"
import type { ProjectId, RunId, UserId, EntryId, GraphEventId, ObjectId } from "@tropism/domain/ids"
import type { Stop } from "@tropism/domain/kill-switch"
import type { BatchTriggered } from "@tropism/domain/processing"
import { refusalSentences, type ReactionConfig, refuses } from "@tropism/domain/reaction"
import { type Run, type Trigger, isAtRest } from "@tropism/domain/run"
import { isExclusive, type Wait, waitSentences } from "@tropism/domain/waiting"
import { Context, Effect, Layer, Option, Result, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Agents } from "../agents/agents.ts"
import { type ContextHead, Contexts } from "../contexts/contexts.ts"
import { Database, retryTransaction, type ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { agentLimits, runLimits, dispatchLimits } from "../limits.ts"
import { nextNotification, Notifier } from "../outbox/notifier.ts"
import { makeWaitBudget } from "../outbox/outages.ts"
import { Admission, TriggerRefused, noReaction } from "../runs/admission.ts"
import { takePlaces } from "../runs/chain-caps.ts"
import { KillSwitches } from "../runs/kill-switches.ts"
import { type NewEntry, ProcessingLog } from "../runs/processing-log.ts"
import { Runs } from "../runs/run-store.ts"
import { chainRoot } from "../runs/run-types.ts"
import { Projects } from "../tenancy/projects.ts"
import { makeFreePlaces } from "./agent-capacity.ts"
import { makeSubjects, type Subject } from "./explain.ts"
import { reactionRun } from "./reaction-run.ts"

/** Why a turn was not interrupted. */
export class InterruptRefused extends Schema.TaggedError<InterruptRefused>()("InterruptRefused", {
  reason: Schema.Literals(["noTurn", "underWay", "ofBacktest"])
}) {}

/** Why the context of a backtest takes no messages, and what to do instead. */
export const ofBacktestSentence =
  "A backtest works in this context, so it is not for talking: fork it, and speak in the fork"

/** Refuses messages in the context of a backtest, which shows what the agent would have done by itself. */
export const openToPeople = ({ isOfBacktest }: ContextHead): Effect.Effect<void, TriggerRefused> =>
  isOfBacktest
    ? Effect.fail(new TriggerRefused({ reason: "ofBacktest", detail: ofBacktestSentence }))
    : Effect.void

export class Triggers extends Context.Service<
  Triggers,
  {
    /** Queues a run of the agent, unless it is disabled, stopped or has too many runs. */
    readonly byHand: (
      agent: Agent,
      input: Schema.Json | undefined,
      by: UserId
    ) => Effect.Effect<RunId, TriggerRefused, ProjectTransaction>
    /**
     * Appends an event to a context; one that triggers gets a run to answer it, or is refused with nothing written.
     *
     * **Details** `judged` checks the event against the log in the same transaction, just before the append.
     */
    readonly byEvent: <E = never>(
      context: ContextHead,
      event: NewEvent,
      by: UserId,
      judged?: Effect.Effect<void, E, ProjectTransaction>
    ) => Effect.Effect<void, TriggerRefused | E, ProjectTransaction>
    /**
     * Requests the end of the open turn and queues its run again when it waits for a person, a client or other runs; returns the kill
     * switch that delays the end, if one is on.
     */
    readonly interrupt: (
      context: ContextHead,
      by: UserId
    ) => Effect.Effect<Stop | undefined, InterruptRefused, ProjectTransaction>
    /** Returns the run's current state. */
    readonly look: (projectId: ProjectId, id: RunId) => Effect.Effect<Run | undefined>
    /** Returns a run as this transaction sees it. */
    readonly seen: (id: RunId) => Effect.Effect<Run | undefined, never, ProjectTransaction>
    /** Waits until a run has ended or paused, up to the time limit. */
    readonly settled: (projectId: ProjectId, id: RunId) => Effect.Effect<Run | undefined>
  }
>()("@tropism/server/dispatch/Triggers") {
  static readonly layer = Layer.effect(
    Triggers,
    Effect.gen(function* () {
      const database = yield* Database
      const runs = yield* Runs
      const admission = yield* Admission
      const agents = yield* Agents
      const contexts = yield* Contexts
      const ids = yield* Ids
      const notifier = yield* Notifier
      const switches = yield* KillSwitches

      const byHand = Effect.fn("Triggers.byHand")(function* (
        agent: Agent,
        input: Schema.Json | undefined,
        by: UserId
      ) {
        yield* admission.places(agent.id)
        const id = (yield* ids.next) as RunId
        const trigger: Trigger = { type: "manual", ...(input === undefined ? {} : { input }) }
        const contextName = ContextName.make(`run-${id}`)
        yield* runs.queue([chainRoot(id, agent, { contextName, trigger, userId: by })])
        return id
      })

      const byEvent = Effect.fn("Triggers.byEvent")(function* <E>(
        context: ContextHead,
        event: NewEvent,
        by: UserId,
        judged: Effect.Effect<void, E, ProjectTransaction> = Effect.void
      ) {
        yield* openToPeople(context)
        const keep = Effect.andThen(judged, contexts.append(context.name, [addedBy(event, by)]))
        if (event.triggersAgentTurn !== true) return yield* Effect.asVoid(keep)
        // Refuse messages that no run would answer: for a disabled or deleted agent, or a run paused at a limit.
        const admitted = yield* Effect.result(admission.places(context.agentId))
        if (
          Result.isFailure(admitted) &&
          (admitted.failure.reason !== "pendingRuns" || (yield* runs.restsAtLimit(context.name)))
        )
          return yield* admitted.failure
        const agent = yield* agents.get(context.agentId)
        if (!agent) return yield* Effect.die(new Error(`Agent ${context.agentId} is gone while it is held`))
        // The message resumes a run that a limit paused; otherwise no run would answer it.
        const isResumed = Result.isSuccess(admitted) && (yield* runs.resumeOn(context.name))
        yield* keep
        if (isResumed) return
        const isQueued = yield* runs.queueOn(
          chainRoot((yield* ids.next) as RunId, agent, {
            contextName: context.name,
            trigger: { type: "context" },
            userId: by
          })
        )
        // A run that is active on the context answers the message and needs no place.
        if (isQueued && Result.isFailure(admitted)) return yield* admitted.failure
        // A limit paused the run between the check and the lock of its log: the retry resumes it or refuses the message.
        if (!isQueued && (yield* runs.restsAtLimit(context.name))) return yield* retryTransaction
      })

      const interrupt = Effect.fn("Triggers.interrupt")(function* (
        { isOfBacktest, name }: ContextHead,
        by: UserId
      ) {
        if (isOfBacktest) return yield* new InterruptRefused({ reason: "ofBacktest" })
        // Lock the run before the log, in the order of an answer, so that the run cannot pause in between.
        const resting = yield* runs.holdResting(name)
        const { openTurnNumber } = yield* contexts.lock(name)
        if (openTurnNumber === null) return yield* new InterruptRefused({ reason: "noTurn" })
        const since = yield* contexts.read(name, openTurnNumber, agentLimits.logPageEvents)
        if (since.some(({ type }) => type === "InterruptRequestedEvent"))
          return yield* new InterruptRefused({ reason: "underWay" })
        yield* contexts.append(name, [{ type: "InterruptRequestedEvent", by }])
        if (resting) yield* runs.wake(resting.id, resting.reason)
        return yield* switches.find
      })

      const look = (projectId: ProjectId, id: RunId) => database.inProject(projectId, runs.get(id))

      const settled = Effect.fn("Triggers.settled")(function* (projectId: ProjectId, id: RunId) {
        const mailbox = yield* notifier.listen(`run:${id}`)
        const patiently = yield* makeWaitBudget(runLimits.triggerWaitMs)
        const looked = patiently(look(projectId, id))
        const atRest = Effect.gen(function* () {
          while (true) {
            const run = yield* looked
            if (!run || isAtRest(run)) return run
            yield* nextNotification(mailbox, runLimits.callerLookMs)
          }
        })
        const seen = yield* Effect.timeoutOption(atRest, runLimits.triggerWaitMs)
        return Option.isSome(seen) ? seen.value : yield* looked
      }, Effect.scoped)

      return Triggers.of({ byHand, byEvent, interrupt, look, seen: runs.get, settled })
    })
  )
}

/** Returns an event with the requesting person as its author (S003-R44). */
const addedBy = <E extends NewEvent>(event: E, userId: UserId): E & { readonly userId: UserId } => ({
  ...event,
  userId
})

// Lets an agent handle objects or events that a person names.
//
// Each item is a run and a chain of its own. Items beyond `maxConcurrency` or `rateLimit` wait for the releaser, in the chain of their
// event. Items that were handled, are being handled or exceed `maxPendingRuns` are returned with the reason; the unique keys of the
// processing log decide between concurrent requests.

/** The objects or events to handle. */
export type Wanted =
  | { readonly type: "objects"; readonly ids: ReadonlyArray<ObjectId> }
  | { readonly type: "events"; readonly ids: ReadonlyArray<GraphEventId> }

/** A planned entry for one item, with its run or waiting for one. */
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
      const notifier = yield* Notifier
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

      /** Opens the entries that the log allows and queues the runs that may begin, each the root of its own chain. */
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
        if (begun.length < open.length) yield* sql.afterCommit(notifier.signal("releases"))
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

/** Returns why an item cannot be handled, independent of the person and of the agent's current work. */
const obstacleOf = (
  subject: Subject | undefined,
  agent: Agent,
  config: ReactionConfig,
  by: UserId
): string | undefined => {
  if (!subject) return nothing
  // Its entries were purged with it, so it is unknown whether the agent handled it.
  if (isPurged(subject)) return purged
  // A person's request ignores the event's cause and its depth in a chain.
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

/** A run without a cause is its own root. */
const rootOf = (runId: RunId): GraphEventId => runId as string as GraphEventId

/** Returns the run of one item: the root of its own chain, as if a person had triggered it. */
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
