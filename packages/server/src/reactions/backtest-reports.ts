/**
 * Reports the results of a backtest, event by event and in total.
 *
 * Nothing is stored: the results are computed from the suggestions that its runs would have made and those of the original runs for the
 * same events. They are therefore current while the backtest runs and after later decisions.
 */
import type { BacktestReport, BacktestResult, Rate } from "@tropism/domain/backtest"
import { meet, comparedProperties, type Earlier, type Met } from "@tropism/domain/backtest-agreement"
import { microsPerDollar } from "@tropism/domain/chain"
import type { Change } from "@tropism/domain/change"
import type { BacktestId, RunId, TaskId } from "@tropism/domain/ids"
import type { Properties } from "@tropism/domain/json"
import { isResumable, type RunStatus, type PauseReason } from "@tropism/domain/run"
import type { TaskStatus } from "@tropism/domain/task"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { objectNamed } from "../graph/objects.ts"

export class BacktestReading extends Context.Service<
  BacktestReading,
  {
    /** Returns the events after a number, with the original suggestions and the new ones. */
    readonly page: (
      id: BacktestId,
      after: number,
      limit: number
    ) => Effect.Effect<ReadonlyArray<BacktestResult>, never, ProjectTransaction>
    /** Returns the results of the backtest so far. */
    readonly report: (id: BacktestId) => Effect.Effect<BacktestReport, never, ProjectTransaction>
  }
>()("@tropism/server/dispatch/BacktestReading") {
  static readonly layer = Layer.effect(
    BacktestReading,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const eventsAfter = (id: BacktestId, after: number, limit: number) =>
        sql<EventRow>`
          select chosen.number, chosen.handled_by, chosen.run_id, run.status as run_status, run.pause_reason, run.error_message,
            ${objectNamed(sql, sql`event.project_id`, sql`event.entity_id`)} as subject,
            jsonb_build_object('id', event.id, 'type', event.type, 'entityType', event.entity_type, 'objectId', event.entity_id,
              'objectType', event.object_type, 'version', event.version, 'createdAt', event.created_at) as event
          from kb.backtest_events chosen join kb.graph_events event on event.id = chosen.event_id
          left join kb.agent_runs run on run.id = chosen.run_id
          where chosen.backtest_id = ${id} and chosen.number > ${after} order by chosen.number limit ${limit}`

      /** The type that a change affects when it names an object or a relationship by id. */
      const typeOf = sql`coalesce(
        task.payload #>> '{suggestedChanges,objectType}', task.payload #>> '{suggestedChanges,relationship,type}',
        (select object.type from kb.graph_objects object where object.id = (task.payload #>> '{suggestedChanges,objectId}')::uuid),
        (select one.type from kb.graph_relationships one where one.id = (task.payload #>> '{suggestedChanges,relationshipId}')::uuid), '')`

      /** The state that an approval left, or the one before it. */
      const stateAt = (back: number) => sql`coalesce(
        (select properties from kb.graph_object_versions where object_id = (task.outcome ->> 'entityId')::uuid
          and version = (task.outcome ->> 'version')::int - ${back}::int),
        (select properties from kb.graph_relationship_versions where relationship_id = (task.outcome ->> 'entityId')::uuid
          and version = (task.outcome ->> 'version')::int - ${back}::int))`

      /** Selects the suggestions of these runs, with the events that each run handled. */
      const suggestionsOf = (runs: ReadonlyArray<RunId>) =>
        sql<SuggestionRow>`
          select task.id as task_id, task.number::int, task.status, task.run_id, task.payload -> 'suggestedChanges' as change, ${typeOf} as object_type,
            run.trigger -> 'events' as events, ${stateAt(1)} as before, ${stateAt(0)} as after,
            task.outcome ->> 'change' as outcome
          from kb.tasks task join kb.agent_runs run on run.id = task.run_id
          where task.run_id = any(${runs}::uuid[]) and task.payload ? 'suggestedChanges' order by task.id`

      const wouldBeOf = (id: BacktestId, runs: ReadonlyArray<RunId>) =>
        sql<WouldBeSuggestion & { readonly runId: RunId }>`
          select run_id, change, confidence, reasoning from kb.backtest_suggestions
          where backtest_id = ${id} and run_id = any(${runs}::uuid[]) order by tool_call_id`

      const outcomesAfter = Effect.fnUntraced(function* (id: BacktestId, after: number, limit: number) {
        const rows = yield* eventsAfter(id, after, limit)
        const handlers = [...new Set(rows.flatMap(({ handledBy }) => handledBy))]
        const suggestions = handlers.length === 0 ? [] : yield* suggestionsOf(handlers)
        const made = Map.groupBy(
          yield* wouldBeOf(
            id,
            rows.flatMap(({ runId }) => runId ?? [])
          ),
          ({ runId }) => runId
        )
        const earlier = Map.groupBy(suggestions, eventOf)
        return rows.map((row): EventOutcome => {
          const now = (row.runId && made.get(row.runId)) ?? []
          return {
            row,
            isOver: isOver(row),
            ...meet((earlier.get(row.event.id) ?? []).map(toEarlier), now)
          }
        })
      })

      const page = Effect.fn("BacktestReading.page")(function* (
        id: BacktestId,
        after: number,
        limit: number
      ) {
        return (yield* outcomesAfter(id, after, limit)).map(toResult)
      }, orDie)

      const refusals = (id: BacktestId) =>
        sql<{ reason: string; count: number }>`
          select coalesce(call.result ->> 'reason', 'unknown') as reason, count(*)::int as count
          from kb.agent_runs run join kb.tool_calls call on call.run_id = run.id
          where run.backtest_id = ${id} and call.status = 'refused' group by 1 order by 2 desc, 1`

      const used = Effect.fnUntraced(function* (id: BacktestId) {
        const { projectId } = yield* ProjectTransaction
        return yield* Effect.flatMap(
          sql<{ inputTokens: number; outputTokens: number; costMicros: number }>`
            select coalesce(sum(input_tokens), 0)::float8 as input_tokens, coalesce(sum(output_tokens), 0)::float8 as output_tokens,
              coalesce(sum(cost_micros), 0)::float8 as cost_micros
            from kb.budgets where project_id = ${projectId} and scope = 'backtest' and scope_id = ${id}`,
          onlyRow
        )
      })

      const report = Effect.fn("BacktestReading.report")(function* (id: BacktestId) {
        const outcomes = yield* outcomesAfter(id, 0, everyEvent)
        const { costMicros, ...usage } = yield* used(id)
        return {
          ...reportOf(outcomes),
          refusals: (yield* refusals(id)).map(({ count, reason }) => ({ reason, count })),
          usage,
          costUsd: costMicros / microsPerDollar
        }
      }, orDie)

      return BacktestReading.of({ page, report })
    })
  )
}

