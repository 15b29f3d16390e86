/**
 * Adds a foreign MCP server, or changes what it is said to be.
 */
import type { McpServer, McpTransport } from "@tropism/domain/mcp-server"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { CheckField, ChoiceField, TextField } from "../parts/form-fields.tsx"
import { useAct } from "../server/use-act.ts"
import { draftOf, inputOf, type ServerDraft } from "./server-words.ts"
import { addServer, changeServer } from "./settings-acts.ts"

interface ServerFormProps {
  /** The server that is changed; undefined for a new one. */
  readonly server?: McpServer
  readonly onDone: (server: McpServer) => void
  readonly onClose: () => void
}

export const ServerForm = ({ server, onDone, onClose }: ServerFormProps): ReactNode => {
  const { project } = useConsole()
  const [draft, setDraft] = useState(() => draftOf(server))
  const { run, isBusy, error } = useAct<ServerDraft, McpServer>({
    act: (given, key) =>
      server === undefined
        ? addServer(project.id, inputOf(given), key)
        : changeServer(project.id, server.id, inputOf(given)),
    touches: [
      [project.id, "mcp-servers"],
      [project.id, "health"]
    ],
    onDone
  })
  const change = (changes: Partial<ServerDraft>) => setDraft((before) => ({ ...before, ...changes }))
  const text: TextOf = (name) => ({
    value: draft[name],
    onChange: (value) => change({ [name]: value }),
    error
  })
  return (
    <FormDialog
      title={server === undefined ? "Add an MCP server" : `Change ${server.name}`}
      verb={server === undefined ? "Add" : "Save"}
      isBusy={isBusy}
      error={error}
      pointers={["/name", "/transport/url", "/transport/command", "/allowedTools", "/allowedEvents"]}
      onSubmit={() => run(draft)}
      onClose={onClose}
    >
      <TextField
        {...text("name")}
        label="Name"
        hint="Agents call its tools name.tool"
        pointer="/name"
        hasFirstFocus
      />
      <ChoiceField
        label="Reached"
        value={draft.type}
        choices={[
          { value: "http", label: "At an address (Streamable HTTP)" },
          { value: "stdio", label: "As a program on the machine of the server" }
        ]}
        onChange={(type) => change({ type: type as McpTransport["type"] })}
      />
      <TransportFields type={draft.type} text={text} />
      <TextField
        {...text("allowedTools")}
        label="Tools that agents may be given"
        hint="Names, with * for any rest; none are given where nothing stands here"
        pointer="/allowedTools"
        lines={2}
        isMono
      />
      <TextField
        {...text("allowedEvents")}
        label="Events that agents may hear"
        hint="Names, with * for any rest; none are heard where nothing stands here"
        pointer="/allowedEvents"
        lines={2}
        isMono
      />
      <CheckField
        label="What its tools answer is untrusted"
        hint="Runs that read it may do less from then on"
        isChecked={draft.isUntrusted}
        onChange={(isUntrusted) => change({ isUntrusted })}
      />
    </FormDialog>
  )
}

/** What a field of a text in the draft is given. */
type TextOf = (name: Exclude<keyof ServerDraft, "isUntrusted">) => {
  readonly value: string
  readonly onChange: (value: string) => void
  readonly error: unknown
}

interface TransportFieldsProps {
  readonly type: McpTransport["type"]
  readonly text: TextOf
}

const TransportFields = ({ type, text }: TransportFieldsProps): ReactNode =>
  type === "http" ? (
    <>
      <TextField {...text("url")} label="Address" type="url" pointer="/transport/url" isMono />
      <TextField
        {...text("headers")}
        label="Headers"
        hint="One a line. A secret is named, never typed: Authorization: Bearer TROPISM_SECRET_SHOP"
        lines={2}
        isMono
      />
    </>
  ) : (
    <>
      <TextField {...text("command")} label="Program" pointer="/transport/command" isMono />
      <TextField {...text("args")} label="Arguments" hint="One a line" lines={2} isMono />
      <TextField
        {...text("env")}
        label="Environment"
        hint="One a line. A secret is named, never typed: API_KEY=TROPISM_SECRET_SHOP"
        lines={2}
        isMono
      />
    </>
  )
