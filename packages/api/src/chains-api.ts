/**
 * Chains: everything that descends from one root event, and what it has used.
 */
import { ChainLimits } from "@tropism/domain/chain"
import { GraphEvent, NotedRefusal } from "@tropism/domain/graph"
import { GraphEventId, ProjectId, RunId, TaskId, Timestamp } from "@tropism/domain/ids"
import { Run } from "@tropism/domain/run"
import { TaskStatus, TaskType } from "@tropism/domain/task"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Page, PageQuery } from "./page.ts"
import { InvalidInput, NotFound } from "./problems.ts"

/** What a chain has used of what its project allows. */
export const ChainUse = Schema.Struct({
  /** Agents between the root event and the deepest event. */
  depth: Schema.Int,
  /** Runs that the chain's events led to; the run with which a schedule or a person began it is not one of them. */
  runs: Schema.Int,
  inputTokens: Schema.Int,
  outputTokens: Schema.Int,
  /** Of the requests whose price the agent's model says. */
  costUsd: Schema.Finite
}).annotate({ identifier: "ChainUse" })

/** A task of a chain, without what it carries. */
export const ChainTask = Schema.Struct({
  id: TaskId,
  number: Schema.Int,
  type: TaskType,
  status: TaskStatus,
  title: Schema.String,
  /** The run that made it; null of an undo. */
  runId: Schema.NullOr(RunId),
  depth: Schema.Int,
  createdAt: Timestamp,
  resolvedAt: Schema.NullOr(Timestamp)
}).annotate({ identifier: "ChainTask" })
export type ChainTask = typeof ChainTask.Type

/** A link of a chain; an event's refusals say whom it did not wake, and why. */
export const ChainLink = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("event"),
    id: Schema.String,
    event: GraphEvent,
    /** The undo that has taken it back; null while it stands. */
    undoneBy: Schema.NullOr(Schema.Struct({ taskId: TaskId, number: Schema.Int }))
  }),
  Schema.Struct({ type: Schema.Literal("run"), id: Schema.String, run: Run }),
  Schema.Struct({ type: Schema.Literal("task"), id: Schema.String, task: ChainTask })
]).annotate({ identifier: "ChainLink" })
export type ChainLink = typeof ChainLink.Type

export const Chain = Schema.Struct({
  rootEventId: GraphEventId,
  /** The event with which the chain began; null when a schedule, a webhook or a person began it with a run. */
  rootEvent: Schema.NullOr(GraphEvent),
  use: ChainUse,
  limits: ChainLimits,
  counts: Schema.Struct({ events: Schema.Int, runs: Schema.Int, tasks: Schema.Int, refusals: Schema.Int }),
  /** Whom a cap or an oscillation kept from being woken, the latest first; empty while nothing stopped the chain. */
  stops: Schema.Array(Schema.Struct({ eventId: GraphEventId, ...NotedRefusal.fields })),
  /** Events, runs and tasks in the order in which they came to be. */
  items: Schema.Array(ChainLink),
  nextCursor: Schema.NullOr(Schema.String)
}).annotate({ identifier: "Chain" })
export type Chain = typeof Chain.Type

/** Of one chain so much is looked at for its line in the list; a longer one says at least so much. */
export const chainSummaryMaxEvents = 1_000

/** A chain in one line; `Chain` tells the whole of it. */
export const ChainSummary = Schema.Struct({
  /** The root event; the id of a run where a schedule, a webhook or a person began the chain with one. */
  id: GraphEventId,
  /** The event with which the chain began; null when a run did. */
  rootEvent: Schema.NullOr(GraphEvent),
  /** The names of the agents that worked in it, each once, in the order of the alphabet. */
  agents: Schema.Array(Schema.String),
  use: ChainUse,
  /** Of its first thousand events. */
  events: Schema.Int,
  /** All its runs, the one with which it began among them. */
  runs: Schema.Int,
  /** Runs that are queued, at work or paused. */
  openRuns: Schema.Int,
  /** When its root event was written, or the run with which it began was queued; null when neither is kept any more. */
  beganAt: Schema.NullOr(Timestamp),
  /** Whether a cap or an oscillation kept somebody from being woken. */
  isStopped: Schema.Boolean
}).annotate({ identifier: "ChainSummary" })
export type ChainSummary = typeof ChainSummary.Type

export class ChainsApi extends HttpApiGroup.make("chains")
  .add(
    /** Chains in which an agent ran, those of the newest roots first. */
    HttpApiEndpoint.get("list", "/chains", {
      params: { projectId: ProjectId },
      query: PageQuery,
      success: Page(ChainSummary),
      error: [NotFound, InvalidInput]
    }),
    /** The chain from its root on, oldest first; `rootEventId` stands on every event and run. */
    HttpApiEndpoint.get("get", "/chains/:rootEventId", {
      params: { projectId: ProjectId, rootEventId: GraphEventId },
      query: PageQuery,
      success: Chain,
      error: [NotFound, InvalidInput]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
