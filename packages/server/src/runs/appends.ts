/**
 * Writes the appends of runs to their logs in batches, together with their usage and their ends.
 *
 * The statement that writes a step also adds its tokens and cost to the budgets of the chain, the agent's day, the run and every run above
 * it, so usage is counted exactly once. The end of a run ends its processing entries in the same statement. Appends of concurrent runs
 * share one statement; each is fenced by its own attempt token and by the end of its log.
 *
 * **Invariant** A batch never waits for a row lock: an append whose run, log or agent another transaction holds is left out, and its run
 * writes it alone.
 */
import { fold, type ReducedContext } from "@tropism/domain/context"
import { eventNumber, type LoggedEvent, type NewEvent } from "@tropism/domain/context-event"
import type { ProjectId } from "@tropism/domain/ids"
import type { Usage } from "@tropism/domain/run"
import type { TaintSource } from "@tropism/domain/taint"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import {
  type AppendFields,
  type AppendItem,
  appendStatement,
  itemOf,
  type PlannedAppend,
  type Terms,
  endOf,
  planAppend
} from "../contexts/appending.ts"
import { Contexts } from "../contexts/contexts.ts"
import { Database, type ProjectTransaction } from "../database/database.ts"
import { makeGroupCommit } from "../database/group-commit.ts"
import { runLimits } from "../limits.ts"
import { Notifier } from "../outbox/notifier.ts"
import { reportingOutages, retryDuringOutages } from "../outbox/outages.ts"
import { countRun } from "../telemetry/metrics.ts"
import { makeAbortedCalls } from "../tools/tool-calls.ts"
import { type PrefetchedBudget, makeBudgetChecks, today, prefetchedBudgets } from "./budgets.ts"
import { makeEntryCompletion } from "./completion-and-retry.ts"
import { makeFencing, type RunNotInState } from "./fencing.ts"
import { isStopped } from "./kill-switches.ts"
import { Runs } from "./run-store.ts"
import type { ClaimedRun } from "./run-types.ts"

/** The usage of a model request. */
export interface StepUse {
  readonly usage: Usage
  readonly model: string
  readonly finishReason: string
  readonly costMicros: number
}

/** What is written together with an append of a run. */
export interface RunParts {
  /** The usage to count in the run and in every budget, of a step or of another request. */
  readonly use?: StepUse | Omit<StepUse, "model" | "finishReason">
  /** The records of model requests, and the tool lists they offered that may not be stored yet. */
  readonly requests?: ReadonlyArray<object>
  readonly lists?: ReadonlyArray<{ readonly digest: string; readonly tools: unknown }>
  readonly unmade?: ReadonlyArray<object> | undefined
  /**
   * `timedOut` asks the run to stop because its time is up: its deadline moves to now, but at most `lateStopMs` later than it was, and the
   * grace period starts there. `brokenOff` marks an append that holds the text of an incomplete answer.
   */
  readonly stop?: "timedOut" | "brokenOff"
  /** Completes the run with this summary. */
  readonly end?: { readonly summary: string }
}

/** The result of an append. */
export interface Appended {
  /** False when the log has grown, the attempt has lost the run, or another transaction holds a row that the append needs. */
  readonly isWritten: boolean
  readonly prefetchedBudget?: PrefetchedBudget
}

interface Item {
  readonly run: ClaimedRun
  readonly item: AppendItem
  readonly kinds: ReadonlySet<keyof RunParts>
  readonly foresees: boolean
}

/** The result row of one item in a batch. */
interface Row {
  readonly n: number
  readonly isWritten: boolean
  readonly ranMs: number | null
}

export class RunAppends extends Context.Service<
  RunAppends,
  {
    /** Writes an append with the next batch; `foresees` also returns the budget state that the run's next model request needs. */
    readonly submit: (
      run: ClaimedRun,
      append: PlannedAppend,
      parts: RunParts,
      foresees: boolean
    ) => Effect.Effect<Appended>
    /** Completes a run with an append of its own statement, which waits for locks; false when the log has grown or the attempt is lost. */
    readonly completeAlone: (
      run: ClaimedRun,
      append: PlannedAppend,
      parts: RunParts
    ) => Effect.Effect<boolean>
    /** Returns the same parts for an append of its own statement. */
    readonly terms: (run: ClaimedRun, parts: RunParts) => Pick<Terms, "fields" | "alongside">
  }
