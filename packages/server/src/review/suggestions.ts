/**
 * Submits an agent's change for review.
 *
 * A suggestion holds the exact change and its reasons, and is written in the transaction of the requesting call. The
 * project's number counter is locked first, so the agent's open suggestions on a subject are known: a second one on it
 * refines the first. A decision locks the row too, so a decided suggestion is never refined.
 */
import { reviewDefaults, type ReviewPolicy } from "@tropism/domain/agent"
import { type Change, digestText } from "@tropism/domain/change"
import type { GraphObject, Relationship } from "@tropism/domain/graph"
import type { AgentId, GraphEventId, RunId, TaskId, ToolCallId } from "@tropism/domain/ids"
import type { Properties } from "@tropism/domain/json"
import {
  creationText,
  meetsMove,
  patchedBy,
  refine,
  type Said,
  subjectOf,
  touchedBy
} from "@tropism/domain/suggestion"
import { distinctTaints, type Taint } from "@tropism/domain/taint"
import { type Evidence, type SuggestionPayload, SuggestionType, taskTypeOf } from "@tropism/domain/task"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { refused } from "../graph/change-refused.ts"
import { Objects } from "../graph/objects.ts"
import { Relationships } from "../graph/relationships.ts"
import { Ids } from "../ids.ts"
import { FeedSearch } from "../outbox/outbox.ts"
import { digestOf } from "./task-digest.ts"
import { makeTaskReading } from "./task-queries.ts"

/** A change that an agent submits for review. */
export interface Suggestion {
  readonly change: Change
  readonly agentId: AgentId
  readonly agentVersion: number
  readonly runId: RunId
  readonly toolCallId: ToolCallId
  readonly confidence: number | null
  readonly reasoning: string | null
  readonly target: GraphObject | null
  /** The target relationship of the change. */
  readonly relationship: Relationship | null
  /** The newest version of the target that the run has read; null when it has read none. */
  readonly lastRead: number | null
  readonly evidence: ReadonlyArray<Evidence>
  /** The objects whose events woke the run. */
  readonly wokenBy: ReadonlyArray<string>
  /** The untrusted sources that the run has read. */
  readonly untrusted: ReadonlyArray<Taint>
  readonly rootEventId: GraphEventId
  /** The depth of the change in its chain. */
  readonly depth: number
}

/** The task of a suggestion. */
export interface Suggested {
  readonly id: TaskId
  readonly number: number
  /** Whether it refined an open suggestion. */
  readonly isRefined: boolean
}

