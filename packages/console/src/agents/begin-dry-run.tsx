/**
 * Begins a dry run over the newest events or over an object, and offers the same as a command.
 */
import type { Agent } from "@tropism/domain/agent"
import type { Backtest } from "@tropism/domain/backtest"
import { type ReactNode, useState } from "react"
import { Button } from "../parts/button.tsx"
import { useChosenObject } from "../parts/choose-object.tsx"
import { Command } from "../parts/command.tsx"
import { Failure } from "../parts/failure.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { agentPath } from "../server/agent-queries.ts"
import { useWrite } from "../server/use-write.ts"
import { numberSent } from "../words/number-sent.ts"

interface BeginDryRunProps {
  readonly agent: Agent
  readonly onBegun: (backtestId: string) => void
}

export const BeginDryRun = ({ agent, onBegun }: BeginDryRunProps): ReactNode => {
  const [over, setOver] = useState(agent.triggerType === "reaction" ? "events" : "object")
  const [maxEvents, setMaxEvents] = useState("20")
  const [days, setDays] = useState("30")
  const { objectId, fields } = useChosenObject("the object")
  const begin = useWrite<Backtest>("Start backtest", ({ id }) => onBegun(id))
  const body =
    over === "object"
      ? { objectIds: [objectId] }
      : { days: numberSent(days), maxEvents: numberSent(maxEvents) }
  const command =
    over === "events"
      ? `npx tropism backtest ${agent.name} --days ${days} --max-events ${maxEvents}`
      : objectId === ""
        ? undefined
        : `npx tropism backtest ${agent.name} --object ${objectId}`
  return (
    <>
      <form
        className="mb-4 flex flex-wrap items-end gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          begin.run({ path: agentPath(agent.id, "/backtests"), method: "POST", body })
        }}
      >
        <ChoiceField
          label="Over"
          name="over"
          value={over}
          choices={[
            { value: "events", label: "Past events that match its trigger" },
            { value: "object", label: "One object" }
          ]}
          onChange={setOver}
        />
        {over === "object" ? (
          fields
        ) : (
          <>
            <TextField
              label="Number of latest events"
              type="number"
              pointer="/maxEvents"
              error={begin.error}
              value={maxEvents}
              onChange={setMaxEvents}
            />
            <TextField
              label="From the last (days)"
              type="number"
              pointer="/days"
              error={begin.error}
              value={days}
              onChange={setDays}
            />
          </>
        )}
        <Button
          type="submit"
          weight="primary"
          disabled={begin.isBusy || (over === "object" && objectId === "")}
        >
          Start backtest
        </Button>
      </form>
      {begin.error !== null && <Failure error={begin.error} />}
      {command !== undefined && (
        <div className="mb-6 max-w-xl">
          <Command text={command} />
        </div>
      )}
    </>
  )
}
