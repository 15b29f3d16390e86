/**
 * Gives a webhook another token; the one before ends at once, or later, so that a sender can be changed without a gap.
 */
import type { OpenedWebhook } from "@tropism/domain/webhook"
import { type ReactNode, useState } from "react"
import { FormDialog } from "../parts/form-dialog.tsx"
import { ChoiceField } from "../parts/form-fields.tsx"
import { useWrite } from "../server/use-write.ts"

const graces = [
  { value: "3600", label: "an hour" },
  { value: "86400", label: "a day" },
  { value: "604800", label: "a week" },
  { value: "0", label: "not at all (leaked)" }
]

interface RotateWebhookProps {
  /** The address of the webhook behind the project's. */
  readonly path: string
  readonly onMade: (webhook: OpenedWebhook) => void
  readonly onClose: () => void
}

export const RotateWebhook = ({ path, onMade, onClose }: RotateWebhookProps): ReactNode => {
  const [grace, setGrace] = useState("3600")
  const { run, isBusy, error } = useWrite<OpenedWebhook>("Rotate webhook token", onMade)
  return (
    <FormDialog
      title="Rotate token"
      verb="Rotate token"
      isBusy={isBusy}
      error={error}
      pointers={["/graceSeconds"]}
      onSubmit={() => run({ path: `${path}/rotate`, method: "POST", body: { graceSeconds: Number(grace) } })}
      onClose={onClose}
    >
      <ChoiceField
        label="Previous token stays valid for"
        pointer="/graceSeconds"
        error={error}
        value={grace}
        choices={graces}
        onChange={setGrace}
      />
    </FormDialog>
  )
}
