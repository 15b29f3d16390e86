/**
 * Makes a webhook of an agent; the answer is the only one that shows what opens it.
 */
import { type OpenedWebhook, webhookBounds } from "@tropism/domain/webhook"
import { type ReactNode, useState } from "react"
import { FormDialog } from "../parts/form-dialog.tsx"
import { CheckField, TextField } from "../parts/form-fields.tsx"
import { agentPath } from "../server/agent-queries.ts"
import { useWrite } from "../server/use-write.ts"
import { numberSent } from "../words/number-sent.ts"

interface MakeWebhookProps {
  readonly agentId: string
  readonly onMade: (webhook: OpenedWebhook) => void
  readonly onClose: () => void
}

export const MakeWebhook = ({ agentId, onMade, onClose }: MakeWebhookProps): ReactNode => {
  const [name, setName] = useState("")
  const [rate, setRate] = useState(String(webhookBounds.ratePerMinute))
  const [untrusted, setUntrusted] = useState(true)
  const { run, isBusy, error } = useWrite<OpenedWebhook>("Create webhook", onMade)
  return (
    <FormDialog
      title="Create webhook"
      verb="Create"
      isBusy={isBusy}
      error={error}
      pointers={["/name", "/ratePerMinute"]}
      onSubmit={() =>
        run({
          path: agentPath(agentId, "/webhooks"),
          method: "POST",
          body: {
            name,
            ratePerMinute: rate.trim() === "" ? null : numberSent(rate),
            untrusted
          }
        })
      }
      onClose={onClose}
    >
      <TextField
        label="Name"
        hint="The sending system, so you can tell later whether it is still needed."
        pointer="/name"
        error={error}
        value={name}
        onChange={setName}
        hasFirstFocus
      />
      <TextField
        label="Max deliveries per minute"
        type="number"
        pointer="/ratePerMinute"
        error={error}
        value={rate}
        onChange={setRate}
      />
      <CheckField
        label="Treat deliveries as untrusted"
        hint="Runs it triggers can only suggest."
        isChecked={untrusted}
        onChange={setUntrusted}
      />
    </FormDialog>
  )
}