>()("@tropism/server/run/RunAppends") {
  static readonly layer = Layer.effect(
    RunAppends,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const notifier = yield* Notifier
      const { guardLast } = yield* makeFencing
      const { freeing } = yield* makeEntryCompletion
      const { foreseeAll } = yield* makeBudgetChecks

      const partsFor = yield* makeParts
      const isSwitchedOff = isStopped(sql)

      /** Selects and locks the items whose run, log and agent are free and unchanged. */
      const free = (projectId: ProjectId) => sql`
        select item.n from item
        cross join lateral (
          select run.id, run.agent_id, run.backtest_id from kb.agent_runs run
          where run.id = item.run and run.attempt_token = item.token and coalesce(run.status, '') = 'running' and not ${isSwitchedOff}
          for no key update of run skip locked
        ) held
        cross join lateral (
          select context.name from kb.contexts context
          where context.project_id = ${projectId} and context.name = item.name and context.last_event_number = item.last
          for no key update of context skip locked
        ) log
        where not (coalesce((item.use ->> 'ends')::boolean, false) and held.backtest_id is null
          and exists (select from kb.agents agent where agent.id = held.agent_id and agent.consecutive_failures > 0))`

      const answer = (ends: boolean) => sql`
        select item.n, appended.n is not null as is_written, ${sql.literal(ends ? "kept.ran_ms" : "null::float8 as ran_ms")}
        from item left join appended on appended.n = item.n
        ${sql.literal(ends ? "left join kept on kept.n = item.n and kept.ends" : "")} order by item.n`

      const write = Effect.fnUntraced(function* (projectId: ProjectId, items: ReadonlyArray<Item>) {
        // Every batch locks runs in the same order, so two batches cannot deadlock.
        const sorted = items.toSorted((one, other) => (one.run.id < other.run.id ? -1 : 1))
        const kinds = new Set(sorted.flatMap((each) => [...each.kinds]))
        const ended = sorted
          .filter(({ kinds, run }) => kinds.has("end") && isReaction(run))
          .map(({ run }) => run.id)
        const foreseeing = sorted.filter(({ foresees }) => foresees).map(({ run }) => run)
        const statements: ReadonlyArray<Statement.Statement<unknown>> = [
          appendStatement<Row>(
            sql,
            projectId,
            sorted.map(({ item }) => item),
            { guard: free(projectId), alongside: partsFor(kinds, false), answer: answer(kinds.has("end")) }
          ),
          ...(ended.length > 0 ? [freeing(projectId, ended)] : []),
          ...(foreseeing.length > 0 ? [foreseeAll(foreseeing)] : [])
        ]
        const answers = yield* database.askBatch(projectId, statements)
        const rows = answers[0] as ReadonlyArray<Row>
        const [freed] = (ended.length > 0 ? answers[1] : []) as ReadonlyArray<{
          readonly hasWaiting: boolean
        }>
        const outlooks = new Map(
          foreseeing.length === 0
            ? []
            : (answers.at(-1) as ReadonlyArray<NonNullable<PrefetchedBudget["outlook"]>>).map((outlook) => [
                outlook.runId,
                outlook
              ])
        )
        if (freed?.hasWaiting === true) yield* notifier.signal("releases")
        const outcomes = new Map<Item, Appended>()
        for (const { isWritten, n, ranMs } of rows) {
          const item = sorted[n] as Item
          outcomes.set(item, {
            isWritten,
            ...(item.foresees ? { prefetchedBudget: { outlook: outlooks.get(item.run.id) } } : {})
          })
          if (isWritten && item.kinds.has("end")) yield* over(item.run, ranMs)
        }
        return items.map((item) => outcomes.get(item) ?? { isWritten: false })
      })

      /** Counts a completed run in the metrics. */
      const over = ({ backtestId, id, trigger }: ClaimedRun, ranMs: number | null) =>
        countRun("completed", trigger.type, ranMs).pipe(
          Effect.andThen(notifier.signal(`run:${id}`)),
          Effect.andThen(backtestId === null ? Effect.void : notifier.signal("backtests"))
        )

      const { submit } = yield* makeGroupCommit<Item, Appended>({
        write,
        bytesOf: ({ item }) => item.json.length,
        limits: runLimits.appendBatches
      })

      const completeAlone = Effect.fnUntraced(function* (
        run: ClaimedRun,
        append: PlannedAppend,
        parts: RunParts
      ) {
        const statement = appendStatement<Row>(sql, run.projectId, [itemOf(append, fieldsOf(run, parts))], {
          guard: sql`select 0 as n from (${guardLast(run)}) held`,
          alongside: partsFor(kindsOf(parts), true),
          answer: answer(true)
        })
        const [[ended], [freed]] = yield* database.askBoth(
          run.projectId,
          statement,
          freeing(run.projectId, [run.id])
        )
        if (!ended?.isWritten) return false
        if (freed?.hasWaiting === true) yield* notifier.signal("releases")
        yield* over(run, ended.ranMs)
        return true
      })

      return RunAppends.of({
        submit: (run, append, parts, foresees) =>
          submit(run.projectId, {
            run,
            item: itemOf(append, fieldsOf(run, parts)),
            kinds: kindsOf(parts),
            foresees
          }),
        completeAlone,
        terms: (run, parts) => ({ fields: fieldsOf(run, parts), alongside: partsFor(kindsOf(parts), false) })
      })
    })
  )
}

