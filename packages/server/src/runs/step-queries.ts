/**
 * Reads a run step by step: the model requests, their cost, and the outcome of each tool call.
 *
 * Any page costs the same number of queries, independent of the number of steps. The calls come from the model's answers; their outcomes
 * come from the call records, made or refused.
 */
import { promptOf, type ReducedContext } from "@tropism/domain/context"
import type { ContextName } from "@tropism/domain/context-event"
import { decide } from "@tropism/domain/decide"
import { findUnjudged } from "@tropism/domain/guard"
import type { ProjectId, RunId, ObjectId, AgentId } from "@tropism/domain/ids"
import type {
  FlowStepAtWork,
  RunStep,
  StepCall,
  OpenRequest,
  ModelCall,
  ModelExchange
} from "@tropism/domain/model-call"
import { fitPrompt } from "@tropism/domain/prompt-fit"
import { addUsage, noUsage, type Usage, type Trigger, type RunStatus } from "@tropism/domain/run"
import { type RunObjects, runObjectBounds } from "@tropism/domain/run-objects"
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Agents } from "../agents/agents.ts"
import { Contexts } from "../contexts/contexts.ts"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { charsOf, tokensOf } from "../models/ai-sdk-model.ts"
import { Models } from "../models/models.ts"
import { toolTokens } from "../models/window.ts"
import { makeSuggestedTasks } from "../review/tasks.ts"
import { makeUndoCauses } from "../review/undo-plan.ts"
import { ToolCalls } from "../tools/tool-calls.ts"
import { guardMessages } from "./guard.ts"
import { notesRequest } from "./memory.ts"
import { stepsOf } from "./model-answer.ts"
import { type ModelCallRow, toDollars, toModelCall } from "./model-calls.ts"
import { findSummary } from "./summaries.ts"

interface AnswerRow {
  readonly number: number
  readonly text: string
  readonly calls: ReadonlyArray<{ readonly id: string; readonly name: string }>
}

interface OutcomeRow {
  readonly callId: string
  readonly status: StepCall["status"]
  readonly startedAt: Date
  readonly completedAt: Date | null
}

export class StepReading extends Context.Service<
  StepReading,
  {
    /** Returns the steps of a run after a number, in order. */
    readonly list: (
      runId: RunId,
      after: number,
      limit: number
    ) => Effect.Effect<ReadonlyArray<RunStep>, never, ProjectTransaction>
  }
>()("@tropism/server/run/StepReading") {
  static readonly layer = Layer.effect(
    StepReading,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const flowSteps = makeFlowSteps(sql)

      const answersOf = (projectId: ProjectId, context: ContextName, numbers: ReadonlyArray<number>) =>
        sql<AnswerRow>`
          select number, left(payload ->> 'content', ${runLimits.stepTextMaxChars}) as text,
            (select coalesce(jsonb_agg(jsonb_build_object('id', call -> 'id', 'name', call -> 'name')), '[]')
              from jsonb_array_elements(payload -> 'toolCalls') call) as calls
          from kb.context_events where project_id = ${projectId} and context_name = ${context} and number = any(${numbers}::int[])`

      const recordsOf = (projectId: ProjectId, runId: RunId, callIds: ReadonlyArray<string>) =>
        sql<OutcomeRow>`
          select call_id, status, created_at as started_at, completed_at from kb.tool_calls
          where project_id = ${projectId} and run_id = ${runId} and call_id = any(${callIds}::text[])`

      const list = Effect.fn("StepReading.list")(function* (runId: RunId, after: number, limit: number) {
        const { projectId } = yield* ProjectTransaction
        // Each step has at least one call, so no call of a later step has a smaller number than that step.
        const calls = yield* sql<ModelCallRow>`
          select * from kb.model_calls where project_id = ${projectId} and run_id = ${runId} and number > ${after}
            and step > ${after} and step <= ${after + limit} and purpose = 'step'
          order by number`
        const [first] = calls
        if (first === undefined) return []
        const answers = yield* answersOf(
          projectId,
          first.contextName,
          calls.flatMap(({ answerEvent }) => answerEvent ?? [])
        )
        const asked = answers.flatMap((answer) => answer.calls.map(({ id }) => id))
        const outcomes = asked.length === 0 ? [] : yield* recordsOf(projectId, runId, asked)
        const byCall = new Map(outcomes.map((row) => [row.callId, row]))
        const flowStep = yield* flowSteps(projectId, runId, calls)
        return groupTries(calls).map((tries) => toStep(tries, flowStep(tries[0].afterEvent), answers, byCall))
      }, orDie)

      return StepReading.of({ list })
    })
  )
}

