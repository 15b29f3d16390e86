/**
 * Records a person's decision about a suggestion and applies it to the graph.
 *
 * **Invariant** A decision is one statement that names the state it leaves, so one of fifty concurrent approvals wins.
 * Decision, change and history are one transaction: no approved task lacks its change. The change is the agent's, approved by
 * the person, so the agent is not woken by it.
 */
import type { Actor, Cause } from "@tropism/domain/actor"
import type { Change } from "@tropism/domain/change"
import type { AgentId, GraphEventId, RunId, TaskId, ToolCallId, UserId } from "@tropism/domain/ids"
import { canonicalJson, type Properties } from "@tropism/domain/json"
import { placeText } from "@tropism/domain/property-filter"
import {
  AddedRelationship,
  PropertyConflict,
  type Standing,
  judgeStaleness,
  toldPointers
} from "@tropism/domain/staleness"
import {
  isQuestion,
  isTodo,
  type Task,
  type PromotionPayload,
  type QuestionTask,
  type SuggestionPayload,
  type SuggestionTask,
  SuggestionType,
  type TodoTask
} from "@tropism/domain/task"
import { shortened } from "@tropism/domain/text-beginning"
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { CrashPoint } from "../crash-point.ts"
import { ProjectTransaction, orDie } from "../database/database.ts"
import { Gateway } from "../graph/gateway.ts"
import { makeFencing } from "../graph/inspector.ts"
import { Notifier } from "../outbox/notifier.ts"
import { makeDemotions, makeTrustCounts } from "./autonomy.ts"
import { taskLimits, reviewLimits } from "./limits.ts"
import { makeRejections } from "./rejections.ts"
import { makeTaskReading } from "./task-queries.ts"
import { UndoRefused } from "./undo-plan.ts"
import { type DecidedUndo, makeUndoing } from "./undo.ts"

/** Changes that an approval would have overwritten. */
export const Outdated = Schema.Struct({
  conflicts: Schema.Array(PropertyConflict),
  /** Current version of the target; null when there is none. */
  current: Schema.NullOr(Schema.Int),
  /** Whether the target, or an end of a new relationship, is deleted. */
  gone: Schema.Boolean,
  /** Relationships that others added since and that would be deleted with the object. */
  relationships: Schema.Array(AddedRelationship)
})
type Outdated = typeof Outdated.Type

const outdatedOf = (
  { added, current, isGone }: Standing,
  conflicts: ReadonlyArray<PropertyConflict>
): Outdated => ({
  conflicts,
  current: current?.version ?? null,
  gone: isGone,
  relationships: added
})

/** Checks whether an entity that a change needs was purged. */
const makePurgedQuestion = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return Effect.fnUntraced(function* (change: Change) {
    const { projectId } = yield* ProjectTransaction
    const hasPurged = (ids: ReadonlyArray<string>) => sql`
      select 1 from kb.graph_objects where id = any(${ids}::uuid[]) and project_id = ${projectId} and purged_at is not null`
    switch (change.type) {
      case "create":
        return false
      case "update":
      case "delete":
        return (yield* hasPurged([change.objectId])).length > 0
      case "createRelationship":
        return (yield* hasPurged([change.relationship.fromId, change.relationship.toId])).length > 0
      default:
        // A purged relationship leaves no row.
        return (
          (yield* sql`
            select 1 from kb.graph_relationships where id = ${change.relationshipId} and project_id = ${projectId}`)
            .length === 0
        )
    }
  })
})

/** Describes what changed and the remedy. */
const outdatedSentence = (
  change: Change,
  { conflicts, current, gone, relationships }: Outdated,
  isPurged: boolean
): string => {
  const what = change.type.endsWith("Relationship") ? "relationship" : "object"
  if (gone) {
    const [subject, lost] =
      change.type === "createRelationship"
        ? ["An object that it would connect", "object"]
        : [`The ${what}`, what]
    return isPurged
      ? `${subject} was purged after the agent suggested this and cannot come back: reject it`
      : `${subject} was deleted after the agent suggested this: reject it, or restore the ${lost}`
  }
  if (relationships.length > 0)
    return `Since the agent suggested to delete the object, ${relationships.length === 1 ? "a relationship was made that ends at it" : `${relationships.length} relationships were made that end at it`} and would go with it: ${list(relationships.map(({ type }) => type))}. Reject it, or delete the object yourself`
  const places = list(conflicts.map(({ pointer }) => placeText(pointer)))
  if (change.type === "delete" || change.type === "deleteRelationship")
    return `The ${what} changed after the agent suggested to delete it: ${places}. Reject it, or delete the ${what} yourself`
  return `The ${what} changed after the agent suggested this, in what it would write: ${places}. Reject it, or edit it for how the ${what} is now, at version ${current}, before you approve it`
}

