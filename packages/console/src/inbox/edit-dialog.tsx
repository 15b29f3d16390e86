/**
 * Edit, then approve: each suggested property as a field, to be changed or left out.
 *
 * It stays open until the server has taken what was written, so that neither a
 * refusal nor somebody else's decision costs anybody their words.
 */
import type { Properties } from "@tropism/domain/json"
import type { SuggestionTask } from "@tropism/domain/task"
import { type ReactNode, useId, useRef, useState } from "react"
import { Button } from "../parts/button.tsx"
import { CloseButton, DialogFrame } from "../parts/dialog-frame.tsx"
import { controlClass } from "../parts/field.tsx"
import { CautionIcon } from "../parts/icons.tsx"
import { Visible } from "../parts/visible.tsx"
import { type EditField, editedFields, editFields, refinedFields } from "../suggestion/edit-fields.ts"
import { visibleText } from "../words/visible-text.ts"
import { EditMovedNotice } from "./edit-moved-notice.tsx"
import { OvertakenNotice } from "./overtaken-notice.tsx"
import { StaleNotice } from "./stale-notice.tsx"
import { useOvertaken } from "./use-overtaken.ts"

interface EditDialogProps {
  readonly projectId: string
  /** What is edited; the dialog is open while there is one. */
  readonly task: SuggestionTask | undefined
  /** What waits as the page knows it. */
  readonly listed: ReadonlyArray<SuggestionTask>
  /** Answers with the sentence of a refusal, or undefined when it is approved. */
  readonly onApprove: (task: SuggestionTask, edit: Properties) => Promise<string | undefined>
  /** It is approved. */
  readonly onDone: (taskId: string) => void
  readonly onCancel: () => void
  /** The dialog is gone. */
  readonly onClosed: () => void
}

export const EditDialog = ({ task, onCancel, onClosed, ...rest }: EditDialogProps): ReactNode => {
  const [isSending, setIsSending] = useState(false)
  return (
    <DialogFrame
      isOpen={task !== undefined}
      title={task === undefined ? "" : `Edit #${task.number}, then approve`}
      onClose={onCancel}
      isBusy={isSending}
      onClosed={onClosed}
    >
      {task !== undefined && (
        <EditForm key={task.id} task={task} isSending={isSending} onSending={setIsSending} {...rest} />
      )}
    </DialogFrame>
  )
}

interface EditFormProps extends Omit<EditDialogProps, "onCancel" | "onClosed"> {
  readonly task: SuggestionTask
  readonly isSending: boolean
  readonly onSending: (isSending: boolean) => void
}

const EditForm = (props: EditFormProps): ReactNode => {
  const { projectId, task, listed, isSending, onSending, onApprove, onDone } = props
  // What is shown when it is opened is what is decided: the digest tells when it is refined meanwhile.
  const [shown, setShown] = useState(task)
  const [fields, setFields] = useState(() => fieldsOf(shown))
  const form = useRef<HTMLFormElement>(null)
  const [refusal, setRefusal] = useState<string>()
  const { left, sentences } = useOvertaken(projectId, [task], listed)
  // One's own decision takes it off the list as well.
  const isOvertaken = left.length === 0 && !isSending
  const { data, faults } = editedFields(fields)
  const hasNothing = fields.length > 0 && fields.every(({ isTaken }) => !isTaken)
  const change = (name: string, changes: Partial<EditField>) =>
    setFields((before) => before.map((field) => (field.name === name ? { ...field, ...changes } : field)))
  const keep = () => {
    setShown(task)
    setFields((mine) => refinedFields(mine, fieldsOf(shown), fieldsOf(task)))
    setRefusal(undefined)
    form.current?.querySelector<HTMLElement>("[data-first-focus]")?.focus()
  }
  const approve = () => {
    if (faults.length > 0 || hasNothing || isSending || isOvertaken) return
    onSending(true)
    onApprove(shown, data)
      .then((sentence) => {
        setRefusal(sentence)
        if (sentence === undefined) onDone(shown.id)
      })
      .finally(() => onSending(false))
  }
  return (
    <form
      ref={form}
      onSubmit={(event) => {
        event.preventDefault()
        approve()
      }}
      className="mt-1 grid gap-4"
    >
      <p className="text-sm text-ink-soft">
        <Visible text={task.title} />
      </p>
      {isOvertaken ? <OvertakenNotice sentences={sentences} /> : <StaleNotice task={task} />}
      {!isOvertaken && <EditMovedNotice fields={fields} shown={shown} task={task} onKeep={keep} />}
      {fields.map((field, index) => (
        <PropertyField
          key={field.name}
          field={field}
          isFirst={index === 0}
          isFault={faults.includes(field.name)}
          onChange={(changes) => change(field.name, changes)}
        />
      ))}
      {refusal !== undefined && !isOvertaken && (
        <p role="alert" className="flex items-start gap-2 text-xs font-medium text-caution-ink">
          <CautionIcon className="mt-0.5" />
          <span>{refusal}</span>
        </p>
      )}
      <EditFoot
        hasNothing={hasNothing}
        isOvertaken={isOvertaken}
        isSending={isSending}
        isReady={faults.length === 0 && !hasNothing}
      />
    </form>
  )
}