type Tries = readonly [ModelCallRow, ...ReadonlyArray<ModelCallRow>]

const groupTries = (calls: ReadonlyArray<ModelCallRow>): ReadonlyArray<Tries> => {
  const steps = new Map<number, [ModelCallRow, ...Array<ModelCallRow>]>()
  for (const call of calls) {
    const tries = steps.get(call.step)
    if (tries) tries.push(call)
    else steps.set(call.step, [call])
  }
  return [...steps.values()]
}

const toStep = (
  tries: Tries,
  flowStep: FlowStepAtWork | null,
  answers: ReadonlyArray<AnswerRow>,
  outcomes: ReadonlyMap<string, OutcomeRow>
): RunStep => {
  const last = tries.at(-1) ?? tries[0]
  const answer = answers.find(({ number }) => number === last.answerEvent)
  return {
    number: last.step,
    model: `${last.provider}:${last.model}`,
    modelCalls: tries.map(({ number }) => number),
    flowStep,
    status: answer === undefined ? "failed" : "answered",
    error: last.error,
    text: answer?.text ?? "",
    usage: tries.reduce<Usage>((sum, each) => addUsage(sum, each), noUsage),
    costUsd: toDollars(last.costMicros),
    startedAt: tries[0].startedAt.toISOString(),
    modelMs: tries.reduce((sum, { durationMs }) => sum + durationMs, 0),
    toolCalls: (answer?.calls ?? []).map(({ id, name }) => toCall(id, name, outcomes.get(id)))
  }
}

const toCall = (callId: string, tool: string, outcome: OutcomeRow | undefined): StepCall => ({
  callId,
  tool,
  status: outcome?.status ?? "pending",
  startedAt: outcome?.startedAt.toISOString() ?? null,
  completedAt: outcome?.completedAt?.toISOString() ?? null,
  durationMs: outcome?.completedAt ? outcome.completedAt.getTime() - outcome.startedAt.getTime() : null
})

// Reads which objects a run read, wrote and made suggestions about.
//
// The data comes from its trigger, from its call records and from the events that name it; there is no second copy. Reads are queried in
// the same way as the evidence of suggestions, so the two agree.

export class RunObjectReading extends Context.Service<
  RunObjectReading,
  {
    /** Returns the newest of each kind first, up to a limit. */
    readonly of: (runId: RunId) => Effect.Effect<RunObjects, never, ProjectTransaction>
  }
>()("@tropism/server/run/RunObjectReading") {
  static readonly layer = Layer.effect(
    RunObjectReading,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const toolCalls = yield* ToolCalls
      const suggested = yield* makeSuggestedTasks
      const { hasChanged } = yield* makeUndoCauses

      /** Returns the objects whose events triggered a run, the newest last. */
      const wokenBy = Effect.fnUntraced(function* (runId: RunId) {
        const { projectId } = yield* ProjectTransaction
        const [run] = yield* sql<{ readonly trigger: Trigger }>`
          select trigger from kb.agent_runs where id = ${runId} and project_id = ${projectId}`
        return (run?.trigger.events ?? []).flatMap(({ entityType, objectId, objectType, version }) =>
          entityType === "relationship" ? [] : [{ objectId: objectId as ObjectId, type: objectType, version }]
        )
      })

      const read = Effect.fnUntraced(function* (runId: RunId) {
        const { projectId } = yield* ProjectTransaction
        const evidence = yield* toolCalls.evidence(runId, yield* wokenBy(runId))
        return yield* sql<Omit<RunObjects["read"][number], "isOwn">>`
          select read."objectId" as object_id, read.type, object.key, read.version
          from rows from (jsonb_to_recordset(${JSON.stringify(evidence)}::text::jsonb) as ("objectId" uuid, type text, version int))
            with ordinality as read("objectId", type, version, place)
          left join kb.graph_objects object on object.id = read."objectId" and object.project_id = ${projectId}
          order by read.place`
      })

      const wrote = Effect.fnUntraced(function* (runId: RunId) {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<RunObjects["wrote"][number]>`
          select id as event_id, entity_type, entity_id, object_type, snapshot ->> 'key' as key, version, type as change
          from kb.graph_events where project_id = ${projectId} and run_id = ${runId}
          order by seq desc limit ${runObjectBounds.maxRows}`
      })

      const of = Effect.fn("RunObjectReading.of")(function* (runId: RunId) {
        const written = yield* wrote(runId)
        const own = new Set(written.map(({ entityId, version }) => `${entityId} ${version}`))
        return {
          read: (yield* read(runId)).map((one) => ({
            ...one,
            isOwn: own.has(`${one.objectId} ${one.version}`)
          })),
          wrote: written,
          suggested: yield* suggested(runId),
          changedGraph: written.length > 0 || (yield* hasChanged({ type: "run", runId }))
        }
      }, orDie)
      return RunObjectReading.of({ of })
    })
  )
}

