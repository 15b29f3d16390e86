/**
 * The addresses at which other systems wake an agent: made, given another token, ended; what opens one is shown once.
 */
import type { Agent } from "@tropism/domain/agent"
import type { OpenedWebhook, Webhook } from "@tropism/domain/webhook"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/confirm-dialog.tsx"
import { CopyButton } from "../parts/copy-button.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { Failure } from "../parts/failure.tsx"
import { OnlyAdmins, Row, Rows, SectionHead } from "../parts/rows.tsx"
import { ShownOnce } from "../parts/shown-once.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Until } from "../parts/until.tsx"
import { Visible } from "../parts/visible.tsx"
import { agentPath, webhooksQuery } from "../server/agent-queries.ts"
import { useWrite } from "../server/use-write.ts"
import { visibleText } from "../words/visible-text.ts"
import { MakeWebhook } from "./make-webhook.tsx"
import { RotateWebhook } from "./rotate-webhook.tsx"

const linkClass = "font-medium text-leaf underline-offset-2 hover:underline"

export const AgentWebhooks = ({ agent }: { readonly agent: Agent }): ReactNode => {
  const { project, isAdmin } = useConsole()
  const { data, error } = useQuery(webhooksQuery(project.id, agent.id))
  const [isMaking, setIsMaking] = useState(false)
  const [opened, setOpened] = useState<OpenedWebhook>()
  return (
    <>
      <SectionHead lead="Other systems wake the agent by a signed delivery to one of these addresses, as Standard Webhooks says.">
        {isAdmin ? (
          <Button weight="primary" onClick={() => setIsMaking(true)}>
            Make a webhook
          </Button>
        ) : (
          <OnlyAdmins>Admins make and end webhooks.</OnlyAdmins>
        )}
      </SectionHead>
      {error !== null && <Failure error={error} hasOlder={data !== undefined} triesAgain />}
      {data === undefined && error === null && <Skeleton label="Reading the webhooks …" />}
      {data?.items.length === 0 && (
        <EmptyState
          title="No webhook yet"
          command={`npx tropism webhooks create ${agent.name}`}
          does="makes one and shows its secret"
        >
          Nobody outside can wake this agent until it has one.
        </EmptyState>
      )}
      {data !== undefined && (
        <Rows label="Webhooks" rows={data.items} keyOf={({ id }) => id}>
          {(webhook) => <WebhookRow webhook={webhook} onOpened={setOpened} />}
        </Rows>
      )}
      {typeof data?.nextCursor === "string" && (
        <p className="mt-3 text-xs text-ink-faint">The newest {data.items.length} are listed.</p>
      )}
      <p className="mt-4 text-sm">
        <Link to="/runs" search={{ agentId: agent.id, trigger: "webhook" }} className={linkClass}>
          What deliveries began
        </Link>
      </p>
      {isMaking && (
        <MakeWebhook
          agentId={agent.id}
          onMade={(webhook) => {
            setIsMaking(false)
            setOpened(webhook)
          }}
          onClose={() => setIsMaking(false)}
        />
      )}
      {opened !== undefined && <Opened webhook={opened} onClose={() => setOpened(undefined)} />}
    </>
  )
}

interface WebhookRowProps {
  readonly webhook: Webhook
  readonly onOpened: (webhook: OpenedWebhook) => void
}

const WebhookRow = ({ webhook, onOpened }: WebhookRowProps): ReactNode => {
  const { isAdmin } = useConsole()
  const [asked, setAsked] = useState<"rotate" | "revoke">()
  const close = (): void => setAsked(undefined)
  const revoke = useWrite(`End ${visibleText(webhook.name)}`, close)
  const path = agentPath(webhook.agentId, `/webhooks/${encodeURIComponent(webhook.id)}`)
  return (
    <Row
      title={<Visible text={webhook.name} />}
      actions={
        isAdmin && (
          <>
            <Button size="small" onClick={() => setAsked("rotate")}>
              New token
            </Button>
            <Button
              size="small"
              onClick={() => {
                revoke.forget()
                setAsked("revoke")
              }}
            >
              End it
            </Button>
          </>
        )
      }
    >
      <span className="flex min-w-0 items-center gap-1">
        <code className="min-w-0 font-mono select-all">{webhook.url}</code>
        <CopyButton text={webhook.url} label={`the address of ${visibleText(webhook.name)}`} />
      </span>
      At most {webhook.ratePerMinute} a minute,{" "}
      {webhook.untrusted && "untrusted, so what it begins may only suggest, "}made{" "}
      <TimeAgo instant={webhook.createdAt} /> by <Visible text={webhook.createdBy} />,{" "}
      {webhook.lastDeliveryAt === null ? (
        "nothing was delivered yet"
      ) : (
        <>
          last delivery <TimeAgo instant={webhook.lastDeliveryAt} />
        </>
      )}
      {webhook.previousTokenUntil !== null && (
        <>
          , the token before <Until instant={webhook.previousTokenUntil} />
        </>
      )}
      {asked === "rotate" && (
        <RotateWebhook
          path={path}
          onMade={(made) => {
            close()
            onOpened(made)
          }}
          onClose={close}
        />
      )}
      <ConfirmDialog
        isOpen={asked === "revoke"}
        title={`End ${visibleText(webhook.name)}?`}
        verb="End it"
        staying="Keep it"
        isBusy={revoke.isBusy}
        error={revoke.error}
        onConfirm={() => revoke.run({ path, method: "DELETE" })}
        onClose={close}
      >
        Whoever delivers to it is refused from the next delivery on. It cannot be brought back.
      </ConfirmDialog>
    </Row>
  )
}

interface OpenedProps {
  readonly webhook: OpenedWebhook
  readonly onClose: () => void
}

const Opened = ({ webhook, onClose }: OpenedProps): ReactNode => (
  <ShownOnce
    title="The webhook is open"
    secrets={[
      { label: "the address", text: webhook.url },
      { label: "the signing secret", text: webhook.signingSecret },
      { label: "the token", text: webhook.token }
    ]}
    onClose={onClose}
  >
    <Visible text={webhook.name} />: give these to whoever delivers. Copy them now: nobody is shown the
    secrets again.
  </ShownOnce>
)
