/**
 * The browsers in which the person is signed in.
 */
import type { Session } from "@tropism/api/sessions-api"
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { Failure } from "../parts/failure.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { useToasts } from "../parts/toasts.tsx"
import { Visible } from "../parts/visible.tsx"
import { sessionsQuery } from "../server/settings-queries.ts"
import { countText } from "../words/amounts.ts"
import { browserText } from "./browser-words.ts"
import { Row, Rows, SectionHead } from "../parts/rows.tsx"
import { endOtherSessions, endSession } from "./settings-acts.ts"
import { Until } from "../parts/until.tsx"
import { useAct } from "../server/use-act.ts"

const touches = [sessionsQuery.queryKey]

export const SessionsTab = (): ReactNode => {
  const { principal } = useConsole()
  const show = useToasts()
  const { data, error } = useQuery(sessionsQuery)
  const others = data?.items.filter(({ isCurrent }) => !isCurrent).length ?? 0
  const endOthers = useAct({
    what: "End all other sessions",
    act: () => endOtherSessions(),
    touches,
    onDone: ({ ended }) =>
      show({ tone: "done", title: "Signed out elsewhere", sentence: `${countText(ended, "session")} ended.` })
  })
  return (
    <>
      <SectionHead
        lead={
          <>
            The browsers where <Visible text={principal.userId} /> is signed in. Ending a session signs that
            browser out.
          </>
        }
      >
        {others > 0 && (
          <Button disabled={endOthers.isBusy} onClick={() => endOthers.run(null)}>
            End all others
          </Button>
        )}
      </SectionHead>
      {error !== null && <Failure error={error} hasOlder={data !== undefined} />}
      {endOthers.error !== null && <Failure error={endOthers.error} />}
      {data === undefined && error === null && <Skeleton label="Loading sessions …" />}
      {data !== undefined && (
        <Rows label="Sessions" rows={data.items} keyOf={({ id }) => id}>
          {(session) => <SessionRow session={session} />}
        </Rows>
      )}
    </>
  )
}

const SessionRow = ({ session }: { readonly session: Session }): ReactNode => {
  const end = useAct({ what: "End session", act: (id: string) => endSession(id), touches })
  return (
    <Row
      title={
        <span data-is-current={session.isCurrent} title={session.browser ?? undefined}>
          <Visible text={browserText(session.browser)} />
          {session.isCurrent && <span className="font-normal text-leaf"> (this browser)</span>}
        </span>
      }
      actions={
        session.isCurrent ? (
          <span className="text-xs text-ink-faint">Sign out to end it</span>
        ) : (
          <Button size="small" disabled={end.isBusy} onClick={() => end.run(session.id)}>
            End
          </Button>
        )
      }
      below={end.error !== null && <Failure error={end.error} />}
    >
      Signed in <TimeAgo instant={session.createdAt} />
      {session.isCurrent
        ? ", in use now"
        : session.lastUsedAt !== null && (
            <>
              , used <TimeAgo instant={session.lastUsedAt} />
            </>
          )}
      , <Until instant={session.expiresAt} />
    </Row>
  )
}