// Rebuilds the model request that is in progress, or was when its run was ended from outside.
//
// A request is not stored before it ends: the log up to the run's position folds to exactly its messages, and the decider tells whether a
// request is open. A cancellation or a server crash therefore loses nothing, and a step needs no extra write.

/** The fields of a run that locate its position in a log. */
interface Standing {
  readonly id: RunId
  readonly status: RunStatus
  readonly agentId: AgentId
  readonly agentVersion: number
  readonly contextName: ContextName
  readonly isConversation: boolean
  readonly partialText: string | null
  readonly createdAt: Date
  /** The last event that a recorded call of the run refers to; 0 without one. */
  readonly lastEvent: number
}

/** The state of a run at its position in the log, and its text there. */
interface Standpoint {
  readonly context: ReducedContext
  readonly said: string
}

export class OpenRequestReading extends Context.Service<
  OpenRequestReading,
  {
    /** Returns a run's request that has no answer yet; undefined when there is none. */
    readonly of: (runId: RunId) => Effect.Effect<OpenRequest | undefined, never, ProjectTransaction>
  }
>()("@tropism/server/run/OpenRequestReading") {
  static readonly layer = Layer.effect(
    OpenRequestReading,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const contexts = yield* Contexts
      const agents = yield* Agents
      const models = yield* Models

      const standing = Effect.fnUntraced(function* (runId: RunId) {
        const { projectId } = yield* ProjectTransaction
        const [run] = yield* sql<Standing>`
          select id, status, agent_id, agent_version, context_name, trigger_type = ${conversation} as is_conversation, partial_text, created_at,
            coalesce((select max(coalesce(answer_event, after_event)) from kb.model_calls where run_id = run.id), 0) as last_event
          from kb.agent_runs run where id = ${runId} and project_id = ${projectId}`
        return run
      })

      /** Returns the state in which a run was ended from outside; undefined otherwise. */
      const brokenOff = Effect.fnUntraced(function* (run: Standing) {
        const { projectId } = yield* ProjectTransaction
        const [end] = yield* sql<{
          readonly number: number
          readonly said: string
          readonly endsCalls: boolean
        }>`
          select turn.number, coalesce(turn.payload ->> 'partialText', '') as said,
            coalesce(before.type = 'ToolCallFailedEvent' and before.created_at = turn.created_at, false) as ends_calls
          from kb.context_events turn
          left join kb.context_events before
            on before.project_id = turn.project_id and before.context_name = turn.context_name and before.number = turn.number - 1
          where turn.project_id = ${projectId} and turn.context_name = ${run.contextName} and turn.number > ${run.lastEvent}
            and turn.type = 'AgentTurnInterruptedEvent' and turn.payload ->> 'reason' in ('cancelled', 'crash')
            and (${!run.isConversation} or turn.created_at >= ${run.createdAt})
          order by case when ${run.isConversation} then turn.number else -turn.number end limit 1`
        // Pending tool calls got their outcome with the end, so no model request was open.
        if (end === undefined || end.endsCalls) return undefined
        const context = yield* contexts.loadUpTo(run.contextName, end.number - 1)
        return { context, said: end.said }
      })

      const standpoint = (
        run: Standing
      ): Effect.Effect<Standpoint | undefined, never, ProjectTransaction> => {
        if (run.status === "running")
          return Effect.map(contexts.load(run.contextName), (context) => ({
            context,
            said: run.partialText ?? ""
          }))
        return run.status === "cancelled" || run.status === "failed"
          ? orDie(brokenOff(run))
          : Effect.succeed(undefined)
      }

      /** Whether the next action is a model request whose tries are not recorded yet. */
      const isAsking = Effect.fnUntraced(function* (run: Standing, context: ReducedContext) {
        const { projectId } = yield* ProjectTransaction
        const next = decide({
          context,
          runId: run.id,
          ownTurnNumber: context.currentTurnNumber,
          maxSteps: null,
          mayRepeat: () => true
        })
        if (next.type !== "requestModel") return undefined
        const kept = yield* sql`
          select 1 from kb.model_calls where project_id = ${projectId} and run_id = ${run.id} and purpose = 'step'
            and after_event = ${context.nextEventNumber - 1} limit 1`
        return kept.length === 0 ? next : undefined
      })

      /** Returns the model of the request and its prices; undefined when that model is no longer available here. */
      const modelOf = Effect.fnUntraced(function* (run: Standing, context: ReducedContext) {
        const found = yield* agents.version(run.agentId, run.agentVersion)
        if (found === undefined) return undefined
        const { definition } = found
        const name = Option.getOrUndefined(context.flow)?.step
        const step = definition.steps.find((each) => each.name === name)
        return yield* Effect.option(
          models.resolve({
            agentName: definition.name,
            model: step?.model ?? definition.model,
            settings: step?.model ? { ...context.config, primary: Option.none() } : context.config
          })
        ).pipe(Effect.map(Option.getOrUndefined))
      })

      /** Returns the tools of the run's last recorded request; those of a first request are known only to its worker. */
      const toolsOf = Effect.fnUntraced(function* (projectId: ProjectId, runId: RunId) {
        const [row] = yield* sql<{ readonly tools: OpenRequest["tools"] }>`
          select coalesce(list.tools, '[]') as tools from kb.model_calls call
          left join kb.tool_lists list on list.project_id = call.project_id and list.digest = call.tools_digest
          where call.project_id = ${projectId} and call.run_id = ${runId} and call.purpose = 'step' order by call.number desc limit 1`
        return row?.tools ?? null
      })

      const of = Effect.fn("OpenRequestReading.of")(function* (runId: RunId) {
        const { projectId } = yield* ProjectTransaction
        const run = yield* standing(runId)
        const stands = run && (yield* standpoint(run))
        if (!stands) return undefined
        const { context, said } = stands
        const asking = yield* isAsking(run, context)
        if (!asking) return undefined
        const messages = promptOf(context)
        const tools = yield* toolsOf(projectId, runId)
        const model = yield* modelOf(run, context)
        const request: OpenRequest = {
          isUnderWay: run.status === "running",
          step: stepsOf(run, context) + 1,
          afterEvent: context.nextEventNumber - 1,
          model: model ? `${model.provider}:${model.name}` : null,
          price: model?.price ?? null,
          messages: decodeMessages(messages),
          tools,
          toolChoice: asking.withTools ? "auto" : "none",
          estimatedInputTokens: tokensOf(charsOf({ messages, tools: [] })),
          said
        }
        return request
      }, orDie)

      return OpenRequestReading.of({ of })
    })
  )
}