interface EditFootProps {
  readonly hasNothing: boolean
  readonly isOvertaken: boolean
  readonly isReady: boolean
  readonly isSending: boolean
}

const EditFoot = ({ hasNothing, isOvertaken, isReady, isSending }: EditFootProps): ReactNode => (
  <>
    {hasNothing && (
      <p role="status" className="text-xs text-ink-soft">
        All properties are left out. Keep at least one, or reject the suggestion.
      </p>
    )}
    <div className="flex justify-end gap-2">
      <CloseButton weight="quiet">{isOvertaken ? "Close" : "Cancel"}</CloseButton>
      {!isOvertaken && (
        <Button type="submit" weight="primary" disabled={!isReady || isSending}>
          {isSending ? "Approving…" : "Approve as edited"}
        </Button>
      )}
    </div>
  </>
)

const fieldsOf = ({ payload }: SuggestionTask): ReadonlyArray<EditField> =>
  editFields(payload.suggestedChanges) ?? []

interface PropertyFieldProps {
  readonly field: EditField
  readonly isFirst: boolean
  readonly isFault: boolean
  readonly onChange: (changes: Partial<EditField>) => void
}

const PropertyField = ({ field, isFirst, isFault, onChange }: PropertyFieldProps): ReactNode => {
  const { isTaken, kind, name, text } = field
  const id = useId()
  return (
    <div className="min-w-0">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4">
        <label htmlFor={`${id}-text`} className={`text-sm font-medium ${isTaken ? "" : "line-through"}`}>
          <Visible text={name} exact />
          {kind === "json" && <span className="font-normal text-ink-faint"> as JSON</span>}
        </label>
        <label className="flex items-center gap-2 text-xs text-ink-soft">
          <input
            type="checkbox"
            checked={!isTaken}
            onChange={(event) => onChange({ isTaken: !event.target.checked })}
            className="size-4 accent-leaf"
          />
          Leave out<span className="sr-only"> {visibleText(name)}</span>
        </label>
      </div>
      {kind === "removal" ? (
        <p id={`${id}-text`} className="mt-1.5 text-xs text-ink-soft">
          {isTaken ? "The property will be removed." : "The property will not change."}
        </p>
      ) : (
        <textarea
          id={`${id}-text`}
          {...(isFirst && { "data-first-focus": true })}
          aria-invalid={isFault}
          aria-describedby={`${id}-fault`}
          disabled={!isTaken}
          spellCheck={false}
          rows={Math.min(8, text.split("\n").length)}
          value={text}
          onChange={(event) => onChange({ text: event.target.value })}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey))
              event.currentTarget.form?.requestSubmit()
          }}
          className={`${controlClass} mt-1.5 block resize-y py-1.5 font-mono disabled:opacity-50`}
        />
      )}
      <p id={`${id}-fault`} role="status" className="text-xs text-removed-ink">
        {isFault && <span className="mt-1 block">Invalid JSON. Put text in quotes.</span>}
      </p>
    </div>
  )
}
