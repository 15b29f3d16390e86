/**
 * Why did it not wake? One event, one agent, and the answer in a sentence.
 */
import type { Explanation } from "@tropism/api/explanations-api"
import type { Agent } from "@tropism/domain/agent"
import type { GraphEvent } from "@tropism/domain/graph"
import { isJsonObject } from "@tropism/domain/json"
import type { ObjectId } from "@tropism/domain/ids"
import { useMutation, useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { Effect } from "effect"
import { type ReactNode, useState } from "react"
import { propertiesOf } from "../feed/feed-items.ts"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { DefinitionList } from "../parts/definition-list.tsx"
import { Failure } from "../parts/failure.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { RunStatusBadge } from "../parts/run-status.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { useAddress } from "../parts/use-address.ts"
import { Visible } from "../parts/visible.tsx"
import { explanationQuery, newestEventsQuery, readEventAt } from "../server/reaction-queries.ts"
import { objectName } from "../words/object-name.ts"
import { visibleText } from "../words/visible-text.ts"

const linkClass = "font-medium text-leaf underline-offset-2 hover:underline"

export const WhyNot = ({ agent }: { readonly agent: Agent }): ReactNode => {
  const { project } = useConsole()
  const [{ event }, change] = useAddress()
  const { data: newest } = useQuery(newestEventsQuery(project.id))
  const isNewest = newest?.items.some(({ id }) => id === event) ?? false
  const choose = (id: string) => change({ event: id })
  return (
    <div className="max-w-2xl">
      <ChoiceField
        label="Recent events"
        value={isNewest ? (event ?? "") : ""}
        choices={[
          { value: "", label: "Select an event" },
          ...(newest?.items ?? []).map((each) => ({ value: each.id, label: eventLabel(each) }))
        ]}
        onChange={choose}
      />
      {/* What the address names stands in the field where the list does not have it. */}
      <AnyEvent key={event} named={newest === undefined || isNewest ? "" : (event ?? "")} onFound={choose} />
      {event === undefined ? (
        <p className="text-sm text-ink-soft">
          Select an event to see, rule by rule, why it did or did not trigger the agent.
        </p>
      ) : (
        <Answer agent={agent} eventId={event} />
      )}
    </div>
  )
}

interface AnyEventProps {
  /** The id of the event that is explained. */
  readonly named: string
  readonly onFound: (id: string) => void
}

/** An event by its id, or by its number in the feed, which is looked up. */
const AnyEvent = ({ named, onFound }: AnyEventProps): ReactNode => {
  const { project } = useConsole()
  const [typed, setTyped] = useState<string>()
  const { error, isPending, mutate } = useMutation({
    mutationFn: (number: number) => Effect.runPromise(readEventAt(project.id, number)),
    onSuccess: ({ id }) => onFound(id)
  })
  const value = typed ?? named
  return (
    <form
      className="my-4 grid gap-4 sm:grid-cols-[minmax(0,1fr)_auto] sm:items-end"
      onSubmit={(submitted) => {
        submitted.preventDefault()
        const text = value.trim()
        if (/^[1-9]\d{0,14}$/.test(text)) mutate(Number(text))
        else if (text !== "") onFound(text)
      }}
    >
      <TextField label="Or enter an event number or id" isMono value={value} onChange={setTyped} />
      <Button type="submit" disabled={isPending}>
        Explain
      </Button>
      {error !== null && (
        <div className="sm:col-span-2">
          <Failure error={error} />
        </div>
      )}
    </form>
  )
}

const eventLabel = (event: GraphEvent): string =>
  visibleText(
    `${event.position ?? "new"}: ${event.objectType} ${nameOf(event)} ${event.type}, version ${event.version}`
  )

/** Its key, else a name that it has, else the end of its id. */
const nameOf = ({ entityId, snapshot }: GraphEvent): string => {
  const key = isJsonObject(snapshot) ? snapshot["key"] : undefined
  return objectName({
    id: entityId as ObjectId,
    key: typeof key === "string" ? key : null,
    properties: propertiesOf({ snapshot })
  })
}

const headlines: Readonly<Record<Explanation["outcome"], string>> = {
  woke: "Triggered.",
  refused: "Not triggered.",
  skipped: "Not triggered: the agent was busy.",
  waiting: "Not triggered yet."
}

const Answer = ({ agent, eventId }: { readonly agent: Agent; readonly eventId: string }): ReactNode => {
  const { project } = useConsole()
  const { data, error } = useQuery(explanationQuery(project.id, agent.id, eventId))
  if (data === undefined)
    return error === null ? <Skeleton label="Loading explanation …" /> : <Failure error={error} />
  return (
    <section
      aria-label="Explanation"
      data-outcome={data.outcome}
      className="rounded-xl border border-line p-4"
    >
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
                changes and triggered agents
              </Link>
            )
          },
          ...(data.agentVersion === null
            ? []
            : [{ name: "Evaluated with", value: `agent version ${data.agentVersion}` }]),
          ...(data.run === null
            ? []
            : [
                {
                  name: "Run",
                  value: (
                    <Link to="/runs/$runId" params={{ runId: data.run.id }} className={linkClass}>
                      run <RunStatusBadge status={data.run.status} />
                    </Link>
                  )
                }
              ])
        ]}
      />
    </section>
  )
}