const conversation: Trigger["type"] = "context"

const decodeMessages = Schema.decodeUnknownSync(Schema.Array(Schema.Json))

// Finds the workflow step of a model request.
//
// The log records where each step begins, and a request names the last event that it included. A context may be older than the run: steps
// that began before the run do not belong to it.

/** Returns the step that was active after an event of the log. */
export type FlowStepBehind = (afterEvent: number) => FlowStepAtWork | null

interface BegunRow extends FlowStepAtWork {
  readonly number: number
}

/** Finds the steps of several calls of one run in one query. */
const makeFlowSteps = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (projectId: ProjectId, runId: RunId, calls: ReadonlyArray<ModelCallRow>) {
    const [first] = calls
    if (first === undefined) return noStep
    const last = Math.max(...calls.map(({ afterEvent }) => afterEvent))
    const begun = yield* sql<BegunRow>`
      select event.number, event.payload ->> 'step' as name, (event.payload ->> 'iteration')::int as iteration
      from kb.context_events event join kb.agent_runs run on run.project_id = event.project_id and run.id = ${runId}
      where event.project_id = ${projectId} and event.context_name = ${first.contextName} and event.number <= ${last}
        and event.type = 'FlowStepStartedEvent' and event.created_at >= run.created_at
      order by event.number`
    const behind: FlowStepBehind = (afterEvent) => {
      const row = begun.findLast(({ number }) => number <= afterEvent)
      return row === undefined ? null : { name: row.name, iteration: row.iteration }
    }
    return behind
  })