/** Builds the common table expressions of an append statement. */
const makeParts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { recordingUnmade } = yield* makeAbortedCalls

  const used = sql`jsonb_to_record(appended.use) as used(counts boolean, step boolean, model text, finish text, input bigint, output bigint,
    cached bigint, written bigint, thought bigint, cost bigint, ends boolean, reacts boolean, summary text)`

  /** Updates each run once, with its usage, its end, or both. */
  const kept = sql`kept as (
    update kb.agent_runs run set
      step_count = run.step_count + used.step::int,
      attempts_before_step = case when used.step then run.attempt - 1 else run.attempts_before_step end,
      model = case when used.step then used.model else run.model end,
      finish_reason = case when used.step then used.finish else run.finish_reason end,
      partial_text = case when used.step then null else run.partial_text end,
      waits_since = case when used.step then null else run.waits_since end,
      wait_tries = case when used.step then 0 else run.wait_tries end,
      wait_message = case when used.step then null else run.wait_message end,
      cost_micros = run.cost_micros + used.cost,
      usage = case when used.counts then jsonb_strip_nulls(jsonb_build_object(
        'inputTokens', (run.usage ->> 'inputTokens')::bigint + used.input,
        'outputTokens', (run.usage ->> 'outputTokens')::bigint + used.output,
        'cachedInputTokens', nullif(coalesce((run.usage ->> 'cachedInputTokens')::bigint, 0) + used.cached, 0),
        'cacheWriteTokens', nullif(coalesce((run.usage ->> 'cacheWriteTokens')::bigint, 0) + used.written, 0),
        'reasoningTokens', nullif(coalesce((run.usage ->> 'reasoningTokens')::bigint, 0) + used.thought, 0))) else run.usage end,
      status = case when used.ends then 'completed' else run.status end,
      summary = case when used.ends then nullif(used.summary, '') else run.summary end,
      completed_at = case when used.ends then now() else run.completed_at end,
      attempt_token = case when used.ends then null else run.attempt_token end
    from appended cross join lateral ${used}
    where appended.use is not null and run.id = appended.run and run.attempt_token = appended.token
    returning appended.n, run.id, run.agent_id, run.backtest_id, used.ends, used.reacts,
      (extract(epoch from now() - run.started_at) * 1000)::float8 as ran_ms)`

  /** Resets the agent's failure streak when a run that is not a backtest's completes. */
  const forgiven = sql`forgiven as (
    update kb.agents agent set consecutive_failures = 0 from kept
    where kept.ends and kept.backtest_id is null and agent.id = kept.agent_id and agent.consecutive_failures > 0 returning agent.id)`

  /** Triggers and retries lock the agent's row before entries and budgets; the end of a run uses the same order to avoid a deadlock. */
  const afterAgent = sql`cross join (select count(*) from forgiven) after_agent`

  /**
   * Adds the usage to every budget that pays for it.
   *
   * **Details** Budget rows are locked in one order, so concurrent batches cannot deadlock. A run is counted with its first step, in its
   * agent's day and in every run above it; a chain counts its runs when they take their places.
   */
  const spending = (after: Statement.Fragment) => sql`spent as (
    insert into kb.budgets as budget (project_id, scope, scope_id, period, runs, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, reasoning_tokens, cost_micros)
    select appended.project_id, payer.scope, payer.id, period.name,
      sum(case when payer.scope <> 'chain' and asker.step_count = 0 and used.step then 1 else 0 end),
      sum(used.input), sum(used.output), sum(used.cached), sum(used.written), sum(used.thought), sum(used.cost)
    from appended
    cross join lateral ${used}
    cross join lateral (select step_count from kb.agent_runs where id = appended.run offset 0) asker
    cross join lateral jsonb_to_recordset(appended.payers) as payer(scope text, id uuid, day text)
    cross join lateral (select case when payer.day is null then '' else ${today(sql)} || payer.day end as name) period
    ${after}
    where appended.use is not null and used.counts
    group by appended.project_id, payer.scope, payer.id, period.name
    order by payer.scope, payer.id, period.name
    on conflict (project_id, scope, scope_id, period) do update set
      runs = budget.runs + excluded.runs,
      input_tokens = budget.input_tokens + excluded.input_tokens,
      output_tokens = budget.output_tokens + excluded.output_tokens,
      cached_input_tokens = budget.cached_input_tokens + excluded.cached_input_tokens,
      cache_write_tokens = budget.cache_write_tokens + excluded.cache_write_tokens,
      reasoning_tokens = budget.reasoning_tokens + excluded.reasoning_tokens,
      cost_micros = budget.cost_micros + excluded.cost_micros)`

  /** Ends the processing entries of the runs that end. */
  const settled = (after: Statement.Fragment) => sql`settled as (
    update kb.agent_processing_log set status = 'completed', completed_at = now(), error_message = null, dead_lettered_at = null
    where id = any(array(
      select entry.id from kept join kb.agent_processing_log entry on entry.run_id = kept.id ${after}
      where kept.ends and kept.reacts and entry.status in ('pending', 'processing') order by entry.id for no key update of entry)))`

  const listed = sql`listed as (
    insert into kb.tool_lists (project_id, digest, tools)
    select distinct on (list.digest) appended.project_id, list.digest, list.tools
    from appended cross join lateral jsonb_to_recordset(appended.lists) as list(digest text, tools jsonb)
    where appended.lists is not null order by list.digest on conflict do nothing)`

  const stopped = sql`stopped as (
    update kb.agent_runs run set partial_text = null,
      deadline_at = case when appended.stop = 'timedOut'
        then least(now(), run.deadline_at + make_interval(secs => ${runLimits.lateStopMs / 1_000}::float8)) else run.deadline_at end
    from appended where appended.stop is not null and run.id = appended.run and run.attempt_token = appended.token)`

  /** Returns the expressions for these kinds; only an append of its own statement may reset the agent's failure streak. */
  return (kinds: ReadonlySet<keyof RunParts>, isAlone: boolean): ReadonlyArray<Statement.Fragment> => {
    const after = isAlone && kinds.has("end") ? afterAgent : sql.literal("")
    return [
      ...(kinds.has("lists") ? [listed] : []),
      ...(kinds.has("use") || kinds.has("end") ? [kept] : []),
      ...(isAlone && kinds.has("end") ? [forgiven] : []),
      ...(kinds.has("requests") ? [recordingRequests(sql)] : []),
      ...(kinds.has("unmade") ? [recordingUnmade] : []),
      ...(kinds.has("stop") ? [stopped] : []),
      ...(kinds.has("end") ? [settled(after)] : []),
      ...(kinds.has("use") ? [spending(after)] : [])
    ]
  }
})

