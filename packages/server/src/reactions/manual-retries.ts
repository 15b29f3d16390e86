/**
 * Retries abandoned or failed entries on a person's request.
 *
 * A retry is a new entry with the next attempt number and a new run, or a waiting entry when the agent may begin no run now. The old entry
 * keeps its status but is no dead letter any more, unless its next attempt is skipped before it begins. Retries of a run that a person
 * triggered continue in its chain. The unique key over agent, object, version, event type and attempt decides between concurrent requests.
 * Retries by the agent's own policy are opened where the attempt ends.
 */
import type { Agent } from "@tropism/domain/agent"
import { ContextName } from "@tropism/domain/context-event"
import { isPurged } from "@tropism/domain/graph"
import type { EntryId, GraphEventId, RunId, UserId, TaskId, AgentId } from "@tropism/domain/ids"
import { triggeringOf } from "@tropism/domain/mcp-event"
import { batchMaxItems, type ProcessingEntry } from "@tropism/domain/processing"
import { isTerminal, type Run, type LimitOverrides, type PauseReason } from "@tropism/domain/run"
import { isSuggestion, isUndo, type SuggestionTask, type Task } from "@tropism/domain/task"
import { isExclusive, waitSentences, type Wait } from "@tropism/domain/waiting"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Agents } from "../agents/agents.ts"
import { Contexts } from "../contexts/contexts.ts"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { dispatchLimits } from "../limits.ts"
import { Notifier } from "../outbox/notifier.ts"
import { Outbox } from "../outbox/outbox.ts"
import { Tasks } from "../review/tasks.ts"
import type { UndoRefused } from "../review/undo-plan.ts"
import { Undos } from "../review/undo.ts"
import { Admission, noReaction, TriggerRefused } from "../runs/admission.ts"
import { takePlaces } from "../runs/chain-caps.ts"
import type { Attempts } from "../runs/completion-and-retry.ts"
import type { RunNotInState } from "../runs/fencing.ts"
import { type NewEntry, ProcessingLog, makeOccurrences } from "../runs/processing-log.ts"
import { askedRun } from "../runs/run-queries.ts"
import { Runs, type BudgetSpent } from "../runs/run-store.ts"
import { resumeSentence } from "../runs/run-texts.ts"
import type { NewRun } from "../runs/run-types.ts"
import { Projects } from "../tenancy/projects.ts"
import { makeFreePlaces } from "./agent-capacity.ts"
import { makeSubjects, type Subject } from "./explain.ts"
import { type HandledEvent, reactionRun } from "./reaction-run.ts"

/** Why an entry cannot be retried. */
export class RetryRefused extends Schema.TaggedError<RetryRefused>()("RetryRefused", {
  detail: Schema.String
}) {}

/** The result of a request to retry dead letters. */
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
    /**
     * Opens the next attempt of an abandoned or failed entry (S001-R43); it waits, with the reason, when the agent may begin no run now.
     */
    readonly retry: (
      agent: Agent,
      entry: ProcessingEntry,
      by: UserId
    ) => Effect.Effect<ProcessingEntry, RetryRefused | TriggerRefused, ProjectTransaction>
    /** Opens the next attempts of dead letters, the oldest or the given ones; they begin as the agent's limits allow. */
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
      const notifier = yield* Notifier

      /** Returns the subject of an entry, as far as it is stored. */
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

      /** Reads an entry that was just opened. */
      const asOpened = Effect.fnUntraced(function* ({ id }: NewEntry) {
        const found = yield* log.get(id)
        return found ?? (yield* Effect.die(new Error("The entry that was just opened is not there")))
      })

      const retry = Effect.fn("Retries.retry")(function* (agent: Agent, entry: ProcessingEntry, by: UserId) {
        if (entry.status !== "abandoned" && entry.status !== "failed")
          return yield* refuseRetry(
            `The entry is ${entry.status}: only what was abandoned or failed can be tried again`
          )
        const places = yield* placesOf(agent.id)
        const attempts = (yield* log.attemptsOf([entry.id])).get(entry.id)
        const obstacle = retryObstacle(attempts)
        if (!attempts || obstacle !== undefined) return yield* refuseRetry(obstacle ?? forgotten)
        const handled = yield* handledBy(entry)
        if (!handled) return yield* refuseRetry("The event of this entry is no longer kept")
        const runId = (yield* ids.next) as RunId
        const isAlone = agent.reactionConfig !== null && isExclusive(agent.reactionConfig)
        const waiting = nextEntry(entry, (yield* ids.next) as EntryId, attempts.next, by)
        const next: NewEntry =
          places.count > 0
            ? { ...waiting, runId, exclusive: isAlone }
            : { ...waiting, reason: waitSentences[places.wait], skips: isAlone }
        const opened = yield* log.open([next])
        if (!opened.has(next.id)) return yield* refuseRetry(atWork)
        yield* log.revive([entry.id])
        if (next.runId === null) {
          yield* sql.afterCommit(notifier.signal("releases"))
          return yield* asOpened(next)
        }
        const [caps] = yield* takePlaces([[handled.rootEventId]]).pipe(
          Effect.provideService(SqlClient.SqlClient, sql),
          Effect.provideService(Projects, projects)
        )
        const cap = caps?.get(handled.rootEventId)
        if (cap) return yield* refuseRetry(cap.reason)
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
        // A retry waits for a place, so an agent without free places is no reason to refuse.
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
            return { entry, next, obstacle: retryObstacle(own) }
          })
        )
        const opened = yield* log.open(
          items.filter(({ obstacle }) => obstacle === undefined).map(({ next }) => next)
        )
        const isOpened = ({ next }: (typeof items)[number]): boolean => opened.has(next.id)
        yield* log.revive(items.filter(isOpened).map(({ entry }) => entry.id))
        yield* sql.afterCommit(notifier.signal("releases"))
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