const noStep: FlowStepBehind = () => null

// Reads model requests and rebuilds the exact request from the log.
//
// The reducer is pure and the log immutable, so the fold up to the event that a call names is exactly the context that the model was shown.

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export class ModelCallReading extends Context.Service<
  ModelCallReading,
  {
    /** Returns the calls of a run after a number, in the order in which they were made. */
    readonly list: (runId: RunId, after: number, limit: number) => Read<ReadonlyArray<ModelCall>>
    /** Returns one call with its messages and its answer. */
    readonly exchange: (runId: RunId, number: number) => Read<ModelExchange | undefined>
  }
>()("@tropism/server/run/ModelCallReading") {
  static readonly layer = Layer.effect(
    ModelCallReading,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const contexts = yield* Contexts
      const flowSteps = makeFlowSteps(sql)

      const rows = (projectId: ProjectId, runId: RunId, after: number, limit: number) =>
        sql<ModelCallRow>`
          select * from kb.model_calls where project_id = ${projectId} and run_id = ${runId} and number > ${after}
          order by number limit ${limit}`

      const list = Effect.fn("ModelCallReading.list")(function* (runId: RunId, after: number, limit: number) {
        const { projectId } = yield* ProjectTransaction
        const calls = yield* rows(projectId, runId, after, limit)
        const flowStep = yield* flowSteps(projectId, runId, calls)
        return calls.map((row) => toModelCall(row, flowStep(row.afterEvent)))
      }, orDie)

      /** Returns the messages of the call: the context up to its event, as prepared for an answer, a verdict, notes or a summary. */
      const messagesOf = Effect.fnUntraced(function* ({ afterEvent, contextName, purpose }: ModelCallRow) {
        const context = yield* contexts.loadUpTo(contextName, afterEvent)
        switch (purpose) {
          case "step":
            return promptOf(context)
          case "guard":
            return guardMessages(context, findUnjudged(context))
          case "summary":
            return findSummary(context)?.messages ?? []
          case "notes":
            return notesRequest(context)
        }
      })

      const toolsOf = Effect.fnUntraced(function* (projectId: ProjectId, digest: string | null) {
        if (digest === null) return []
        const [row] = yield* sql<{ tools: ModelExchange["request"]["tools"] }>`
          select tools from kb.tool_lists where project_id = ${projectId} and digest = ${digest}`
        return row?.tools ?? []
      })

      const responseOf = Effect.fnUntraced(function* ({ answerEvent, contextName }: ModelCallRow) {
        if (answerEvent === null) return null
        const [event] = yield* contexts.read(contextName, answerEvent - 1, 1)
        return event === undefined
          ? null
          : { text: String(event["content"] ?? ""), toolCalls: decodeCalls(event["toolCalls"] ?? []) }
      })

      const exchange = Effect.fn("ModelCallReading.exchange")(function* (runId: RunId, number: number) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* rows(projectId, runId, number - 1, 1)
        if (row?.number !== number) return undefined
        const tools = yield* toolsOf(projectId, row.toolsDigest)
        const whole = yield* messagesOf(row)
        const { leftOut } = row.parameters
        // Apply the original token limit again: the same limit leaves out the same messages.
        const messages = decodeMessages(
          leftOut === undefined ? whole : fitPrompt(whole, toolTokens(tools), leftOut.maxTokens).messages
        )
        const flowStep = yield* flowSteps(projectId, runId, [row])
        const exchanged: ModelExchange = {
          ...toModelCall(row, flowStep(row.afterEvent)),
          request: { messages, tools, parameters: row.parameters },
          response: yield* responseOf(row)
        }
        return exchanged
      }, orDie)

      return ModelCallReading.of({ list, exchange })
    })
  )
}

const decodeCalls = Schema.decodeUnknownSync(
  Schema.Array(Schema.Struct({ id: Schema.String, name: Schema.String, arguments: Schema.Json }))
)
