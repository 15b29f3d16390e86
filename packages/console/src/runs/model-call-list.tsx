/**
 * What the model was asked in a run, try by try: exact messages, tools, parameters and the answer.
 */
import type { ModelCall } from "@tropism/domain/model-call"
import type { Run } from "@tropism/domain/run"
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { limits } from "../limits.ts"
import { Button } from "../parts/button.tsx"
import { Failure } from "../parts/failure.tsx"
import { JsonView } from "../parts/json-view.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { useAddress } from "../parts/use-address.ts"
import { Visible } from "../parts/visible.tsx"
import { modelCallQuery, modelCallsQuery } from "../server/run-queries.ts"
import { moneyText, tokensText } from "../words/amounts.ts"
import { durationText } from "../words/durations.ts"

export const ModelCallList = ({ run }: { readonly run: Run }): ReactNode => {
  const { project } = useConsole()
  const [{ call }, change] = useAddress()
  const { data, error } = useQuery({
    ...modelCallsQuery(project.id, run.id),
    refetchInterval: run.completedAt === null ? limits.refreshIntervalMs : false
  })
  if (data === undefined)
    return error === null ? <Skeleton label="Reading the model calls …" /> : <Failure error={error} />
  if (data.items.length === 0) return <p className="text-sm text-ink-soft">The model was not asked yet.</p>
  return (
    <ol aria-label="Model calls" className="grid gap-3">
      {data.items.map((item) => {
        const isOpen = call === String(item.number)
        return (
          <li key={item.number} className="min-w-0 rounded-xl border border-line p-3">
            <div className="flex flex-wrap items-center justify-between gap-2">
              <ModelCallLine call={item} />
              <Button
                size="small"
                aria-expanded={isOpen}
                aria-label={`${isOpen ? "Fold" : "Inspect"} model call ${item.number}`}
                onClick={() => change({ call: isOpen ? undefined : String(item.number) })}
              >
                {isOpen ? "Fold" : "Inspect"}
              </Button>
            </div>
            {isOpen && <Exchange runId={run.id} number={item.number} />}
          </li>
        )
      })}
    </ol>
  )
}

const ModelCallLine = ({ call }: { readonly call: ModelCall }): ReactNode => (
  <p className="min-w-0 text-sm">
    <span className="font-medium">Call {call.number}</span>{" "}
    <span className="text-xs text-ink-soft">
      for {call.purpose} {call.step}
      {call.try > 1 && `, try ${call.try}`}, <Visible text={`${call.provider}:${call.model}`} />,{" "}
      {durationText(call.durationMs)}
      {call.firstOutputMs !== null && ` (first words after ${durationText(call.firstOutputMs)})`},{" "}
      {tokensText(call.usage.inputTokens)} read, {tokensText(call.usage.outputTokens)} written
      {call.costUsd !== null && `, ${moneyText(call.costUsd)}`}
    </span>
    {call.error !== null && (
      <span className="block text-xs text-removed-ink">
        <Visible text={call.error} />
      </span>
    )}
  </p>
)

const Exchange = ({ runId, number }: { readonly runId: string; readonly number: number }): ReactNode => {
  const { project } = useConsole()
  const { data, error } = useQuery(modelCallQuery(project.id, runId, number))
  if (data === undefined) return error === null ? <Skeleton /> : <Failure error={error} />
  const called = data.response?.toolCalls ?? []
  return (
    <div className="mt-3 grid gap-3">
      <p className="text-xs text-ink-soft">
        Offered tools:{" "}
        {data.request.tools.length === 0
          ? "none"
          : data.request.tools.map(({ name }) => {
              const places = called.flatMap((call, place) => (call.name === name ? [place + 1] : []))
              return (
                <span
                  key={name}
                  className={`mr-2 font-mono ${places.length > 0 ? "font-semibold text-ink" : ""}`}
                >
                  <Visible text={name} />
                  {places.length > 0 && ` (called ${places.join(", ")})`}
                </span>
              )
            })}
      </p>
      <JsonView label="Messages, as the model read them" value={data.request.messages} />
      <JsonView label="Parameters" value={data.request.parameters} />
      {data.response === null ? (
        <p className="text-sm text-ink-soft">There was no answer.</p>
      ) : (
        <JsonView label="Answer" value={data.response} />
      )}
    </div>
  )
}
