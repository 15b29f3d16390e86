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
      <SectionHead lead="Other systems trigger the agent with a signed delivery to one of these addresses (Standard Webhooks).">
        {isAdmin ? (
          <Button weight="primary" onClick={() => setIsMaking(true)}>
            Create webhook
          </Button>
        ) : (
          <OnlyAdmins>Only admins can create and revoke webhooks.</OnlyAdmins>
        )}
      </SectionHead>
      {error !== null && <Failure error={error} hasOlder={data !== undefined} triesAgain />}
      {data === undefined && error === null && <Skeleton label="Loading webhooks …" />}
      {data?.items.length === 0 && (
        <EmptyState
          title="No webhooks yet"
          command={`npx tropism webhooks create ${agent.name}`}
          does="creates a webhook and shows its secret"
        >
          Other systems cannot trigger this agent until you create a webhook.
        </EmptyState>
      )}
      {data !== undefined && (
        <Rows label="Webhooks" rows={data.items} keyOf={({ id }) => id}>
          {(webhook) => <WebhookRow webhook={webhook} onOpened={setOpened} />}
        </Rows>
      )}
      {typeof data?.nextCursor === "string" && (
        <p className="mt-3 text-xs text-ink-faint">Showing the latest {data.items.length}.</p>
      )}
      <p className="mt-4 text-sm">
        <Link to="/runs" search={{ agentId: agent.id, trigger: "webhook" }} className={linkClass}>
          Runs from deliveries
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
  const revoke = useWrite(`Revoke ${visibleText(webhook.name)}`, close)
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
              Revoke
            </Button>
          </>
        )
      }
    >
      <span className="flex min-w-0 items-center gap-1">
        <code className="min-w-0 font-mono select-all">{webhook.url}</code>
        <CopyButton text={webhook.url} label={`the address of ${visibleText(webhook.name)}`} />
      </span>
      Max {webhook.ratePerMinute} per minute, {webhook.untrusted && "untrusted (its runs can only suggest), "}
      created <TimeAgo instant={webhook.createdAt} /> by <Visible text={webhook.createdBy} />,{" "}
      {webhook.lastDeliveryAt === null ? (
        "no deliveries yet"
      ) : (
        <>
          last delivery <TimeAgo instant={webhook.lastDeliveryAt} />
        </>
      )}
      {webhook.previousTokenUntil !== null && (
        <>
          , previous token <Until instant={webhook.previousTokenUntil} />
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
        title={`Revoke ${visibleText(webhook.name)}?`}
        verb="Revoke"
        staying="Keep it"
        isBusy={revoke.isBusy}
        error={revoke.error}
        onConfirm={() => revoke.run({ path, method: "DELETE" })}
        onClose={close}
      >
        Deliveries to this webhook are refused from now on. This cannot be undone.
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
    title="Webhook created"
    secrets={[
      { label: "the address", text: webhook.url },
      { label: "the signing secret", text: webhook.signingSecret },
      { label: "the token", text: webhook.token }
    ]}
    onClose={onClose}
  >
    <Visible text={webhook.name} />: give these to the sender. Copy them now: the secrets are not shown again.
  </ShownOnce>
)