/** More than a backtest may have. */
const everyEvent = 1_000_000

interface SuggestionRow {
  readonly taskId: TaskId
  readonly number: number
  readonly status: TaskStatus
  readonly change: Change
  readonly objectType: string
  readonly events: ReadonlyArray<{ readonly id: string; readonly objectId: string }>
  readonly before: Properties | null
  readonly after: Properties | null
  readonly outcome: string | null
}

/** Picks among the events of a run the one of the object to change, otherwise the newest. */
const eventOf = ({ change, events }: SuggestionRow): string | undefined => {
  const target = "objectId" in change ? change.objectId : undefined
  return (events.findLast(({ objectId }) => objectId === target) ?? events.at(-1))?.id
}

const toEarlier = ({
  after,
  before,
  change,
  number,
  objectType,
  outcome,
  status,
  taskId
}: SuggestionRow): EarlierSuggestion => ({
  taskId,
  number,
  status,
  change,
  objectType,
  applied:
    after === null || outcome === "unchanged"
      ? null
      : { before: outcome === "created" ? {} : (before ?? {}), after }
})

/** Whether a run has ended for good; a paused backtest run is never resumed. */
const isOver = ({ pauseReason, runStatus }: EventRow): boolean =>
  runStatus === "paused"
    ? pauseReason !== null && isResumable(pauseReason)
    : runStatus !== null && !working.has(runStatus)

const working: ReadonlySet<RunStatus> = new Set(["queued", "running"])

