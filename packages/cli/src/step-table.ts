/**
 * The steps of a run as a table: who was asked, what for, at what price, and what came of it.
 */
import type { Run } from "@tropism/domain/run"
import type { RunStep } from "@tropism/domain/model-call"
import { type Paint, paintState } from "./terminal/paint.ts"
import { renderTable } from "./terminal/table.ts"
import { printable } from "./terminal/text.ts"
import { clockTime, formatDuration } from "./terminal/time.ts"

/** Renders the steps, and behind them what the run is doing now. */
export const renderSteps = (
  run: Run,
  steps: ReadonlyArray<RunStep>,
  options: { readonly paint: Paint; readonly width: number | undefined }
): ReadonlyArray<string> => {
  const { paint } = options
  const lines =
    steps.length === 0
      ? []
      : renderTable(
          steps,
          [
            { title: "STEP", align: "right", cell: (step) => String(step.number), paint: () => paint.dim },
            { title: "TIME", cell: (step) => clockTime(step.startedAt), paint: () => paint.dim },
            { title: "MODEL", cell: modelText, paint: (step) => paintState(paint, step.status) },
            { title: "TOOK", align: "right", cell: (step) => formatDuration(step.modelMs) },
            { title: "TOKENS", align: "right", cell: tokensText },
            { title: "COST", align: "right", cell: costText },
            { title: "WHAT", shrinks: "end", cell: whatText }
          ],
          options
        )
  const now = nowText(run, steps)
  return now === "" ? lines : [...lines, now]
}

const modelText = ({ model, modelCalls }: RunStep): string =>
  modelCalls.length === 1 ? model : `${model} (try ${modelCalls.length})`

const tokensText = ({ usage }: RunStep): string => `${usage.inputTokens}+${usage.outputTokens}`

const costText = ({ costUsd }: RunStep): string => (costUsd === null ? "" : `$${costUsd}`)

const whatText = ({ error, text, toolCalls }: RunStep): string =>
  printable(
    error ??
      (toolCalls.length === 0
        ? text
        : toolCalls
            .map(({ status, tool }) => (status === "completed" ? tool : `${tool} (${status})`))
            .join(", "))
  )

/** What a run that has not ended is at. */
export const nowText = (run: Run, steps: ReadonlyArray<RunStep>): string => {
  if (run.status !== "running") return ""
  const atWork = steps.at(-1)?.toolCalls.find(({ status }) => status === "pending")
  return atWork === undefined ? "Now: waiting for the model" : `Now: ${printable(atWork.tool)} is running`
}
