/**
 * What an agent did for an answer: each tool call with its arguments, its result and its outcome.
 */
import { isJsonObject } from "@tropism/domain/json"
import type { Schema } from "effect"
import type { ReactNode } from "react"
import { JsonView } from "../parts/json-view.tsx"
import { Visible } from "../parts/visible.tsx"

export interface ShownCall {
  readonly tool: string
  readonly arguments: Schema.Json
  readonly result: Schema.Json
}

type Outcome = "worked" | "failed" | "open"

const looks: Readonly<Record<Outcome, { readonly word: string; readonly colour: string }>> = {
  worked: { word: "worked", colour: "bg-leaf-soft text-leaf" },
  failed: { word: "failed", colour: "bg-removed text-removed-ink" },
  open: { word: "in progress", colour: "bg-caution text-caution-ink" }
}

const outcomeOf = ({ result }: ShownCall): Outcome => {
  if (result === null) return "open"
  return isJsonObject(result) && "error" in result ? "failed" : "worked"
}

interface ToolCallsProps {
  readonly calls: ReadonlyArray<ShownCall>
  /** The place of the first of them in the answer, of which these may be a part. */
  readonly firstPlace: number
  /** The places of the calls that are open. */
  readonly opened: ReadonlySet<number>
  readonly onToggle: (place: number, isOpen: boolean) => void
}

export const ToolCalls = ({ calls, firstPlace, opened, onToggle }: ToolCallsProps): ReactNode =>
  calls.length === 0 ? null : (
    <ul aria-label="Tool calls" className="mb-2 grid gap-1.5">
      {calls.map((call, index) => {
        const place = firstPlace + index
        const outcome = outcomeOf(call)
        const look = looks[outcome]
        return (
          // Calls are only added, so their place names them.
          <li key={place} className="min-w-0">
            <details
              open={opened.has(place)}
              data-outcome={outcome}
              className="rounded-lg border border-line bg-surface px-3 py-1.5 text-xs"
            >
              <summary
                // Noted at the click and not when it has opened: by then the answer may stand in another line.
                onClick={(event) => {
                  event.preventDefault()
                  onToggle(place, !opened.has(place))
                }}
                className="flex flex-wrap items-center gap-2"
              >
                <span className="text-ink-faint">Tool</span>
                <span className="font-mono">
                  <Visible text={call.tool} />
                </span>
                <span className={`rounded-full px-2 text-2xs leading-5 font-medium ${look.colour}`}>
                  {look.word}
                </span>
              </summary>
              <div className="mt-2 grid gap-2 pb-1.5">
                <JsonView label="Arguments" value={call.arguments} />
                {call.result !== null && <JsonView label="Result" value={call.result} />}
              </div>
            </details>
          </li>
        )
      })}
    </ul>
  )