const list = (names: ReadonlyArray<string>): string => shortened(names.join(", "), taskLimits.listedMaxChars)

/** Why a decision was refused. */
export class DecisionRefused extends Schema.TaggedError<DecisionRefused>()("DecisionRefused", {
  reason: Schema.Literals([
    "alreadyDecided",
    "digestMismatch",
    "outdated",
    "notEditable",
    "noSuchVersion",
    "isQuestion",
    "isTodo",
    "role",
    "expired",
    "notAssignable",
    "expiresAt"
  ]),
  detail: Schema.String,
  /** For `outdated`: what has changed. */
  met: Schema.optionalKey(Outdated)
}) {}

/** The person who decides. */
export interface Decider {
  readonly userId: UserId
  /** Whether the person may undo agents' changes and revoke their trust, which needs more than the right to change the graph. */
  readonly mayTakeBack: boolean
}

/** Content that a person approves instead of the suggested one. */
export interface Edit {
  readonly data: Properties
  /** The version that the person saw; null for the one the agent saw. */
  readonly baseVersion: number | null
}

/** The verbs of `Tasks` by which a person decides. */
export const makeDecisions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const notifier = yield* Notifier
  const gateway = yield* Gateway
  const hold = yield* makeFencing
  const { get, standing } = yield* makeTaskReading
  const { reviewed } = yield* makeTrustCounts
  const demoting = yield* makeDemotions
  const rejections = yield* makeRejections
  const { undo } = yield* makeUndoing
  const isPurged = yield* makePurgedQuestion

  /** Records the decision once: one statement compares and sets the state. */
  const decide = Effect.fnUntraced(function* (
    id: TaskId,
    to: "completed" | "rejected",
    { mayTakeBack, userId: by }: Decider,
    note: string | null
  ) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<DecidedRow>`
      update kb.tasks set status = ${to}, resolved_by = ${by}, resolution_note = ${note}, resolved_at = now()
      where id = ${id} and project_id = ${projectId} and owner = '' and status = 'pending' and type <> 'question'
        and (expires_at is null or expires_at > now()) returning *`
    if (row) {
      if (!mayTakeBack && (row.type === "undo" || row.type === "promotion"))
        return yield* forReviewers(row.type)
      if ("runId" in row && row.runId !== null) yield* sql.afterCommit(notifier.signal(`run:${row.runId}`))
      return row
    }
    const task = yield* get(id, by)
    if (!task) return undefined
    if (isQuestion(task)) return yield* toBeAnswered(task)
    if (isTodo(task)) return yield* toBeCompleted(task)
    return yield* notOpen(task)
  })

  /**
   * Refuses a change over values that others have set since; returns what it is rebased on, if anything.
   *
   * **Details** The task is locked already. The target is locked before it is judged, so nothing changes between the judgement
   * and the write.
   */
  const judge = Effect.fnUntraced(function* (
    id: TaskId,
    change: Change,
    base: number | null,
    edit: Edit | null
  ) {
    yield* hold(change)
    const met = yield* standing(id, base)
    if (edit !== null && !isKnownVersion(edit.baseVersion, met)) return yield* noSuchVersion(met)
    const { conflicts, moved, state } = judgeStaleness(change, met)
    if (state === "gone" || conflicts.length > 0 || met.added.length > 0) {
      const outdated = outdatedOf(met, conflicts)
      const detail = outdatedSentence(change, outdated, outdated.gone && (yield* isPurged(change)))
      return yield* new DecisionRefused({ reason: "outdated", detail, met: outdated })
    }
    return state === "rebasable" && met.base
      ? { version: met.base.version, moved: toldPointers(moved) }
      : undefined
  })

  const approve = Effect.fn("Tasks.approve")(function* (
    id: TaskId,
    decider: Decider,
    digest: string | null,
    edit: Edit | null,
    leaveOut: ReadonlyArray<string> = []
  ) {
    const by = decider.userId
    const row = yield* decide(id, "completed", decider, null)
    if (!row) return undefined
    yield* expectDigest(row, digest)
    if (row.type === "undo") {
      if (edit !== null) return yield* nothingToEdit("An undo")
      yield* undo(row, by, leaveOut)
      yield* CrashPoint.hit("task.beforeCommit")
      return yield* get(id, by)
    }
    if (leaveOut.length > 0)
      return yield* new UndoRefused({ reason: "notInPlan", detail: "Only of an undo something is left out" })
    if (row.type === "promotion") {
      if (edit !== null) return yield* nothingToEdit("A promotion")
      return yield* get(id, by)
    }
    const change = yield* editedChange(row.payload.suggestedChanges, edit)
    yield* reviewed([id], isSame(change, row.payload.suggestedChanges) ? "accepted" : "edited")
    const rebasedFrom = yield* judge(id, change, edit?.baseVersion ?? row.baseVersion, edit)
    yield* CrashPoint.hit("task.beforeChange")
    const actor: Actor = { actorType: "agent", actorId: row.agentId }
    const cause: Cause = {
      runId: row.runId,
      toolCallId: row.toolCallId,
      taskId: id,
      approvedBy: by,
      rootEventId: row.rootEventId,
      depth: row.depth
    }
    const applied = yield* gateway.apply(change, { actor, cause })
    const entity = applied.entity.kind === "object" ? applied.entity.object : applied.entity.relationship
    const outcome: SuggestionTask["outcome"] = {
      entityId: entity.id,
      version: entity.version,
      change: applied.change,
      ...(rebasedFrom === undefined ? {} : { rebasedFrom })
    }
    yield* sql`update kb.tasks set outcome = ${JSON.stringify(outcome)}::text::jsonb where id = ${id}`
    yield* CrashPoint.hit("task.beforeCommit")
    return yield* get(id, by)
  }, orDie)

  const reject = Effect.fn("Tasks.reject")(function* (
    id: TaskId,
    decider: Decider,
    reason: string | null,
    digest: string | null = null
  ) {
    const by = decider.userId
    const row = yield* decide(id, "rejected", decider, reason)
    if (!row) return undefined
    yield* expectDigest(row, digest)
    if (row.type === "promotion") yield* demoting.reverse(row.payload.promotionId, by, reason)
    else if (row.type !== "undo") {
      yield* reviewed([id], "rejected")
      yield* rejections.keep([id])
    }
    return yield* get(id, by)
  }, orDie)

  const rejectAll = Effect.fn("Tasks.rejectAll")(function* (
    agentId: AgentId,
    by: UserId,
    reason: string | null
  ) {
    const { projectId } = yield* ProjectTransaction
    const known = yield* sql`select 1 from kb.agents where id = ${agentId} and project_id = ${projectId}`
    if (known.length === 0) return undefined
    // Locked in the order in which an agent's refinements lock them, so a concurrent decision comes first or is too late.
    const rejected = yield* sql<{ readonly id: TaskId; readonly runId: RunId }>`
      update kb.tasks set status = 'rejected', resolved_by = ${by}, resolution_note = ${reason}, resolved_at = now()
      where status = 'pending' and id = any(array(
        select id from kb.tasks where project_id = ${projectId} and agent_id = ${agentId} and owner = '' and status = 'pending'
          and type = any(${SuggestionType.literals}::text[]) and (expires_at is null or expires_at > now())
        order by id limit ${reviewLimits.rejectedAtOnce} for update
      )) returning id, run_id`
    const taskIds = rejected.map(({ id }) => id)
    if (taskIds.length === 0) return taskIds
    yield* reviewed(taskIds, "rejected")
    yield* rejections.keep(taskIds)
    for (const runId of new Set(rejected.map((task) => task.runId)))
      yield* sql.afterCommit(notifier.signal(`run:${runId}`))
    yield* CrashPoint.hit("task.beforeCommit")
    return taskIds
  }, orDie)

  return { approve, reject, rejectAll }
})