/** The verbs of `Tasks` that submit suggestions. */
export const makeSuggestions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const objects = yield* Objects
  const relationships = yield* Relationships
  const search = yield* FeedSearch
  const { holdNumbers, nextNumber } = yield* makeTaskReading

  /** The feed position at which the run began to read; the agent need not have seen anything after it. */
  const seenPosition = Effect.fnUntraced(function* (runId: RunId) {
    const { projectId } = yield* ProjectTransaction
    const [run] = yield* sql<{ upTo: bigint; lookedUntil: string }>`
      select feed.last_position as up_to, (run.started_at + interval '1 microsecond')::text as looked_until
      from kb.agent_runs run join kb.feeds feed on feed.project_id = run.project_id
      where run.id = ${runId} and run.project_id = ${projectId} and run.started_at is not null`
    return run ? yield* search.placeBefore(run.lookedUntil, { after: 0, upTo: Number(run.upTo) }) : 0
  })

  const expiryOf = ({ expiresAfterMs }: ReviewPolicy) =>
    sql`now() + ${expiresAfterMs ?? null}::float8 * interval '1 millisecond'`

  /** The agent's current review policy. */
  const policyOf = Effect.fnUntraced(function* (agentId: AgentId) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<{ policy: ReviewPolicy | null }>`
      select review_policy as policy from kb.agents where id = ${agentId} and project_id = ${projectId}`
    return rows[0]?.policy ?? {}
  })

  /** Refuses a suggestion over the limit; a refinement adds none. The counter lock excludes concurrent additions. */
  const refuseTooMany = Effect.fnUntraced(function* (agentId: AgentId, policy: ReviewPolicy) {
    const max = policy.maxPending ?? reviewDefaults.maxPending
    const open = yield* sql`
      select 1 from kb.tasks where agent_id = ${agentId} and status = 'pending' and type = any(${SuggestionType.literals}::text[])
        and (expires_at is null or expires_at > now()) limit ${max}`
    if (open.length < max) return
    return yield* refused(
      "tooManySuggestions",
      `There are ${max} suggestions of this agent that nobody has decided, and no more may wait: people must decide first. Suggest nothing new now`
    )
  })

  /** Refuses a suggestion that a person rejected, while nothing that the agent relies on has changed since. */
  const refuseRejected = Effect.fnUntraced(function* (
    suggestion: Suggestion,
    digest: string,
    subject: string
  ) {
    const [rejected] = yield* sql<{ number: bigint; resolvedBy: string; reason: string | null }>`
      select number, resolved_by, resolution_note as reason from kb.tasks
      where agent_id = ${suggestion.agentId} and subject = ${subject} and digest = ${digest} and status = 'rejected'
        and base_version is not distinct from ${baseOf(suggestion)}::int
        and evidence @> ${JSON.stringify(suggestion.evidence)}::text::jsonb
      order by id desc limit 1`
    if (!rejected) return
    const { number, reason, resolvedBy } = rejected
    return yield* refused(
      "rejectedBefore",
      `${resolvedBy} has rejected exactly this (task ${number}), ${reason === null ? "without a reason" : `with the reason ${JSON.stringify(reason)}`}, and nothing that you go by has changed since: do not suggest it again`
    )
  })

  /** Locks and returns the agent's undecided suggestions on the subject, oldest first; the counter lock excludes new ones. */
  const openLike = Effect.fnUntraced(function* ({ agentId, change }: Suggestion, subject: string) {
    const { projectId } = yield* ProjectTransaction
    const patched = patchedBy(change)
    return yield* sql<OpenRow>`
      select id, number, payload, base_version, untrusted from kb.tasks
      where project_id = ${projectId} and agent_id = ${agentId} and subject = ${subject} and status = 'pending'
        and (expires_at is null or expires_at > now()) and ${patched ? sql`jsonb_exists_any(payload #> '{suggestedChanges,data}', ${patched}::text[])` : sql`true`}
      order by id for update`
  })

  /** Returns an open suggestion with its target as the agent saw it and as it is now. */
  const saidOf = Effect.fnUntraced(function* (
    { baseVersion, payload: { suggestedChanges: change } }: OpenRow,
    { relationship, target }: Suggestion
  ) {
    const now = target ?? relationship
    const said = (before: Properties | undefined): Said => ({
      change,
      before: before ?? {},
      now: now?.properties ?? {}
    })
    if (baseVersion === null || baseVersion === now?.version) return said(now?.properties)
    if (target) return said((yield* objects.version(target.id, baseVersion))?.properties)
    if (relationship) return said((yield* relationships.atVersion(relationship.id, baseVersion))?.properties)
    return said(undefined)
  })

  const open = Effect.fnUntraced(function* (
    suggestion: Suggestion,
    seenUpTo: number,
    policy: ReviewPolicy,
    digest: string,
    subject: string
  ) {
    const { projectId } = yield* ProjectTransaction
    const { change, target } = suggestion
    const id = (yield* ids.next) as TaskId
    const number = yield* nextNumber
    yield* sql`
      insert into kb.tasks (id, project_id, number, type, title, description, payload, digest, agent_id, agent_version, run_id, tool_call_id,
        target_id, base_version, seen_position, evidence, untrusted, root_event_id, depth, subject, about, assignee, expires_at)
      values (${id}, ${projectId}, ${number}, ${taskTypeOf[change.type]}, ${titleOf(change, target)}, ${suggestion.reasoning},
        ${JSON.stringify(payloadOf(suggestion))}::text::jsonb, ${digest}, ${suggestion.agentId}, ${suggestion.agentVersion}, ${suggestion.runId},
        ${suggestion.toolCallId}, ${target?.id ?? null}, ${baseOf(suggestion)}, ${seenUpTo}, ${JSON.stringify(suggestion.evidence)}::text::jsonb,
        ${JSON.stringify(suggestion.untrusted)}::text::jsonb, ${suggestion.rootEventId}, ${suggestion.depth}, ${subject}, ${aboutOf(suggestion)}::uuid[],
        ${policy.assignee ?? null}, ${expiryOf(policy)})`
    return { id, number, isRefined: false }
  })

  /** Refines an open suggestion and stores its earlier content as a revision. */
  const reword = Effect.fnUntraced(function* (
    id: TaskId,
    suggestion: Suggestion,
    seenUpTo: number,
    policy: ReviewPolicy
  ) {
    const { change, target } = suggestion
    yield* sql`
      insert into kb.task_revisions (project_id, task_id, revision, payload, digest, run_id, tool_call_id, agent_version, base_version, evidence, created_at)
      select project_id, id, revision, payload, digest, run_id, tool_call_id, agent_version, base_version, evidence, coalesce(refined_at, created_at)
      from kb.tasks where id = ${id}`
    yield* sql`
      update kb.tasks set title = ${titleOf(change, target)}, description = ${suggestion.reasoning},
        payload = ${JSON.stringify(payloadOf(suggestion))}::text::jsonb, digest = ${yield* digestOf(digestText(change))},
        agent_version = ${suggestion.agentVersion}, run_id = ${suggestion.runId}, tool_call_id = ${suggestion.toolCallId},
        base_version = ${baseOf(suggestion)}, seen_position = ${seenUpTo}, evidence = ${JSON.stringify(suggestion.evidence)}::text::jsonb,
        untrusted = ${JSON.stringify(suggestion.untrusted)}::text::jsonb,
        root_event_id = ${suggestion.rootEventId}, depth = ${suggestion.depth}, about = ${aboutOf(suggestion)}::uuid[],
        expires_at = ${expiryOf(policy)}, revision = revision + 1, refined_at = clock_timestamp()
      where id = ${id} and status = 'pending'`
  })

  const suggest = Effect.fn("Tasks.suggest")(function* (suggestion: Suggestion) {
    const digest = yield* digestOf(digestText(suggestion.change))
    const subject = subjectOf(
      suggestion.change,
      yield* digestOf(creationText(suggestion.change, suggestion.wokenBy))
    )
    // Read before the counter is locked.
    const seenUpTo = yield* seenPosition(suggestion.runId)
    yield* holdNumbers
    yield* refuseRejected(suggestion, digest, subject)
    const policy = yield* policyOf(suggestion.agentId)
    const waiting = yield* openLike(suggestion, subject)
    const [first, ...taken] = waiting
    if (!first) {
      yield* refuseTooMany(suggestion.agentId, policy)
      return yield* open(suggestion, seenUpTo, policy, digest, subject)
    }
    const older = yield* Effect.forEach(waiting, (row) => saidOf(row, suggestion))
    // A refinement keeps the taint of the earlier runs.
    const untrusted = distinctTaints([...waiting.flatMap((row) => row.untrusted), ...suggestion.untrusted])
    const lastRead = suggestion.lastRead ?? keptBase(waiting, older, suggestion.change)
    const change = refine(older, suggestion.change)
    yield* reword(first.id, { ...suggestion, untrusted, lastRead, change }, seenUpTo, policy)
    if (taken.length > 0)
      yield* sql`
        update kb.tasks set status = 'expired', resolved_at = now(), resolution_note = ${`The agent suggests this in task ${first.number} now`}
        where id = any(${taken.map(({ id }) => id)}::uuid[]) and status = 'pending'`
    return { id: first.id, number: Number(first.number), isRefined: true }
  }, orDie)

  return { suggest }
})

interface OpenRow {
  readonly id: TaskId
  readonly number: bigint
  readonly payload: SuggestionPayload
  readonly baseVersion: number | null
  readonly untrusted: ReadonlyArray<Taint>
}

const payloadOf = ({ agentId, change, confidence, reasoning, runId }: Suggestion): SuggestionPayload => ({
  agentId,
  agentRunId: runId,
  ...(confidence === null ? {} : { confidence }),
  ...(reasoning === null ? {} : { reasoning }),
  suggestedChanges: change
})

/** The version of the target that the agent saw; the current one when it has read none. */
const baseOf = ({ lastRead, relationship, target }: Suggestion): number | null =>
  lastRead ?? (target ?? relationship)?.version ?? null

/** The base that a run without a read keeps: it knows no more than the earlier content. */
const keptBase = (
  waiting: ReadonlyArray<OpenRow>,
  older: ReadonlyArray<Said>,
  newer: Change
): number | null => {
  const bases = waiting.flatMap(({ baseVersion }) => baseVersion ?? [])
  return bases.length > 0 && meetsMove(older, newer) ? Math.min(...bases) : null
}

/** The objects that a suggestion concerns. */
const aboutOf = ({ change, relationship, wokenBy }: Suggestion): ReadonlyArray<string> => [
  ...new Set([...touchedBy(change, relationship), ...wokenBy])
]

const titleOf = (change: Change, target: GraphObject | null): string => {
  const name = target ? `${target.type} ${target.key ?? target.id}` : ""
  switch (change.type) {
    case "create":
      return `Create ${change.objectType}${change.key === null ? "" : ` ${change.key}`}`
    case "update":
      return `Update ${name}: ${Object.keys(change.data).join(", ")}`
    case "delete":
      return `Delete ${name}`
    case "createRelationship":
      return `Relate by ${change.relationship.type}`
    case "updateRelationship":
      return `Update a relationship: ${Object.keys(change.data).join(", ")}`
    case "deleteRelationship":
      return `Delete a relationship`
  }
}
