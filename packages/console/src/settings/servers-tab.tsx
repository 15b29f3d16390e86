/**
 * The foreign MCP servers of the project: whether each answers, and what it offers.
 */
import { type McpServer, type McpSignIn, wasReached } from "@tropism/domain/mcp-server"
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/confirm-dialog.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { Failure } from "../parts/failure.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { useAddress } from "../parts/use-address.ts"
import { Visible } from "../parts/visible.tsx"
import { mcpServersQuery } from "../server/settings-queries.ts"
import { countText } from "../words/amounts.ts"
import { cutText } from "../words/cut-text.ts"
import { OnlyAdmins, Row, Rows, SectionHead } from "../parts/rows.tsx"
import { ServerForm } from "./server-form.tsx"
import { ServerTools } from "./server-tools.tsx"
import { changeServer, removeServer, signInTo, signOutOf, testServer } from "./settings-acts.ts"
import { useAct } from "../server/use-act.ts"

export const ServersTab = (): ReactNode => {
  const { project, isAdmin } = useConsole()
  const { data, error } = useQuery(mcpServersQuery(project.id))
  const [, change] = useAddress()
  const [isAdding, setIsAdding] = useState(false)
  return (
    <>
      <SectionHead lead="MCP servers that provide tools and events to agents. A test connects and trusts the current tool definitions.">
        {isAdmin ? (
          <Button data-testid="add-server" onClick={() => setIsAdding(true)}>
            Add MCP server
          </Button>
        ) : (
          <OnlyAdmins>Only admins can add, test, change and remove servers.</OnlyAdmins>
        )}
      </SectionHead>
      {isAdding && (
        <ServerForm
          onDone={({ id }) => {
            setIsAdding(false)
            change({ server: id })
          }}
          onClose={() => setIsAdding(false)}
        />
      )}
      {error !== null && <Failure error={error} hasOlder={data !== undefined} triesAgain />}
      {data === undefined && error === null && <Skeleton label="Loading MCP servers …" />}
      {data?.items.length === 0 && (
        <EmptyState
          title="No MCP servers yet"
          command="npx tropism mcp-servers --help"
          does="shows how to add one"
        >
          Servers you add here or on the command line give agents the tools you allow.
        </EmptyState>
      )}
      {data !== undefined && (
        <Rows label="MCP servers" rows={data.items} keyOf={({ id }) => id}>
          {(server) => <ServerRow server={server} />}
        </Rows>
      )}
    </>
  )
}

const ServerRow = ({ server }: { readonly server: McpServer }): ReactNode => {
  const { project, isAdmin } = useConsole()
  const [{ server: chosen }, change] = useAddress()
  const isOpen = chosen === server.id
  const touches = [
    [project.id, "mcp-servers"],
    [project.id, "health"]
  ]
  const test = useAct({
    what: `Test ${server.name}`,
    act: (id: string, key) => testServer(project.id, id, key),
    touches
  })
  const turn = useAct({
    what: (isToBe: boolean) => `${isToBe ? "Enable" : "Disable"} ${server.name}`,
    act: (enabled: boolean) => changeServer(project.id, server.id, { enabled }),
    touches
  })
  const isBusy = test.isBusy || turn.isBusy
  const refusal = test.error ?? turn.error
  return (
    <Row
      title={<Visible text={server.name} />}
      actions={
        <>
          <Button
            size="small"
            aria-expanded={isOpen}
            onClick={() => change({ server: isOpen ? undefined : server.id })}
          >
            Tools
          </Button>
          {server.signIn !== null && (isAdmin || server.signIn.per === "member") && (
            <SignIn server={server} signIn={server.signIn} touches={touches} />
          )}
          {isAdmin && (
            <>
              <Button size="small" disabled={isBusy} onClick={() => test.run(server.id)}>
                {test.isBusy ? "Testing …" : "Test"}
              </Button>
              <Button size="small" disabled={isBusy} onClick={() => turn.run(!server.enabled)}>
                {server.enabled ? "Disable" : "Enable"}
              </Button>
              <ChangeServer server={server} />
              <RemoveServer server={server} touches={touches} />
            </>
          )}
        </>
      }
      below={
        <>
          {refusal !== null && <Failure error={refusal} />}
          {isOpen && <ServerTools server={server} />}
        </>
      }
    >
      <span
        data-state={server.enabled ? (wasReached(server) ? "answers" : "failed") : "disabled"}
        data-allowed={allowedTools(server).length}
        data-changed={changedTools(server).length}
      >
        {stateText(server)}
      </span>
      {server.signIn !== null && (
        <span className="mt-1 block" data-sign-in={server.signIn.status}>
          <Visible text={signInText(server.signIn)} />
        </span>
      )}
      {server.lastError !== null && (
        <span className="mt-1 block border-l-2 border-line-strong pl-3">
          <Visible text={cutText(server.lastError, 20, 1_000)} />
        </span>
      )}
    </Row>
  )
}