/** A decided task that carries a change, an undo plan or a promotion. */
type DecidedRow = DecidedSuggestion | DecidedPromotion | DecidedUndoRow

interface DecidedPromotion {
  readonly type: "promotion"
  readonly payload: PromotionPayload
  readonly digest: string
  readonly revision: number
}

interface DecidedUndoRow extends DecidedUndo {
  readonly type: "undo"
  readonly digest: string
}

interface DecidedSuggestion {
  readonly type: SuggestionType
  readonly agentId: AgentId
  readonly runId: RunId
  readonly toolCallId: ToolCallId
  readonly payload: SuggestionPayload
  readonly digest: string
  readonly revision: number
  readonly baseVersion: number | null
  readonly rootEventId: GraphEventId
  readonly depth: number
}

/** Refuses a decision about a text that differs from the one the person saw. */
const expectDigest = (row: DecidedRow, digest: string | null): Effect.Effect<void, DecisionRefused> =>
  digest === null || digest === row.digest
    ? Effect.void
    : Effect.fail(new DecisionRefused({ reason: "digestMismatch", detail: changedSentence(row) }))

const changedSentence = (row: DecidedRow): string => {
  if (row.type === "undo") return "The plan is not the one that you saw: read its items again"
  return row.type !== "promotion" && row.revision > 1
    ? `The agent has refined this suggestion (revision ${row.revision}), and it is not the one that you saw any more: read it again`
    : "The suggestion is not the one that you saw: read it again"
}

