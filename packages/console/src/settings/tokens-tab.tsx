/**
 * The tokens with which programs and people come in: made, told once, ended.
 */
import type { Token } from "@tropism/api/members-api"
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/confirm-dialog.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { Failure } from "../parts/failure.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { tokensQuery } from "../server/settings-queries.ts"
import { visibleText } from "../words/visible-text.ts"
import { MakeToken } from "./make-token.tsx"
import { Row, Rows, SectionHead } from "../parts/rows.tsx"
import { revokeToken } from "./settings-acts.ts"
import { Until } from "../parts/until.tsx"
import { useAct } from "../server/use-act.ts"

export const TokensTab = (): ReactNode => {
  const { project, isAdmin } = useConsole()
  const { data, error } = useQuery(tokensQuery(project.id))
  const [isMaking, setIsMaking] = useState(false)
  return (
    <>
      <SectionHead
        lead={
          isAdmin
            ? "The tokens of all members. A token never exceeds its owner's role."
            : "Your tokens. A token never exceeds your role."
        }
      >
        <Button weight="primary" onClick={() => setIsMaking(true)}>
          Create token
        </Button>
      </SectionHead>
      {error !== null && <Failure error={error} hasOlder={data !== undefined} />}
      {data === undefined && error === null && <Skeleton label="Loading tokens …" />}
      {data?.items.length === 0 && (
        <EmptyState
          title="No tokens yet"
          command="npx tropism token create my-program"
          does="creates a token for you"
        >
          Programs authenticate to the API with a token. The token in the server's data folder is not listed.
        </EmptyState>
      )}
      {data !== undefined && (
        <Rows label="Tokens" rows={data.items} keyOf={({ id }) => id}>
          {(token) => <TokenRow token={token} />}
        </Rows>
      )}
      {typeof data?.nextCursor === "string" && (
        <p className="mt-3 text-xs text-ink-faint">Showing the latest {data.items.length}.</p>
      )}
      {isMaking && <MakeToken onClose={() => setIsMaking(false)} />}
    </>
  )
}

const TokenRow = ({ token }: { readonly token: Token }): ReactNode => {
  const { project } = useConsole()
  const [isAsking, setIsAsking] = useState(false)
  const name = token.name ?? "Unnamed token"
  const revoke = useAct({
    what: `Revoke ${visibleText(name)}`,
    act: (id: string) => revokeToken(project.id, id),
    touches: [[project.id, "tokens"]],
    onDone: () => setIsAsking(false)
  })
  return (
    <Row
      title={<Visible text={name} />}
      actions={
        <Button
          size="small"
          onClick={() => {
            revoke.forget()
            setIsAsking(true)
          }}
        >
          Revoke
        </Button>
      }
    >
      {token.role}, of <Visible text={token.userId} />,{" "}
      {token.projectIds.length === 1 ? "in this project" : `in ${token.projectIds.length} projects`}, created{" "}
      <TimeAgo instant={token.createdAt} />, <Until instant={token.expiresAt} />,{" "}
      {token.lastUsedAt === null ? (
        "never used"
      ) : (
        <>
          used <TimeAgo instant={token.lastUsedAt} />
        </>
      )}
      <ConfirmDialog
        isOpen={isAsking}
        title={`Revoke ${visibleText(name)}?`}
        verb="Revoke"
        staying="Keep it"
        isBusy={revoke.isBusy}
        error={revoke.error}
        onConfirm={() => revoke.run(token.id)}
        onClose={() => setIsAsking(false)}
      >
        The token stops working in this project immediately and its streams are closed. This cannot be undone.
      </ConfirmDialog>
    </Row>
  )
}
