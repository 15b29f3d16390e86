/**
 * Why did it not wake? One event, one agent, and the answer in a sentence.
 */
import type { Explanation } from "@tropism/api/explanations-api"
import type { Agent } from "@tropism/domain/agent"
import type { GraphEvent } from "@tropism/domain/graph"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { DefinitionList } from "../parts/definition-list.tsx"
import { Failure } from "../parts/failure.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { RunStatusBadge } from "../parts/run-status.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { useAddress } from "../parts/use-address.ts"
import { Visible } from "../parts/visible.tsx"
import { explanationQuery, newestEventsQuery } from "../server/reaction-queries.ts"
import { visibleText } from "../words/visible-text.ts"

const linkClass = "font-medium text-leaf underline-offset-2 hover:underline"

export const WhyNot = ({ agent }: { readonly agent: Agent }): ReactNode => {
  const { project } = useConsole()
  const [{ event }, change] = useAddress()
  const [typed, setTyped] = useState("")
  const { data: newest } = useQuery(newestEventsQuery(project.id))
  return (
    <div className="max-w-2xl">
      <form
        className="mb-6 grid gap-4 sm:grid-cols-[minmax(0,1fr)_minmax(0,1fr)_auto] sm:items-end"
        onSubmit={(submitted) => {
          submitted.preventDefault()
          if (typed.trim() !== "") change({ event: typed.trim() })
        }}
      >
        <ChoiceField
          label="One of the newest events"
          value={newest?.items.some(({ id }) => id === event) ? (event ?? "") : ""}
          choices={[
            { value: "", label: "Choose an event" },
            ...(newest?.items ?? []).map((each) => ({ value: each.id, label: eventLabel(each) }))
          ]}
          onChange={(id) => change({ event: id })}
        />
        <TextField label="Or any event, by its id" isMono value={typed} onChange={setTyped} />
        <Button type="submit">Explain</Button>
      </form>
      {event === undefined ? (
        <p className="text-sm text-ink-soft">
          Choose an event, and it is said why the agent woke or did not, rule by rule.
        </p>
      ) : (
        <Answer agent={agent} eventId={event} />
      )}
    </div>
  )
}

const eventLabel = ({ position, objectType, type, version }: GraphEvent): string =>
  visibleText(`${position ?? "new"}: ${objectType} ${type}, version ${version}`)

const headlines: Readonly<Record<Explanation["outcome"], string>> = {
  woke: "It woke.",
  refused: "It did not wake.",
  skipped: "It did not wake: it was busy.",
  waiting: "It has not woken yet."
}

const Answer = ({ agent, eventId }: { readonly agent: Agent; readonly eventId: string }): ReactNode => {
  const { project } = useConsole()
  const { data, error } = useQuery(explanationQuery(project.id, agent.id, eventId))
  if (data === undefined)
    return error === null ? <Skeleton label="Asking why …" /> : <Failure error={error} />
  return (
    <section aria-label="Answer" className="rounded-xl border border-line p-4">
      <h2 className="text-base font-semibold">{headlines[data.outcome]}</h2>
      <p className="mt-1 mb-4 text-sm text-pretty">
        <Visible text={data.reason} />
      </p>
      <DefinitionList
        items={[
          ...(data.rule === null ? [] : [{ name: "Rule", value: <Visible text={data.rule} /> }]),
          {
            name: "Event",
            value: (
              <Link to="/events/$eventId" params={{ eventId: data.eventId }} className={linkClass}>
                what changed, and whom else it woke
              </Link>
            )
          },
          ...(data.agentVersion === null
            ? []
            : [{ name: "Judged by", value: `version ${data.agentVersion} of the agent` }]),
          ...(data.run === null
            ? []
            : [
                {
                  name: "Run",
                  value: (
                    <Link to="/runs/$runId" params={{ runId: data.run.id }} className={linkClass}>
                      its run <RunStatusBadge status={data.run.status} />
                    </Link>
                  )
                }
              ])
        ]}
      />
    </section>
  )
}