const isReaction = ({ trigger: { type } }: ClaimedRun): boolean => type === "reaction" || type === "mcpEvent"

const kindsOf = (parts: RunParts): ReadonlySet<keyof RunParts> =>
  new Set((Object.keys(parts) as Array<keyof RunParts>).filter((kind) => parts[kind] !== undefined))

/** Returns the budget row of the agent's day that a run adds to. A day has several rows to reduce lock contention between runs. */
const dayRowOf = ({ id }: ClaimedRun): string =>
  `/${Number.parseInt(id.slice(-2), 16) % runLimits.agentDayRows}`

/** Returns the budgets that pay for a run: its chain and its agent's day, or its backtest; and the run itself with the runs above it. */
const payersOf = (run: ClaimedRun) => [
  ...(run.backtestId === null
    ? [
        { scope: "chain", id: run.rootEventId },
        { scope: "agent", id: run.agentId, day: dayRowOf(run) }
      ]
    : [{ scope: "backtest", id: run.backtestId }]),
  ...[...run.ancestors, run.id].map((id) => ({ scope: "run", id }))
]

const fieldsOf = (run: ClaimedRun, { end, lists, requests, stop, unmade, use }: RunParts): AppendFields => ({
  run: run.id,
  token: run.attemptToken,
  agent: run.agentId,
  use:
    use || end
      ? {
          counts: use !== undefined,
          step: use !== undefined && "model" in use,
          ...(use && "model" in use ? { model: use.model, finish: use.finishReason } : {}),
          input: use?.usage.inputTokens ?? 0,
          output: use?.usage.outputTokens ?? 0,
          cached: use?.usage.cachedInputTokens ?? 0,
          written: use?.usage.cacheWriteTokens ?? 0,
          thought: use?.usage.reasoningTokens ?? 0,
          cost: use?.costMicros ?? 0,
          ends: end !== undefined,
          reacts: isReaction(run),
          summary: end?.summary ?? ""
        }
      : undefined,
  payers: use ? payersOf(run) : undefined,
  requests,
  lists,
  unmade,
  stop
})

