/**
 * A run in short: each step with what the model said and the tool calls it asked for, with their outcome.
 */
import type { ToolCallRecord } from "@tropism/api/runs-api"
import type { RunStep, StepCall } from "@tropism/domain/model-call"
import type { Run } from "@tropism/domain/run"
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Failure } from "../parts/failure.tsx"
import { JsonView } from "../parts/json-view.tsx"
import { LongText } from "../parts/long-text.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { Visible } from "../parts/visible.tsx"
import { limits } from "../limits.ts"
import { runStepsQuery, runToolCallsQuery } from "../server/run-queries.ts"
import { moneyText, tokensText } from "../words/amounts.ts"
import { durationText } from "../words/durations.ts"
import { flowStepText, stepHeads } from "./flow-step-words.ts"

export const RunSteps = ({ run }: { readonly run: Run }): ReactNode => {
  const { project } = useConsole()
  const refetchInterval = run.completedAt === null ? limits.refreshIntervalMs : (false as const)
  const steps = useQuery({ ...runStepsQuery(project.id, run.id), refetchInterval })
  const calls = useQuery({ ...runToolCallsQuery(project.id, run.id), refetchInterval })
  if (steps.data === undefined)
    return steps.error === null ? <Skeleton label="Loading steps …" /> : <Failure error={steps.error} />
  if (steps.data.items.length === 0)
    return (
      <p className="text-sm text-ink-soft">
        {run.completedAt === null
          ? "No steps yet. Each completed model response appears here with its cost."
          : "The run ended before a model response completed."}
      </p>
    )
  const heads = stepHeads(steps.data.items.map(({ flowStep }) => flowStepText(flowStep)))
  const records: Records = {
    byCall: new Map(calls.data?.items.map((record) => [record.callId, record])),
    isReading: calls.isPending,
    error: calls.error
  }
  return (
    <>
      <ol aria-label="Steps" className="grid gap-5">
        {steps.data.items.map((step, place) => (
          <Step key={step.number} step={step} flowHead={heads.get(place)} records={records} />
        ))}
      </ol>
      {steps.data.nextCursor !== null && (
        <p className="mt-4 text-xs text-ink-soft">More steps are in the log.</p>
      )}
    </>
  )
}

/** What is kept of the calls, as far as it is read. */
interface Records {
  readonly byCall: ReadonlyMap<string, ToolCallRecord>
  readonly isReading: boolean
  /** Why they could not be read; null where they could. */
  readonly error: unknown
}

interface StepProps {
  readonly step: RunStep
  /** The step of the flow that begins with it. */
  readonly flowHead: string | undefined
  readonly records: Records
}

const Step = ({ step, flowHead, records }: StepProps): ReactNode => (
  <li className="min-w-0 border-l-2 border-line pl-4">
    {flowHead !== undefined && (
      <p className="mb-2 text-sm font-semibold text-leaf [overflow-wrap:anywhere]">
        <Visible text={flowHead} />
      </p>
    )}
    <h2 className="text-sm font-semibold">
      Step {step.number}{" "}
      <span className="text-xs font-normal text-ink-faint">
        <Visible text={step.model} />, {durationText(step.modelMs)},{" "}
        {tokensText(step.usage.inputTokens + step.usage.outputTokens)}
        {step.costUsd !== null && `, ${moneyText(step.costUsd)}`}
      </span>
    </h2>
    {step.error !== null && (
      <p className="mt-1 text-sm text-removed-ink">
        No model response: <Visible text={step.error} />
      </p>
    )}
    {step.text !== "" && (
      <p className="mt-1 text-sm whitespace-pre-wrap [overflow-wrap:anywhere]">
        <LongText text={step.text} />
      </p>
    )}
    {step.toolCalls.length > 0 && (
      <ul aria-label={`Tool calls of step ${step.number}`} className="mt-2 grid gap-2">
        {step.toolCalls.map((call) => (
          <ToolCall key={call.callId} call={call} records={records} />
        ))}
      </ul>
    )}
  </li>
)

interface ToolCallProps {
  readonly call: StepCall
  readonly records: Records
}

const decisions = { execute: "applied", suggest: "suggested", refuse: "refused" } as const

const ToolCall = ({ call, records }: ToolCallProps): ReactNode => {
  const record = records.byCall.get(call.callId)
  return (
    <li
      className={`rounded-lg border border-line px-3 py-2 ${call.status === "pending" ? "border-dashed" : ""}`}
    >
      <details>
        <summary className="cursor-pointer text-sm">
          <code className="font-mono text-xs">
            <Visible text={call.tool} />
          </code>{" "}
          <span className={call.status === "failed" ? "text-xs text-removed-ink" : "text-xs text-ink-soft"}>
            {call.status}
            {record !== undefined &&
              record.decision !== null &&
              decisions[record.decision] !== call.status &&
              `, ${decisions[record.decision]}`}
            {call.durationMs !== null && `, ${durationText(call.durationMs)}`}
          </span>
        </summary>
        <div className="mt-2 grid gap-2">
          {record === undefined ? (
            <WithoutRecord call={call} records={records} />
          ) : (
            <>
              <JsonView label={`Arguments of ${call.tool}`} value={record.arguments} />
              <JsonView label={`Result of ${call.tool}`} value={record.result} />
            </>
          )}
        </div>
      </details>
    </li>
  )
}

/** Why nothing more of a call is said here. Whether it was made is its status, not whether its record was read. */
const WithoutRecord = ({ call, records }: ToolCallProps): ReactNode => {
  if (call.status === "pending")
    return (
      <p data-record="notMade" className="text-xs text-ink-soft">
        Not called yet.
      </p>
    )
  if (records.isReading) return <Skeleton label="Loading tool calls …" />
  if (records.error !== null) return <Failure error={records.error} />
  return (
    <p data-record="notRead" className="text-xs text-ink-soft">
      Arguments and result are in the log.
    </p>
  )
}