/** Returns why an entry has no next attempt now. */
const retryObstacle = (attempts: Attempts | undefined): string | undefined => {
  if (!attempts) return forgotten
  if (attempts.tries >= dispatchLimits.entryMaxAttempts) return triedOften(attempts.tries)
  return attempts.triedAs === null ? undefined : triedAgain(attempts.triedAs)
}

/** Returns the next attempt of an entry as a waiting entry, for the person who requested it. */
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

const refuseRetry = (detail: string) => Effect.fail(new RetryRefused({ detail }))

// Reruns an agent on the occasion of one of its suggestions.
//
// The occasion is the same but the state is current: the agent's current version, and for a reaction the newest events of the same objects.
// The rerun belongs to the person who requested it and begins a chain of its own. A sub-run is not repeated alone, but with the topmost run
// above it. The task names the rerun; of two concurrent requests one is refused. A reaction that the agent may not begin now is refused,
// because the task would have no run to name.

/** Why a rerun was refused. */
export class RerunRefused extends Schema.TaggedError<RerunRefused>()("RerunRefused", {
  reason: Schema.Literals(["alreadyDecided", "expired", "state"]),
  detail: Schema.String
}) {}

export class Reruns extends Context.Service<
  Reruns,
  {
    /** Queues a run on the occasion of a suggestion, or plans an undo again, and returns the task; undefined when there is none. */
    readonly rerun: (
      id: TaskId,
      by: UserId
    ) => Effect.Effect<Task | undefined, RerunRefused | TriggerRefused | UndoRefused, ProjectTransaction>
  }
