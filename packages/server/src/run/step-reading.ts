/**
 * Reads a run step by step: who was asked, what it cost, what came of each call.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * A page costs the same wherever it lies: a number of questions that does not
 * depend on how many steps it has. What the model asked for stands in its
 * answer; what came of a call stands in its record, made or refused.
 */
import type { ContextName } from "@tropism/domain/context-event"
import type { ProjectId, RunId } from "@tropism/domain/ids"
import type { FlowStepAtWork, RunStep, StepCall } from "@tropism/domain/model-call"
import { addUsage, noUsage, type Usage } from "@tropism/domain/run"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { makeFlowSteps } from "./flow-steps-at-work.ts"
import { type ModelCallRow, toDollars } from "./model-call-rows.ts"

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
    /** The steps of a run behind a number, in order. */
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
        // A step has one call or more, so no call of a later step has a smaller number than the step.
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
        return stepsOf(calls).map((tries) => toStep(tries, flowStep(tries[0].afterEvent), answers, byCall))
      }, orDie)

      return StepReading.of({ list })
    })
  )
}

type Tries = readonly [ModelCallRow, ...ReadonlyArray<ModelCallRow>]

const stepsOf = (calls: ReadonlyArray<ModelCallRow>): ReadonlyArray<Tries> => {
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
