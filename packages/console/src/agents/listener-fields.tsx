/**
 * Which events of foreign MCP servers wake an agent, a row each.
 */
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { McpServer } from "@tropism/domain/mcp-server"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { mcpServersQuery } from "../server/settings-queries.ts"
import type { At, DraftFields } from "./draft-fields.ts"
import { GroupFault } from "./group-fault.tsx"
import { allowedWords, knownEvents, type ListenerRow } from "./listener-rows.ts"
import { useRowFocus } from "./use-row-focus.ts"

const noServers: ReadonlyArray<McpServer> = []

export const ListenerFields = ({ draft, change, at }: DraftFields): ReactNode => {
  const { project } = useConsole()
  const { data } = useQuery(mcpServersQuery(project.id))
  const servers = data?.items ?? noServers
  const { listeners } = draft
  const group = useRowFocus(listeners.length)
  const put = (index: number, changes: Partial<ListenerRow>) =>
    change({ listeners: listeners.map((row, each) => (each === index ? { ...row, ...changes } : row)) })
  const firstRow = (): ListenerRow => {
    const server = servers.find(({ allowedEvents = [] }) => allowedEvents.length > 0) ?? servers[0]
    return { server: server?.name ?? "", name: "", args: "" }
  }
  return (
    <div ref={group} role="group" aria-label="External events" className="grid gap-3">
      <div>
        <p className="text-sm font-medium">External events</p>
        <p className="text-xs text-ink-faint">
          Events from MCP servers also trigger the agent. Such a run has read untrusted content and can only
          suggest.
        </p>
      </div>
      {listeners.map((row, index) => (
        <ListenerFieldset
          // oxlint-disable-next-line react/no-array-index-key -- a row is its place: nothing else tells two alike apart
          key={index}
          index={index}
          row={row}
          servers={servers}
          at={at}
          onChange={(changes) => put(index, changes)}
          onRemove={() => change({ listeners: listeners.filter((_, each) => each !== index) })}
        />
      ))}
      {data !== undefined && servers.length === 0 ? (
        <p className="text-sm text-ink-soft">
          The project has no MCP server yet.{" "}
          <Link
            to="/settings"
            search={{ tab: "servers" }}
            className="font-medium text-leaf underline-offset-2 hover:underline"
          >
            Add one in the settings
          </Link>
        </p>
      ) : (
        <p>
          <Button
            data-testid="add-listener"
            disabled={data === undefined}
            onClick={() => change({ listeners: [...listeners, firstRow()] })}
          >
            {listeners.length === 0 ? "Add an event" : "Add another event"}
          </Button>
        </p>
      )}
    </div>
  )
}

interface ListenerFieldsetProps {
  readonly index: number
  readonly row: ListenerRow
  readonly servers: ReadonlyArray<McpServer>
  readonly at: At
  readonly onChange: (changes: Partial<ListenerRow>) => void
  readonly onRemove: () => void
}

const ListenerFieldset = ({
  index,
  row,
  servers,
  at,
  onChange,
  onRemove
}: ListenerFieldsetProps): ReactNode => {
  const pointer = `/reactionConfig/mcpEvents/${index}`
  const fields = ["server", "name", "arguments"].map((field) => `${pointer}/${field}`)
  const server = servers.find(({ name }) => name === row.server)
  const names = servers.map(({ name }) => name)
  // What is named stays named, also where the project has it no more.
  const choices = names.includes(row.server) ? names : [row.server, ...names]
  return (
    <fieldset className="m-0 grid min-w-0 gap-3 rounded-xl border border-line p-4">
      <legend className="sr-only">Event {index + 1}</legend>
      <div className="grid gap-3 sm:grid-cols-[minmax(0,1fr)_minmax(0,2fr)_auto] sm:items-start">
        <ChoiceField
          label="Server"
          hint="In this project"
          {...at(`${pointer}/server`)}
          value={row.server}
          choices={choices.map((name) => ({ value: name, label: name === "" ? "Select …" : name }))}
          onChange={(name) => onChange({ server: name })}
        />
        <TextField
          label="Event"
          hint={server === undefined ? "Event name on the server" : allowedWords(server)}
          {...at(`${pointer}/name`)}
          value={row.name}
          onChange={(name) => onChange({ name })}
          offered={server === undefined ? [] : knownEvents(server)}
          isMono
        />
        <Button onClick={onRemove} className="sm:mt-12.5">
          Remove
        </Button>
      </div>
      <div>
        <TextField
          label="Arguments"
          hint='JSON object of event arguments, e.g. {"type": "Order"}. Leave empty for all events.'
          {...at(`${pointer}/arguments`)}
          value={row.args}
          onChange={(args) => onChange({ args })}
          lines={2}
          isMono
        />
        <GroupFault label={`Event ${index + 1}`} place={at(pointer)} apart={fields} />
      </div>
    </fieldset>
  )
}
