/**
 * Adds a foreign MCP server, or changes what it is said to be.
 *
 * Only what was changed is sent, and what another admin changed meanwhile in the same field is told first.
 */
import type { McpServer, McpTransport } from "@tropism/domain/mcp-server"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { CheckField, ChoiceField, TextField } from "../parts/form-fields.tsx"
import { MovedNotice } from "../parts/moved-notice.tsx"
import { Visible } from "../parts/visible.tsx"
import { useAct } from "../server/use-act.ts"
import { cutText } from "../words/cut-text.ts"
import { inputOf, type ServerDraft } from "./server-words.ts"
import { addServer, saveServer } from "./settings-acts.ts"
import {
  argumentsFault,
  fieldLabels,
  keepWritten,
  movedFields,
  nothingWritten,
  nowSentence,
  reachedWords,
  shownOf,
  signInWords,
  writeOver,
  type Written
} from "./written-server.ts"

interface ServerFormProps {
  /** The server that is changed, as it is by now; undefined for a new one. */
  readonly server?: McpServer
  readonly onDone: (server: McpServer) => void
  readonly onClose: () => void
}

export const ServerForm = ({ server, onDone, onClose }: ServerFormProps): ReactNode => {
  const { project } = useConsole()
  const [written, setWritten] = useState(nothingWritten)
  const { run, isBusy, error, forget } = useAct<Written, McpServer>({
    what: server === undefined ? "Add MCP server" : `Change ${server.name}`,
    act: (given, key) =>
      server === undefined
        ? addServer(project.id, inputOf(shownOf(given, undefined)), key)
        : saveServer(project.id, server.id, given),
    touches: [
      [project.id, "mcp-servers"],
      [project.id, "health"]
    ],
    onDone
  })
  const shown = shownOf(written, server)
  const moved =
    server === undefined || isBusy
      ? []
      : movedFields(written, server).map((field) => nowSentence(field, server))
  const fault = argumentsFault(written, server)
  return (
    <FormDialog
      title={server === undefined ? "Add MCP server" : `Change ${server.name}`}
      verb={server === undefined ? "Add" : "Save"}
      isBusy={isBusy}
      isReady={moved.length === 0 && fault === undefined}
      error={moved.length === 0 ? error : null}
      pointers={[
        "/name",
        "/transport/url",
        "/transport/command",
        "/authorization/clientId",
        "/authorization/clientSecret",
        "/authorization/scopes",
        "/allowedTools",
        "/allowedEvents"
      ]}
      onSubmit={() => run(written)}
      onClose={onClose}
    >
      {server !== undefined && moved.length > 0 && (
        <Moved
          sentences={moved}
          onKeep={() => {
            forget()
            setWritten(keepWritten(written, server))
          }}
        />
      )}
      <Fields
        shown={shown}
        error={error}
        fault={fault}
        onChange={(changes) => setWritten((before) => writeOver(before, server, changes))}
      />
    </FormDialog>
  )
}

interface MovedProps {
  /** What the fields are by now. */
  readonly sentences: ReadonlyArray<string>
  readonly onKeep: () => void
}

const Moved = ({ sentences, onKeep }: MovedProps): ReactNode => (
  <MovedNotice
    actions={
      <Button size="small" onClick={onKeep}>
        Keep mine and overwrite
      </Button>
    }
  >
    <p>Someone else changed this. Current value:</p>
    <ul aria-label="Current value" className="m-0 list-none p-0">
      {sentences.map((sentence) => (
        <li key={sentence} className="[overflow-wrap:anywhere]">
          <Visible text={cutText(sentence, 6, 400)} />
        </li>
      ))}
    </ul>
  </MovedNotice>
)

interface FieldsProps {
  readonly shown: ServerDraft
  readonly error: unknown
  /** What is wrong with the arguments. */
  readonly fault: string | undefined
  readonly onChange: (changes: Partial<ServerDraft>) => void
}

const Fields = ({ shown, error, fault, onChange }: FieldsProps): ReactNode => {
  const text: TextOf = (name) => ({
    label: fieldLabels[name],
    value: shown[name],
    onChange: (value) => onChange({ [name]: value }),
    error
  })
  return (
    <>
      <TextField {...text("name")} hint="Tools are named name.tool" pointer="/name" hasFirstFocus />
      <ChoiceField
        label={fieldLabels.type}
        value={shown.type}
        choices={Object.entries(reachedWords).map(([value, label]) => ({ value, label }))}
        onChange={(type) => onChange({ type: type as McpTransport["type"] })}
      />
      <TransportFields type={shown.type} text={text} fault={fault} />
      {shown.type === "http" && <SignInFields signIn={shown.signIn} text={text} onChange={onChange} />}
      <TextField
        {...text("allowedTools")}
        hint="Tool names; * matches any. Leave empty to allow none."
        pointer="/allowedTools"
        lines={2}
        isMono
      />
      <TextField
        {...text("allowedEvents")}
        hint="Event names; * matches any. Leave empty to allow none."
        pointer="/allowedEvents"
        lines={2}
        isMono
      />
      <CheckField
        label={fieldLabels.isUntrusted}
        hint="Runs that read it can only suggest from then on"
        isChecked={shown.isUntrusted}
        onChange={(isUntrusted) => onChange({ isUntrusted })}
      />
    </>
  )
}

/** What a field of a text in the draft is given. */
type TextOf = (name: Exclude<keyof ServerDraft, "isUntrusted" | "signIn" | "type">) => {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly error: unknown
}

interface SignInFieldsProps extends Pick<FieldsProps, "onChange"> {
  readonly signIn: ServerDraft["signIn"]
  readonly text: TextOf
}

/** How a server that wants OAuth is signed in to. */
const SignInFields = ({ signIn, text, onChange }: SignInFieldsProps): ReactNode => (
  <>
    <ChoiceField
      label={fieldLabels.signIn}
      value={signIn}
      choices={Object.entries(signInWords).map(([value, label]) => ({ value, label }))}
      onChange={(chosen) => onChange({ signIn: chosen as ServerDraft["signIn"] })}
    />
    {signIn !== "" && (
      <>
        <TextField
          {...text("clientId")}
          hint="A registered OAuth client. Leave empty to register one automatically."
          pointer="/authorization/clientId"
          isMono
        />
        <TextField
          {...text("clientSecret")}
          hint="Secret name, not the value: TROPISM_SECRET_SHOP"
          pointer="/authorization/clientSecret"
          isMono
        />
        <TextField
          {...text("scopes")}
          hint="Overrides the scopes that the server names"
          pointer="/authorization/scopes"
          lines={2}
          isMono
        />
      </>
    )}
  </>
)

interface TransportFieldsProps {
  readonly type: McpTransport["type"]
  readonly text: TextOf
  readonly fault: string | undefined
}

const TransportFields = ({ type, text, fault }: TransportFieldsProps): ReactNode =>
  type === "http" ? (
    <>
      <TextField {...text("url")} type="url" pointer="/transport/url" isMono />
      <TextField
        {...text("headers")}
        hint="One per line. Use secret names, not values: Authorization: Bearer TROPISM_SECRET_SHOP"
        lines={2}
        isMono
      />
    </>
  ) : (
    <>
      <TextField {...text("command")} pointer="/transport/command" isMono />
      <TextField {...text("args")} hint="One per line" fault={fault} lines={2} isMono />
      <TextField
        {...text("env")}
        hint="One per line. Use secret names, not values: API_KEY=TROPISM_SECRET_SHOP"
        lines={2}
        isMono
      />
    </>
  )
