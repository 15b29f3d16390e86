/**
 * Lets an agent look again at what it suggested something about.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * The occasion is the same and the present is not: the agent's version of now,
 * and for a reaction the newest events of the same objects. It is what the
 * person wants who asks for it, so it begins a chain of its own. A run that
 * another spawned is not begun alone, but with the first run above it. The task
 * says which run looks again; of two who ask at once, one is told so. A reaction
 * that the agent may not begin now is refused: the task would have no run to name.
 */
import type { Agent } from "@tropism/domain/agent"
import { ContextName } from "@tropism/domain/context-event"
import { isPurged } from "@tropism/domain/graph"
import type { EntryId, GraphEventId, RunId, TaskId, UserId } from "@tropism/domain/ids"
import { isSuggestion, isUndo, type SuggestionTask, type Task } from "@tropism/domain/task"
import { isTerminal, type Run } from "@tropism/domain/run"
import { isExclusive, type Wait, waitSentences } from "@tropism/domain/waiting"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Agents } from "../agent/agents.ts"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { Projects } from "../database/projects.ts"
import { Ids } from "../ids.ts"
import { dispatchLimits } from "../limits.ts"
import { TriggerRefused } from "../run/admission.ts"
import { takePlaces } from "../run/chain-places.ts"
import type { NewRun } from "../run/claimed-run.ts"
import { type NewEntry, ProcessingLog } from "../run/processing-log.ts"
import { Runs } from "../run/runs.ts"
import { Tasks } from "../task/tasks.ts"
import type { UndoRefused } from "../task/undo-refused.ts"
import { Undos } from "../task/undos.ts"
import { makeFreePlaces } from "./free-places.ts"
import { reactionRun } from "./reaction-run.ts"
import { makeSubjects, type Subject } from "./subjects.ts"

/** Why nothing is run again. */
export class RerunRefused extends Schema.TaggedError<RerunRefused>()("RerunRefused", {
  reason: Schema.Literals(["alreadyDecided", "expired", "state"]),
  detail: Schema.String
}) {}

export class Reruns extends Context.Service<
  Reruns,
  {
    /** Queues a run on the occasion of a suggestion, or plans an undo anew, and answers the task; undefined when there is none. */
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

      /** The first of the runs that led to a run by spawning, or the run itself. */
      const topmost = Effect.fnUntraced(function* (id: RunId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ readonly id: RunId }>`
          select coalesce(ancestors[1], id) as id from kb.agent_runs where id = ${id} and project_id = ${projectId}`
        return row && (yield* runs.get(row.id))
      }, orDie)

      /** What the agent would look at now: the newest event of each object that its run was about. */
      const presentOf = Effect.fnUntraced(function* (run: Run, agent: Agent) {
        const config = agent.reactionConfig
        if (config === null)
          return yield* refuse(
            `The agent ${agent.name} does not react to events any more: reject the suggestion`
          )
        const objectIds = [...new Set((run.trigger.events ?? []).map(({ objectId }) => objectId))]
        const found = yield* subjects.ofNewest(agent, objectIds)
        const [first, ...others] = found.filter(
          (subject) => !isPurged(subject) && (subject.type !== "deleted" || config.events.includes("deleted"))
        )
        if (first === undefined)
          return yield* refuse(
            "What the agent looked at is deleted, and it does not look at what is: reject the suggestion"
          )
        const present = [first, ...others] as const
        for (const subject of present) {
          const obstacle = obstacleOf(subject)
          if (obstacle !== undefined) return yield* refuse(obstacle)
        }
        return { present, exclusive: isExclusive(config) }
      })

      /** Opens a further entry for each event, so that the agent is at work on each object once. */
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
        if ((yield* log.open(entries)).size < entries.length) return yield* refuse(busy)
        yield* log.revive(present.flatMap(({ entryId }) => entryId ?? []))
      })

      /** The run on the occasion of another, the root of a chain of its own. */
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
          return yield* refuse(
            `The agent suggested this in a conversation: ask it there, with POST /contexts/${run.contextName}/events`
          )
        const places = yield* placesOf(run.agentId)
        // The task names the run, so it cannot wait for one.
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
          return yield* refuse(`Task ${task.number} is no suggestion: nothing led to it again`)
        if (yield* tasks.isOver(id)) return yield* expired(task)
        if (task.status === "pending" && task.rerun !== null && !isTerminal(task.rerun.status))
          return yield* refuse(underWay(task.rerun.runId))
        const runId = yield* task.status === "pending" ? queue(task, by) : decided(task)
        // What was seen may have changed before the agent was held; then all of this is undone.
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
          return yield* refuse(underWay(now.rerun.runId))
        if (now && isSuggestion(now) && now.status === "pending") return yield* refuse(held)
        return yield* decided(now && isSuggestion(now) ? now : task)
      })

      return Reruns.of({ rerun })
    })
  )
}

const refuse = (detail: string) => Effect.fail(new RerunRefused({ reason: "state", detail }))

/** Whether a run on the same occasion counts in the bounds of its agent's rule. */
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

/** Why an event is not looked at again now. */
const obstacleOf = ({ entryStatus, isDispatched, tries }: Subject): string | undefined => {
  if (!isDispatched) return "It changed just now, and the event is on its way to the agents: try again"
  if (entryStatus === "pending" || entryStatus === "processing") return busy
  return (tries ?? 0) >= dispatchLimits.entryMaxAttempts
    ? `The agent has looked at this ${tries} times, which is as often as it may`
    : undefined
}

/** A run with the same input, which is as untrusted as it was. */
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

/** What a context begins with that another began with. */
const beginningWith = (taintedBy: Run["taintedBy"]): Pick<NewRun, "taintedBy"> => {
  const first = taintedBy.filter(({ at }) => at === 0)
  return first.length === 0 ? {} : { taintedBy: first }
}