interface SignInProps {
  readonly server: McpServer
  readonly signIn: McpSignIn
  readonly touches: ReadonlyArray<ReadonlyArray<unknown>>
}

/** Leads to the authorization server, which leads back; or forgets what came of it. */
const SignIn = ({ server, signIn, touches }: SignInProps): ReactNode => {
  const { project } = useConsole()
  const begin = useAct({
    what: `Sign in to ${server.name}`,
    act: (id: string, key) => signInTo(project.id, id, key),
    touches: [],
    onDone: ({ url }) => window.location.assign(url)
  })
  const end = useAct({
    what: `Sign out of ${server.name}`,
    act: (id: string) => signOutOf(project.id, id),
    touches
  })
  const refusal = begin.error ?? end.error
  const isBusy = begin.isBusy || end.isBusy
  const isIn = signIn.status === "signedIn"
  return (
    <>
      <Button size="small" disabled={isBusy} onClick={() => begin.run(server.id)}>
        {isIn ? "Sign in again" : "Sign in"}
      </Button>
      {isIn && (
        <Button size="small" disabled={isBusy} onClick={() => end.run(server.id)}>
          Sign out
        </Button>
      )}
      {refusal !== null && <Failure error={refusal} />}
    </>
  )
}

const signInText = ({ detail, per, signedInBy, status }: McpSignIn): string => {
  if (status === "signedIn")
    return per === "member"
      ? "You are signed in; each member signs in separately."
      : `Signed in by ${signedInBy ?? "someone"} for all runs.`
  const why = detail === null ? "" : ` ${cutText(detail, 20, 1_000)}`
  return per === "member"
    ? `You are not signed in; each member signs in separately.${why}`
    : `Not signed in.${why}`
}

const ChangeServer = ({ server }: { readonly server: McpServer }): ReactNode => {
  const [isChanging, setIsChanging] = useState(false)
  const close = () => setIsChanging(false)
  return (
    <>
      <Button size="small" onClick={() => setIsChanging(true)}>
        Change
      </Button>
      {isChanging && <ServerForm server={server} onDone={close} onClose={close} />}
    </>
  )
}

interface RemoveServerProps {
  readonly server: McpServer
  readonly touches: ReadonlyArray<ReadonlyArray<unknown>>
}

const RemoveServer = ({ server, touches }: RemoveServerProps): ReactNode => {
  const { project } = useConsole()
  const [isAsking, setIsAsking] = useState(false)
  const remove = useAct({
    what: `Remove ${server.name}`,
    act: (id: string) => removeServer(project.id, id),
    touches
  })
  return (
    <>
      <Button size="small" onClick={() => setIsAsking(true)}>
        Remove
      </Button>
      <ConfirmDialog
        isOpen={isAsking}
        title={`Remove ${server.name}?`}
        verb="Remove"
        staying="Keep it"
        isBusy={remove.isBusy}
        error={remove.error}
        onConfirm={() => remove.run(server.id)}
        onClose={() => setIsAsking(false)}
      >
        Agents lose its tools, and its connections are closed.
      </ConfirmDialog>
    </>
  )
}

const allowedTools = ({ tools }: McpServer) => tools.filter(({ isAllowed }) => isAllowed)

const changedTools = (server: McpServer) => allowedTools(server).filter(({ changedAt }) => changedAt !== null)

const stateText = (server: McpServer): string => {
  const allowed = allowedTools(server).length
  const changed = changedTools(server).length
  const state = server.enabled ? (wasReached(server) ? "Connected" : "Not available") : "Disabled"
  const words =
    changed === 0
      ? ""
      : ` ${countText(changed, "tool")} changed since the last check. Test the server to trust them.`
  return `${state}; allowed for agents: ${allowed} of ${countText(server.tools.length, "tool")}.${words}`
}
