/**
 * A backtest: a version of an agent, run over events that happened, with nobody touched by it.
 *
 * Each event has a run that sees the graph as it was then and may only suggest.
 * What it would have suggested is kept beside what was really suggested and
 * decided, and the report says how far the two agree.
 */
import { Schema } from "effect"
import { ChangeKind } from "./capability.ts"
import { Change } from "./change.ts"
import { ChangeType, EntityType } from "./graph.ts"
import { AgentId, BacktestId, GraphEventId, ObjectId, RunId, TaskId, Timestamp, UserId } from "./ids.ts"
import { NamedObject } from "./named-object.ts"
import { RunStatus, Usage } from "./run.ts"
import { TaskStatus } from "./task.ts"

export const backtestBounds = {
  maxDays: 90,
  defaultEvents: 100,
  maxEvents: 1_000,
  maxObjects: 100,
  maxCostUsd: 1_000_000
} as const

export const BacktestStatus = Schema.Literals(["queued", "running", "completed", "cancelled", "failed"])
export type BacktestStatus = typeof BacktestStatus.Type

/** Every legal step, by the state that it leaves. */
export const backtestTransitions: Readonly<Record<BacktestStatus, ReadonlyArray<BacktestStatus>>> = {
  queued: ["running", "cancelled", "failed"],
  running: ["completed", "cancelled", "failed"],
  completed: [],
  cancelled: [],
  failed: []
}

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

export const BacktestInput = Schema.Struct({
  /** The newest where absent. */
  version: opt(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))),
  /** How far back the events lie; absent where objects are chosen. */
  days: opt(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: backtestBounds.maxDays }))),
  /** Instead of days: the newest event of each of these objects, whether or not it would have woken the agent. */
  objectIds: opt(
    Schema.Array(ObjectId).check(Schema.isBetweenLength(1, backtestBounds.maxObjects), Schema.isUnique())
  ),
  /** The newest so many of the events that would have woken the agent. */
  maxEvents: opt(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: backtestBounds.maxEvents }))),
  /** When so much is spent, no further event is run. */
  maxCostUsd: opt(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: backtestBounds.maxCostUsd })))
}).annotate({ identifier: "BacktestInput" })
export type BacktestInput = typeof BacktestInput.Type

export const Backtest = Schema.Struct({
  id: BacktestId,
  agentId: AgentId,
  agentName: Schema.String,
  agentVersion: Schema.Int,
  status: BacktestStatus,
  /** How far back its events lie; null where objects were chosen. */
  days: Schema.NullOr(Schema.Int),
  /** The objects whose newest events it runs over; null where it looks at days. */
  objectIds: Schema.NullOr(Schema.Array(ObjectId)),
  maxEvents: Schema.Int,
  maxCostUsd: Schema.NullOr(Schema.Finite),
  from: Timestamp,
  to: Timestamp,
  events: Schema.Struct({
    /** Of the window that were looked at: all, or the newest where there are very many. */
    looked: Schema.Int,
    /** Of those, how many would have woken the agent. */
    matched: Schema.Int,
    /** Those which are run: the newest of them, or all that were chosen by their objects. */
    chosen: Schema.Int,
    /** Those whose run is over. */
    done: Schema.Int
  }),
  /** Why it ended before every event was run, or could not go on. */
  detail: Schema.NullOr(Schema.String),
  createdBy: UserId,
  createdAt: Timestamp,
  startedAt: Schema.NullOr(Timestamp),
  completedAt: Schema.NullOr(Timestamp)
}).annotate({ identifier: "Backtest" })
export type Backtest = typeof Backtest.Type

/** How many of the judged agree; null where none was judged. */
export const Rate = Schema.Struct({
  agreed: Schema.Int,
  judged: Schema.Int,
  rate: Schema.NullOr(Schema.Finite)
})
export type Rate = typeof Rate.Type

/** What a backtest has come to so far: events whose run is over, and suggestions that a person has decided by now. */
export const BacktestReport = Schema.Struct({
  agreement: Rate,
  /** The same by what would be changed, and how. */
  byOperation: Schema.Array(
    Schema.Struct({ objectType: Schema.String, operation: ChangeKind, ...Rate.fields })
  ),
  /** Of suggestions that a person edited: how many are suggested now as edited, as they were, or neither. */
  edited: Schema.Struct({ asEdited: Schema.Int, asSuggested: Schema.Int, neither: Schema.Int }),
  /** Properties of accepted suggestions, and of what is suggested now in their place. */
  properties: Schema.Struct({
    same: Schema.Int,
    suggested: Schema.Int,
    accepted: Schema.Int,
    precision: Schema.NullOr(Schema.Finite),
    recall: Schema.NullOr(Schema.Finite)
  }),
  /** Suggested now, and nothing like it then. */
  newSuggestions: Schema.Int,
  /** Suggested then, and decided by nobody. */
  undecided: Schema.Int,
  runs: Schema.Struct({
    completed: Schema.Int,
    failed: Schema.Int,
    cancelled: Schema.Int,
    /** Stopped by a limit. */
    paused: Schema.Int
  }),
  /** Calls that were refused, by their reason, the most frequent first. */
  refusals: Schema.Array(Schema.Struct({ reason: Schema.String, count: Schema.Int })),
  usage: Usage,
  costUsd: Schema.Finite
}).annotate({ identifier: "BacktestReport" })
export type BacktestReport = typeof BacktestReport.Type

export const ReportedBacktest = Schema.Struct({ ...Backtest.fields, report: BacktestReport }).annotate({
  identifier: "ReportedBacktest"
})
export type ReportedBacktest = typeof ReportedBacktest.Type

/**
 * How what is suggested now stands to what was suggested then.
 *
 * **Details** `same`: the same change. `edited`: the change that a person made of it. `different`: another change of the
 * same thing. `none`: nothing like it.
 */
export const Likeness = Schema.Literals(["same", "edited", "different", "none"])
export type Likeness = typeof Likeness.Type

/** One event of a backtest: what was suggested then and decided, and what is suggested now. */
export const BacktestResult = Schema.Struct({
  /** Its place in the order in which they are told, from 1 on. */
  number: Schema.Int,
  event: Schema.Struct({
    id: GraphEventId,
    type: ChangeType,
    entityType: EntityType,
    objectId: Schema.String,
    objectType: Schema.String,
    version: Schema.Int,
    createdAt: Timestamp
  }),
  /** The object of the event by its name; null of a relationship. */
  subject: Schema.NullOr(NamedObject),
  runId: Schema.NullOr(RunId),
  runStatus: Schema.NullOr(RunStatus),
  errorMessage: Schema.NullOr(Schema.String),
  earlier: Schema.Array(
    Schema.Struct({
      taskId: TaskId,
      number: Schema.Int,
      status: TaskStatus,
      change: Change,
      isEdited: Schema.Boolean,
      /** Null while the run is not over. */
      now: Schema.NullOr(Likeness),
      /** Null where nothing can be said: nobody decided, or the run is not over. */
      agrees: Schema.NullOr(Schema.Boolean)
    })
  ),
  now: Schema.Array(
    Schema.Struct({
      change: Change,
      confidence: Schema.NullOr(Schema.Finite),
      reasoning: Schema.NullOr(Schema.String),
      /** Nothing like it was suggested then. */
      isNew: Schema.Boolean
    })
  )
}).annotate({ identifier: "BacktestResult" })
export type BacktestResult = typeof BacktestResult.Type