const toResult = ({ fresh, isOver, met, row }: EventOutcome): BacktestResult => ({
  number: row.number,
  event: { ...row.event, createdAt: new Date(row.event.createdAt).toISOString() },
  subject: row.subject,
  runId: row.runId,
  runStatus: row.runStatus,
  errorMessage: row.errorMessage,
  earlier: met.map(({ agrees, earlier, isEdited, likeness }) => ({
    taskId: earlier.taskId,
    number: earlier.number,
    status: earlier.status,
    change: earlier.change,
    isEdited,
    now: isOver ? likeness : null,
    agrees: isOver ? (agrees ?? null) : null
  })),
  now: [
    ...met.flatMap(({ now }) => (now ? [{ ...shown(now), isNew: false }] : [])),
    ...fresh.map((now) => ({ ...shown(now), isNew: true }))
  ]
})

const shown = ({ change, confidence, reasoning }: WouldBeSuggestion) => ({ change, confidence, reasoning })

// Computes the figures of a backtest from the original and the new suggestions.
//
// Pure. Only events whose run has ended count; a run that failed or was stopped does not show what it would not suggest and is excluded
// from the agreement.

/** A suggestion of the original run. */
interface EarlierSuggestion extends Earlier {
  readonly taskId: TaskId
  readonly number: number
  /** The type of the object or relationship to change. */
  readonly objectType: string
}

/** What a run would suggest now. */
interface WouldBeSuggestion {
  readonly change: Change
  readonly confidence: number | null
  readonly reasoning: string | null
}

/** One event with the original and the new suggestions. */
interface EventOutcome {
  readonly row: EventRow
  readonly isOver: boolean
  readonly met: ReadonlyArray<Met<EarlierSuggestion, WouldBeSuggestion>>
  readonly fresh: ReadonlyArray<WouldBeSuggestion>
}

/** An event of a backtest, with its run. */
interface EventRow extends Pick<
  BacktestResult,
  "number" | "subject" | "runId" | "runStatus" | "errorMessage"
> {
  readonly event: Omit<BacktestResult["event"], "createdAt"> & { readonly createdAt: string }
  readonly handledBy: ReadonlyArray<RunId>
  readonly pauseReason: PauseReason | null
}

type Figures = Omit<BacktestReport, "refusals" | "usage" | "costUsd">

const reportOf = (outcomes: ReadonlyArray<EventOutcome>): Figures => {
  const answered = outcomes.filter(({ row }) => row.runStatus === "completed")
  const met = answered.flatMap((each) => each.met)
  const decided = met.filter(({ agrees }) => agrees !== undefined)
  const edited = decided.filter(({ isEdited }) => isEdited)
  const countEdited = (...likenesses: ReadonlyArray<string>) =>
    edited.filter(({ likeness }) => likenesses.includes(likeness)).length
  const ended = (status: string) =>
    outcomes.filter(({ isOver, row }) => isOver && row.runStatus === status).length
  return {
    agreement: rateOf(decided),
    byOperation: [...Map.groupBy(decided, ({ earlier }) => `${earlier.objectType} ${earlier.change.type}`)]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .flatMap(([, alike]) => {
        const [first] = alike
        return first
          ? [{ objectType: first.earlier.objectType, operation: first.earlier.change.type, ...rateOf(alike) }]
          : []
      }),
    edited: {
      asEdited: countEdited("edited"),
      asSuggested: countEdited("same"),
      neither: countEdited("different", "none")
    },
    properties: propertiesOf(decided),
    newSuggestions: answered.reduce((sum, { fresh }) => sum + fresh.length, 0),
    undecided: met.length - decided.length,
    runs: {
      completed: ended("completed"),
      failed: ended("failed"),
      cancelled: ended("cancelled"),
      paused: ended("paused")
    }
  }
}

type Decided = EventOutcome["met"]

const rateOf = (decided: Decided): Rate => {
  const agreed = decided.filter(({ agrees }) => agrees === true).length
  return { agreed, judged: decided.length, rate: partOf(agreed, decided.length) }
}

const partOf = (count: number, of: number): number | null => (of === 0 ? null : count / of)

const propertiesOf = (decided: Decided): BacktestReport["properties"] => {
  const accepted = decided.filter(({ earlier }) => earlier.status === "completed").map(comparedProperties)
  const sum = (of: "same" | "suggested" | "accepted") => accepted.reduce((total, each) => total + each[of], 0)
  const [same, suggested, wanted] = [sum("same"), sum("suggested"), sum("accepted")]
  return {
    same,
    suggested,
    accepted: wanted,
    precision: partOf(same, suggested),
    recall: partOf(same, wanted)
  }
}