>()("@tropism/server/dispatch/Reruns") {
  static readonly layer = Layer.effect(
    Reruns,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const projects = yield* Projects
      const ids = yield* Ids
      const agents = yield* Agents
      const tasks = yield* Tasks
      const undos = yield* Undos
      const runs = yield* Runs
      const { placesOf } = yield* makeFreePlaces
      const log = yield* ProcessingLog
      const subjects = yield* makeSubjects

      /** Returns the topmost run above a run, or the run itself. */
      const topmost = Effect.fnUntraced(function* (id: RunId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ readonly id: RunId }>`
          select coalesce(ancestors[1], id) as id from kb.agent_runs where id = ${id} and project_id = ${projectId}`
        return row && (yield* runs.get(row.id))
      }, orDie)

      /** Returns the newest event of each object that the run was about. */
      const presentOf = Effect.fnUntraced(function* (run: Run, agent: Agent) {
        const config = agent.reactionConfig
        if (config === null)
          return yield* refuseRerun(
            `The agent ${agent.name} does not react to events any more: reject the suggestion`
          )
        const objectIds = [...new Set((run.trigger.events ?? []).map(({ objectId }) => objectId))]
        const found = yield* subjects.ofNewest(agent, objectIds)
        const [first, ...others] = found.filter(
          (subject) => !isPurged(subject) && (subject.type !== "deleted" || config.events.includes("deleted"))
        )
        if (first === undefined)
          return yield* refuseRerun(
            "What the agent looked at is deleted, and it does not look at what is: reject the suggestion"
          )
        const present = [first, ...others] as const
        for (const subject of present) {
          const obstacle = rerunObstacle(subject)
          if (obstacle !== undefined) return yield* refuseRerun(obstacle)
        }
        return { present, exclusive: isExclusive(config) }
      })

      /** Opens another entry for each event, so that each object is handled by one run at a time. */
      const open = Effect.fnUntraced(function* (
        present: readonly [Subject, ...Array<Subject>],
        {
          agent,
          exclusive,
          runId
        }: { readonly agent: Agent; readonly exclusive: boolean; readonly runId: RunId }
      ) {
        const entries = yield* Effect.forEach(present, (subject) =>
          Effect.map(ids.next, (id): NewEntry => ({
            id: id as EntryId,
            agentId: agent.id,
            entityType: subject.entityType,
            graphObjectId: subject.entityId,
            objectVersion: subject.version,
            eventType: subject.type,
            eventId: subject.eventId,
            attempt: (subject.attempt ?? 0) + 1,
            runId,
            exclusive,
            dueAt: null,
            reason: null,
            standsInLine: false,
            skips: false
          }))
        )
        if ((yield* log.open(entries)).size < entries.length) return yield* refuseRerun(busy)
        yield* log.revive(present.flatMap(({ entryId }) => entryId ?? []))
      })

      /** Returns the run on the occasion of another, as the root of a chain of its own. */
      const again = Effect.fnUntraced(function* (run: Run, agent: Agent, by: UserId) {
        const id = (yield* ids.next) as RunId
        const root = id as string as GraphEventId
        if (run.trigger.type !== "reaction") return newRun(id, agent, run, by)
        const { exclusive, present } = yield* presentOf(run, agent)
        yield* open(present, { agent, exclusive, runId: id })
        const [first, ...others] = present
        const handled = (subject: Subject) => ({
          eventId: subject.eventId,
          eventType: subject.type,
          entityType: subject.entityType,
          graphObjectId: subject.entityId,
          objectType: subject.objectType,
          objectVersion: subject.version,
          rootEventId: root,
          depth: 0
        })
        return reactionRun(
          id,
          { agentId: agent.id, agentVersion: agent.version },
          [handled(first), ...others.map(handled)],
          by
        )
      })

      const queue = Effect.fnUntraced(function* (task: SuggestionTask, by: UserId) {
        const run = yield* topmost(task.runId)
        if (!run) return yield* Effect.die(new Error(`The run of task ${task.id} is not kept`))
        if (run.trigger.type === "context")
          return yield* refuseRerun(
            `The agent suggested this in a conversation: ask it there, with POST /contexts/${run.contextName}/events`
          )
        const places = yield* placesOf(run.agentId)
        // The task names the run, so the run cannot wait for a place.
        if (places.count <= 0 && isReaction(run)) return yield* full(places.wait)
        const agent = yield* agents.get(run.agentId)
        if (!agent) return yield* Effect.die(new Error(`Agent ${run.agentId} is gone while it is held`))
        const wanted = yield* again(run, agent, by)
        yield* takePlaces([[wanted.rootEventId]]).pipe(
          Effect.provideService(SqlClient.SqlClient, sql),
          Effect.provideService(Projects, projects)
        )
        yield* runs.queue([wanted])
        return wanted.id
      })

      const rerun = Effect.fn("Reruns.rerun")(function* (id: TaskId, by: UserId) {
        const task = yield* tasks.get(id, by)
        if (!task) return undefined
        if (isUndo(task)) return yield* undos.replan(id, by)
        if (!isSuggestion(task))
          return yield* refuseRerun(`Task ${task.number} is no suggestion: nothing led to it again`)
        if (yield* tasks.isOver(id)) return yield* expired(task)
        if (task.status === "pending" && task.rerun !== null && !isTerminal(task.rerun.status))
          return yield* refuseRerun(underWay(task.rerun.runId))
        const runId = yield* task.status === "pending" ? queue(task, by) : decided(task)
        // The state may have changed before the agent was locked; the transaction is then rolled back.
        if (yield* tasks.rerunBy(id, runId)) return yield* tasks.get(id, by)
        const now = yield* tasks.get(id, by)
        if (yield* tasks.isOver(id)) return yield* expired(task)
        if (
          now &&
          isSuggestion(now) &&
          now.status === "pending" &&
          now.rerun !== null &&
          !isTerminal(now.rerun.status)
        )
          return yield* refuseRerun(underWay(now.rerun.runId))
        if (now && isSuggestion(now) && now.status === "pending") return yield* refuseRerun(held)
        return yield* decided(now && isSuggestion(now) ? now : task)
      })

      return Reruns.of({ rerun })
    })
  )
}

const refuseRerun = (detail: string) => Effect.fail(new RerunRefused({ reason: "state", detail }))

/** Whether a run on the same occasion counts towards the limits of its agent's rule. */
const isReaction = ({ trigger }: Run): boolean => trigger.type === "reaction" || trigger.type === "mcpEvent"

const full = (wait: Wait) =>
  Effect.fail(
    new TriggerRefused({ reason: "pendingRuns", detail: `${waitSentences[wait]} Try again later.` })
  )

