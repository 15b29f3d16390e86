/**
 * What the model was asked in a run, try by try and at this moment: exact messages, tools, parameters and the answer.
 */
import type { ModelCall, ModelExchange, OpenRequest } from "@tropism/domain/model-call"
import type { Run } from "@tropism/domain/run"
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { limits } from "../limits.ts"
import { Button } from "../parts/button.tsx"
import { Failure } from "../parts/failure.tsx"
import { JsonView } from "../parts/json-view.tsx"
import { LongText } from "../parts/long-text.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { useAddress } from "../parts/use-address.ts"
import { Visible } from "../parts/visible.tsx"
import { ModelMessages } from "./model-messages.tsx"
import { modelCallQuery, modelCallsQuery, openRequestQuery } from "../server/run-queries.ts"
import { moneyText, tokensText } from "../words/amounts.ts"
import { durationText } from "../words/durations.ts"

export const ModelCallList = ({ run }: { readonly run: Run }): ReactNode => {
  const { project } = useConsole()
  const { data, error } = useQuery({
    ...modelCallsQuery(project.id, run.id),
    refetchInterval: run.completedAt === null ? limits.refreshIntervalMs : false
  })
  if (data === undefined)
    return error === null ? <Skeleton label="Loading model calls …" /> : <Failure error={error} />
  return (
    <>
      {data.items.length === 0 && (
        <p className="mb-3 text-sm text-ink-soft">
          {run.completedAt === null
            ? "No completed model calls yet. Each call appears here when it completes."
            : "The run ended before a model call completed."}
        </p>
      )}
      <ol aria-label="Model calls" className="grid gap-3">
        {data.items.map((item) => (
          <Folded
            key={item.number}
            place={String(item.number)}
            name={`model call ${item.number}`}
            line={<ModelCallLine call={item} />}
          >
            {() => <Exchange runId={run.id} number={item.number} />}
          </Folded>
        ))}
        <OpenCall run={run} />
      </ol>
    </>
  )
}

interface FoldedProps {
  /** What stands in the address when it is open. */
  readonly place: string
  readonly name: string
  readonly line: ReactNode
  /** Drawn when it is open. */
  readonly children: () => ReactNode
}

const Folded = ({ place, name, line, children }: FoldedProps): ReactNode => {
  const [{ call }, change] = useAddress()
  const isOpen = call === place
  return (
    <li data-testid={`call-${place}`} className="min-w-0 rounded-xl border border-line p-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        {line}
        <Button
          size="small"
          aria-expanded={isOpen}
          aria-label={`${isOpen ? "Collapse" : "Inspect"} ${name}`}
          onClick={() => change({ call: isOpen ? undefined : place })}
        >
          {isOpen ? "Collapse" : "Inspect"}
        </Button>
      </div>
      {isOpen && children()}
    </li>
  )
}

/** The request that has not come to its end, and with a run that was broken off never will. */
const OpenCall = ({ run }: { readonly run: Run }): ReactNode => {
  const { project } = useConsole()
  const [{ call }] = useAddress()
  const isAtWork = run.status === "running"
  const wasBrokenOff = run.status === "cancelled" || run.status === "failed"
  const isAsked = wasBrokenOff || (isAtWork && call === "open")
  const { data, error } = useQuery({
    ...openRequestQuery(project.id, run.id),
    enabled: isAsked,
    refetchInterval: isAtWork ? limits.refreshIntervalMs : false
  })
  const request = isAsked ? data?.request : undefined
  if (!isAtWork && !request) return null
  return (
    <Folded
      place="open"
      name="open model call"
      line={
        <p data-state={isAtWork ? "underWay" : "brokenOff"} className="min-w-0 text-sm">
          <span className="font-medium">{isAtWork ? "In progress" : "Interrupted"}</span>{" "}
          <span className="text-xs text-ink-soft">
            {request && `for step ${request.step}, `}
            {request?.model && <Visible text={`${request.model}, `} />}
            reconstructed from the log
          </span>
        </p>
      }
    >
      {() => {
        if (error !== null) return <Failure error={error} />
        if (data === undefined) return <Skeleton label="Reading the log …" />
        if (!request) return <p className="mt-3 text-sm text-ink-soft">No model call in progress.</p>
        return <OpenExchange request={request} />
      }}
    </Folded>
  )
}

const OpenExchange = ({ request }: { readonly request: OpenRequest }): ReactNode => (
  <div className="mt-3 grid gap-3">
    <p className="text-xs text-ink-soft">
      {request.tools === null ? (
        "Offered tools are recorded with the first completed call."
      ) : request.tools.length === 0 ? (
        "Offered tools: none"
      ) : (
        <>
          Offered tools (as in the previous call):{" "}
          <span className="font-mono">
            <Visible text={request.tools.map(({ name }) => name).join("  ")} />
          </span>
        </>
      )}
    </p>
    <ModelMessages part="read" label="Input" messages={request.messages} />
    {request.said === "" ? (
      <p className="text-sm text-ink-soft">{request.isUnderWay ? "No output yet." : "No output."}</p>
    ) : (
      <p className="text-sm whitespace-pre-wrap [overflow-wrap:anywhere]">
        Partial output: <LongText text={request.said} />
      </p>
    )}
  </div>
)

const ModelCallLine = ({ call }: { readonly call: ModelCall }): ReactNode => (
  <p className="min-w-0 text-sm">
    <span className="font-medium">Call {call.number}</span>{" "}
    <span className="text-xs text-ink-soft">
      for {call.purpose} {call.step}
      {call.try > 1 && `, try ${call.try}`}, <Visible text={`${call.provider}:${call.model}`} />,{" "}
      {durationText(call.durationMs)}
      {call.firstOutputMs !== null && ` (time to first token ${durationText(call.firstOutputMs)})`},{" "}
      {tokensText(call.usage.inputTokens)} input, {tokensText(call.usage.outputTokens)} output
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
                  data-called={places.length > 0 ? places.join(" ") : undefined}
                  className={`mr-2 font-mono ${places.length > 0 ? "font-semibold text-ink" : ""}`}
                >
                  <Visible text={name} />
                  {places.length > 0 && ` (called ${places.join(", ")})`}
                </span>
              )
            })}
      </p>
      <ModelMessages part="read" label="Input" messages={data.request.messages} />
      <JsonView label="Parameters" value={data.request.parameters} />
      {data.response === null ? (
        <p className="text-sm text-ink-soft">No response.</p>
      ) : (
        <ModelMessages part="answered" label="Output" messages={[answerOf(data.response)]} />
      )}
    </div>
  )
}

type Answer = NonNullable<ModelExchange["response"]>

/** The answer in the shape of the messages before it. */
const answerOf = ({ text, toolCalls }: Answer) => ({
  role: "assistant",
  content: [
    ...(text === "" ? [] : [{ type: "text", text }]),
    ...toolCalls.map(({ id, name, arguments: params }) => ({ type: "tool-call", id, name, params }))
  ]
})