const forReviewers = (type: "undo" | "promotion") =>
  new DecisionRefused({
    reason: "role",
    detail:
      type === "undo"
        ? "To decide what is taken back needs the role reviewer"
        : "To decide whether an agent keeps its trust needs the role reviewer"
  })

/** Returns why a task is no longer open; a task whose status is still open has expired. */
export const notOpen = (task: Task): DecisionRefused => {
  const { number, resolutionNote, resolvedBy, status } = task
  if (status === "pending" || status === "expired")
    return new DecisionRefused({
      reason: "expired",
      detail: `Task ${number} has expired: ${resolutionNote ?? "nobody decided it in time"}`
    })
  return new DecisionRefused({
    reason: "alreadyDecided",
    detail: `Task ${number} is ${status} already${resolvedBy === null ? "" : `: ${resolvedBy} decided it`}`
  })
}

/** Refuses a decision about a question, and names where it is answered. */
const toBeAnswered = ({ id, number, runId }: QuestionTask) =>
  new DecisionRefused({
    reason: "isQuestion",
    detail: `Task ${number} is a question, which is answered and not decided: tropism tasks answer ${number} TEXT, or POST /runs/${runId}/answer with {"answer": …, "taskId": "${id}"}`
  })

/** Refuses a decision about a todo: its owner completes it. */
const toBeCompleted = ({ id, number }: TodoTask) =>
  new DecisionRefused({
    reason: "isTodo",
    detail: `Task ${number} is a todo of your own: complete it with POST /tasks/${id}/complete`
  })

/** Returns the change with the person's properties instead of the suggested ones. */
const editedChange = (change: Change, edit: Edit | null): Effect.Effect<Change, DecisionRefused> => {
  if (edit === null) return Effect.succeed(change)
  return "data" in change
    ? Effect.succeed({ ...change, data: edit.data })
    : Effect.fail(nothingToEdit("A deletion"))
}

/** Whether a person's change equals the suggested one, in any key order. */
const isSame = (one: Change, other: Change): boolean => canonicalJson(one) === canonicalJson(other)

const nothingToEdit = (what: string) =>
  new DecisionRefused({ reason: "notEditable", detail: `${what} has no properties to edit` })

/** Whether the version that a person claims to have seen is one of the target's. */
const isKnownVersion = (seen: number | null, { base, current, isGone }: Standing): boolean =>
  seen === null || isGone || (base !== null && current !== null && seen <= current.version)

const noSuchVersion = ({ current }: Standing) =>
  new DecisionRefused({
    reason: "noSuchVersion",
    detail: current
      ? `There is no such version: what it would change is at version ${current.version}`
      : "What it would make has no versions yet: name none"
  })