/** Inserts records of model requests, from the columns `run`, `agent`, `name` and `requests` of `appended`. */
export const recordingRequests = (
  sql: SqlClient.SqlClient,
  onClash: Statement.Fragment = sql.literal("")
) => sql`asked as (
  insert into kb.model_calls (project_id, run_id, agent_id, context_name, number, purpose, step, try, provider, model, after_event, answer_event,
    tools_digest, parameters, finish_reason, error, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, reasoning_tokens, usage_estimated, cost_micros, cached_cost_micros, started_at, first_output_ms, duration_ms)
  select appended.project_id, appended.run, appended.agent, appended.name,
    coalesce((select max(number) from kb.model_calls where run_id = appended.run), 0) + row.ordinal, row.purpose, row.step, row.try,
    row.provider, row.model, row.after, appended.last_event_number - row.behind, row.digest, row.parameters, row.finish, row.error,
    row.input, row.output, row.cached, row.written, row.thought, row.estimated, row.cost, row.cached_cost, row.started, row.first, row.took
  from appended cross join lateral jsonb_to_recordset(appended.requests) as row(ordinal int, purpose text, step int, try int,
    provider text, model text, after int, digest text, parameters jsonb, behind int, finish text, error text, input int, output int, cached int, written int, thought int,
    estimated boolean, cost bigint, cached_cost bigint, started timestamptz, first int, took int)
  where appended.requests is not null
  ${onClash})`

// Writes an attempt's events to its log, fenced by the attempt token, and folds them.
//
// An append goes with the next batch. One that the batch leaves out is written alone under the log's lock, which fails when the attempt is
// lost. During a database outage an append is retried, because the answer in it is already paid for. An append that committed although the
// connection failed is recognized by its timestamp and not repeated.

type Taint = ReadonlyArray<TaintSource>

/** How a run completes. */
interface Completion {
  readonly summary: string
  readonly parts?: RunParts
}

/** What goes with a run's append that does not end the run. */
export interface Preparation {
  readonly parts?: RunParts
  /** Runs before the log is locked. */
  readonly first?: Effect.Effect<void, RunNotInState, ProjectTransaction>
}