const decided = ({ number, status }: SuggestionTask) =>
  Effect.fail(
    new RerunRefused({
      reason: "alreadyDecided",
      detail: `Task ${number} is ${status} already: nothing waits for it`
    })
  )

const expired = ({ number }: SuggestionTask) =>
  Effect.fail(
    new RerunRefused({
      reason: "expired",
      detail: `Task ${number} has expired: nobody decided it in time, and nothing waits for it`
    })
  )

const busy = "The agent is at work on this already: wait for what comes of it"

const held = "Somebody decides on it or changes it at this moment: read the task again"

const underWay = (runId: RunId): string =>
  `Run ${runId} looks at this again already: wait for it, or cancel it`

/** Returns why an event cannot be handled again now. */
const rerunObstacle = ({ entryStatus, isDispatched, tries }: Subject): string | undefined => {
  if (!isDispatched) return "It changed just now, and the event is on its way to the agents: try again"
  if (entryStatus === "pending" || entryStatus === "processing") return busy
  return (tries ?? 0) >= dispatchLimits.entryMaxAttempts
    ? `The agent has looked at this ${tries} times, which is as often as it may`
    : undefined
}

/** Returns a run with the same input and the same taint. */
const newRun = (id: RunId, agent: Agent, { taintedBy, trigger }: Run, by: UserId): NewRun => ({
  id,
  agentId: agent.id,
  agentVersion: agent.version,
  trigger,
  contextName: ContextName.make(`run-${id}`),
  rootEventId: id as string as GraphEventId,
  depth: 0,
  userId: by,
  dueAt: null,
  ...beginningWith(taintedBy)
})

/** Returns the taint that the original context began with. */
const beginningWith = (taintedBy: Run["taintedBy"]): Pick<NewRun, "taintedBy"> => {
  const first = taintedBy.filter(({ at }) => at === 0)
  return first.length === 0 ? {} : { taintedBy: first }
}

// Resumes runs that a limit stopped, on a person's request.
//
// The person's message and the queueing are one transaction, so a resumed run has a message to answer. It keeps its id, its log and its
// agent's version.

/** A request to resume a run. */
export interface Resumption {
  /** The message for the model; a standard sentence when absent. */
  readonly message?: string | undefined
  /** The run's new limits, where they change. */
  readonly limits: LimitOverrides
  readonly by: UserId
}

export class Resumptions extends Context.Service<
  Resumptions,
  {
    /** Queues a run that a limit paused; refused while its agent may not begin a run, or while one of its budgets is exhausted. */
    readonly resume: (
      run: { readonly id: RunId; readonly agentId: AgentId; readonly contextName: string },
      resumption: Resumption
    ) => Effect.Effect<void, RunNotInState | BudgetSpent | TriggerRefused, ProjectTransaction>
  }
>()("@tropism/server/dispatch/Resumptions") {
  static readonly layer = Layer.effect(
    Resumptions,
    Effect.gen(function* () {
      const admission = yield* Admission
      const runs = yield* Runs
      const contexts = yield* Contexts

      const resume = Effect.fn("Resumptions.resume")(function* (
        run: { readonly id: RunId; readonly agentId: AgentId; readonly contextName: string },
        { by, limits, message }: Resumption
      ) {
        yield* admission.places(run.agentId)
        yield* runs.resume(run.id, limits)
        yield* contexts.append(run.contextName as ContextName, [
          {
            type: "RunResumedEvent",
            by,
            content: message ?? resumeSentence,
            ...(message === undefined ? {} : { userId: by }),
            triggersAgentTurn: true
          }
        ])
      })

      return Resumptions.of({ resume })
    })
  )
}

const restingSentences: Readonly<Record<PauseReason, string>> = {
  stepLimit: "The run is paused",
  timeout: "The run is paused",
  budget: "The run is paused",
  question: "The run waits for an answer: answer its question, and it goes on",
  subAgents: "The run waits for the runs that it spawned: it goes on by itself when they have ended",
  killSwitch: "The run was stopped by a kill switch: it goes on by itself when that is turned off",
  toolResult:
    "The run waits for a client to answer a tool call: it goes on with the result, or when the time for that is over"
}

/** Returns why a run cannot be resumed. */
export const whyNotResumed = ({
  backtestId,
  pauseReason,
  status
}: Pick<Run, "backtestId" | "pauseReason" | "status">): string =>
  backtestId !== null && !isTerminal(status)
    ? "The run belongs to a backtest and does not go on: raise the limit, and begin another backtest"
    : pauseReason !== null && status === "paused"
      ? restingSentences[pauseReason]
      : isTerminal(status)
        ? `The run is ${status}: it has ended and does not go on`
        : `The run is ${status} already`
