/**
 * The form of an agent, for a new one and for one that is changed.
 *
 * What cannot be sent and what the server refuses is said at its field, and all
 * of it before anything is asked. Who leaves with changes that are not saved is
 * asked, and so is who enables an agent for which nobody can think.
 */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, type SubmitEvent, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { AskBeforeLeaving } from "../parts/ask-before-leaving.tsx"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/confirm-dialog.tsx"
import { Failure } from "../parts/failure.tsx"
import { FieldLabels } from "../parts/field-labels.tsx"
import { CheckField } from "../parts/form-fields.tsx"
import { Visible } from "../parts/visible.tsx"
import { Problem } from "../server/problem.ts"
import { modelsQuery } from "../server/settings-queries.ts"
import { type AgentDraft, draftAfterSave, sentOf } from "./agent-draft.ts"
import { definitionFaults } from "./definition-faults.ts"
import type { DraftFields } from "./draft-fields.ts"
import type { Sent } from "./draft-texts.ts"
import { FlowFields } from "./flow-fields.tsx"
import { FormSection } from "./form-section.tsx"
import { IdentityFields } from "./identity-fields.tsx"
import { LimitFields } from "./limit-fields.tsx"
import { missingOf, wouldWakeInVain } from "./missing-model.ts"
import { ModelFields } from "./model-fields.tsx"
import { PowerFields } from "./power-fields.tsx"
import { ReviewFields } from "./review-fields.tsx"
import { TriggerFields } from "./trigger-fields.tsx"
import { WindowFields } from "./window-fields.tsx"
import { useClosed } from "../parts/use-closed.ts"
import { useFaultFocus } from "../parts/use-fault-focus.ts"

interface AgentFormProps {
  /** What it begins with; another one is what its last save made. */
  readonly initial: AgentDraft
  /** What is known of the model of the agent as it is saved; none of a new one. */
  readonly missing?: string | null
  readonly verb: string
  readonly isBusy: boolean
  readonly error: unknown
  /** It goes once it is saved: what it makes has a page of its own. */
  readonly goes?: boolean
  /** What it makes is made, and nothing in it is lost any more. */
  readonly isMade?: boolean
  readonly onSave: (sent: Sent) => void
  /** Something is written into it. */
  readonly onTouch?: () => void
}

export const AgentForm = (props: AgentFormProps): ReactNode => {
  const { initial, verb, isBusy, error, goes = false, isMade = false, onSave } = props
  const { project } = useConsole()
  const { data: models } = useQuery(modelsQuery(project.id))
  const [draft, setDraft] = useState(initial)
  const [unfit, setUnfit] = useState<Problem>()
  const [asked, setAsked] = useState<Sent>()
  const [base, setBase] = useState(initial)
  const [saving, setSaving] = useState(initial)
  if (base !== initial) {
    setBase(initial)
    setDraft(draftAfterSave(draft, saving, initial))
  }
  const refused = unfit ?? error
  const isClosed = isBusy && goes
  const fields: DraftFields = {
    draft,
    at: (pointer) => ({ pointer, error: refused }),
    change: (changes) => {
      if (isClosed) return
      props.onTouch?.()
      setDraft((now) => ({ ...now, ...changes }))
    }
  }
  const saved = props.missing === undefined ? undefined : { draft: initial, missing: props.missing }
  const form = useFaultFocus(refused)
  useClosed(form, isClosed)
  const missing = missingOf(draft, saved, models)
  const save = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const { sent, faults } = sentOf(draft)
    const errors = [...faults, ...definitionFaults(sent, saved && sentOf(initial).sent)]
    setUnfit(
      errors.length === 0 ? undefined : new Problem({ status: 422, document: { title: unfitTitle, errors } })
    )
    if (errors.length > 0) return
    setSaving(draft)
    if (wouldWakeInVain(draft, saved, missing)) setAsked(sent)
    else onSave(sent)
  }
  return (
    <form ref={form} onSubmit={save} className="grid max-w-3xl gap-8" aria-label="Agent">
      <FieldLabels>
        <Sections {...fields} missing={missing} />
        {refused !== null && <Failure error={refused} />}
      </FieldLabels>
      <p>
        <Button type="submit" weight="primary" disabled={isBusy}>
          {verb}
        </Button>
      </p>
      <ConfirmDialog
        isOpen={asked !== undefined}
        title="Enable without a model?"
        verb="Save enabled"
        staying="Keep editing"
        onConfirm={() => {
          setAsked(undefined)
          if (asked !== undefined) onSave(asked)
        }}
        onClose={() => setAsked(undefined)}
      >
        Every run would fail. <Visible text={missing ?? ""} />
      </ConfirmDialog>
      <AskBeforeLeaving isUnsaved={draft !== initial && !isMade} />
    </form>
  )
}

const unfitTitle = "Fix the errors below to save"

interface SectionsProps extends DraftFields {
  /** Why no model can be asked as the draft stands; null where one can. */
  readonly missing: string | null
}

const Sections = ({ missing, ...fields }: SectionsProps): ReactNode => (
  <>
    <FormSection title="General">
      <IdentityFields {...fields} />
    </FormSection>
    <FormSection title="Trigger">
      <TriggerFields {...fields} />
    </FormSection>
    <FormSection title="Workflow">
      <FlowFields {...fields} />
    </FormSection>
    <FormSection title="Permissions">
      <PowerFields {...fields} />
    </FormSection>
    <FormSection title="Review settings">
      <ReviewFields {...fields} />
    </FormSection>
    <FormSection title="Model settings">
      <ModelFields {...fields} missing={missing} />
      <WindowFields {...fields} />
    </FormSection>
    <FormSection title="Limits">
      <LimitFields {...fields} />
      <CheckField
        label="Enabled"
        pointer="/enabled"
        isChecked={fields.draft.enabled}
        onChange={(enabled) => fields.change({ enabled })}
      />
    </FormSection>
  </>
)