export const makeRunLog = Effect.gen(function* () {
  const database = yield* Database
  const runs = yield* Runs
  const contexts = yield* Contexts
  const appends = yield* RunAppends
  const { unmade } = yield* makeAbortedCalls

  /** Runs an effect in a transaction that only the run's current attempt may commit. */
  const guarded = <A, E>(run: ClaimedRun, effect: Effect.Effect<A, E, ProjectTransaction>) =>
    database.inProject(run.projectId, Effect.andThen(runs.hold(run), effect))

  /** Folds what others appended; fails when the attempt is lost. */
  const catchUp = (run: ClaimedRun, context: ReducedContext) =>
    guarded(run, contexts.load(run.contextName, context))

  /** Folds the events just appended; reads the log when another writer appended in between. */
  const advance = (run: ClaimedRun, context: ReducedContext, appended: ReadonlyArray<LoggedEvent>) => {
    const [first] = appended
    return first && eventNumber(first.id) === context.nextEventNumber
      ? Effect.succeed(fold(appended, context))
      : database.inProject(run.projectId, contexts.load(run.contextName, context))
  }

  /** Whether the first of the events is in the log: its number and timestamp identify it. */
  const isKept = (run: ClaimedRun, [first]: ReadonlyArray<LoggedEvent>) =>
    first === undefined
      ? Effect.succeed(false)
      : Effect.map(
          guarded(run, contexts.read(run.contextName, eventNumber(first.id) - 1, 1)),
          ([found]) => found?.type === first.type && found.timestamp === first.timestamp
        )

  /** Appends events and returns the state after them; `taint` lists the untrusted sources among them. */
  const append = (
    run: ClaimedRun,
    context: ReducedContext,
    events: ReadonlyArray<NewEvent>,
    parts: RunParts = {},
    taint: Taint = []
  ) => appendKnowing(run, context, events, { parts, taint, foresees: false })

  /** Appends before a model request and prefetches the budget state that `mayAsk` would read. */
  const appendForeseeing = (
    run: ClaimedRun,
    context: ReducedContext,
    events: ReadonlyArray<NewEvent>,
    parts: RunParts = {},
    taint: Taint = []
  ) => appendKnowing(run, context, events, { parts, taint, foresees: true })

  const appendKnowing = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    events: ReadonlyArray<NewEvent>,
    {
      foresees,
      parts,
      taint
    }: { readonly parts: RunParts; readonly taint: Taint; readonly foresees: boolean }
  ) {
    const all: RunParts = { ...parts, unmade: yield* unmade(context.pendingCalls, events) }
    const planned = yield* planAppend(run.contextName, endOf(context), events, taint)
    const { value, wasAway } = yield* reportingOutages(appends.submit(run, planned, all, foresees))
    if (value.isWritten) {
      yield* contexts.grown(run.projectId, run.contextName)
      const after = fold(planned.events, context)
      if (value.prefetchedBudget !== undefined) prefetchedBudgets.set(after, value.prefetchedBudget)
      return after
    }
    // After an outage, the log may have grown by these same events.
    if (wasAway && (yield* isKept(run, planned.events))) return yield* catchUp(run, context)
    const appended = yield* guarded(
      run,
      contexts.append(run.contextName, events, { ...appends.terms(run, all), taint })
    )
    return yield* advance(run, context, appended)
  })

  /** Appends events if the log has not grown since it was folded; otherwise discards them and returns the log's current state. */
  const appendUnlessGrown = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    events: ReadonlyArray<NewEvent>
  ) {
    const planned = yield* contexts.plan(run.projectId, run.contextName, endOf(context), events, {
      guard: runs.guard(run)
    })
    const [written] = yield* database.ask(run.projectId, planned.statement)
    if (!written) return yield* catchUp(run, context)
    yield* contexts.grown(run.projectId, run.contextName)
    return fold(planned.events, context)
  })

  /** Appends the last events and ends the run; false, with nothing written, when the log has grown or the attempt is lost. */
  const appendAndEnd = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    events: ReadonlyArray<NewEvent>,
    end: Effect.Effect<void, RunNotInState, ProjectTransaction>,
    { first = Effect.void, parts = {} }: Preparation = {}
  ) {
    const planned = yield* contexts.plan(run.projectId, run.contextName, endOf(context), events, {
      guard: runs.guard(run),
      ...appends.terms(run, { ...parts, unmade: yield* unmade(context.pendingCalls, events) })
    })
    return yield* retryDuringOutages(
      database.inProject(
        run.projectId,
        Effect.gen(function* () {
          yield* runs.holdToEnd(run)
          yield* first
          if (!(yield* contexts.write(run.contextName, planned))) return false
          yield* end
          return true
        })
      )
    )
  })

  /** Appends the last events and completes the run; false under the same conditions. */
  const appendAndComplete = Effect.fnUntraced(function* (
    run: ClaimedRun,
    context: ReducedContext,
    events: ReadonlyArray<NewEvent>,
    { parts = {}, summary }: Completion
  ) {
    if (run.ancestors.length > 0)
      return yield* appendAndEnd(run, context, events, runs.complete(run, summary), {
        parts,
        first: runs.holdBlamed(run)
      })
    const all: RunParts = { ...parts, unmade: yield* unmade(context.pendingCalls, events), end: { summary } }
    const planned = yield* planAppend(run.contextName, endOf(context), events)
    // The worker may interrupt this fiber once the run has ended; the notifications must still be sent.
    const completed = Effect.uninterruptible(
      Effect.gen(function* () {
        const { isWritten } = yield* appends.submit(run, planned, all, false)
        if (!isWritten && !(yield* appends.completeAlone(run, planned, all))) return false
        yield* contexts.grown(run.projectId, run.contextName)
        return true
      })
    )
    return yield* retryDuringOutages(completed)
  })

  return {
    guarded,
    catchUp,
    advance,
    append,
    appendForeseeing,
    appendUnlessGrown,
    appendAndEnd,
    appendAndComplete
  }
})
