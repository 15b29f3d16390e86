/**
 * A form in a dialog: what is sent is sent once, what is refused is said where it arose, and what was typed stays.
 */
import type { ReactNode } from "react"
import { Button } from "./button.tsx"
import { CloseButton, DialogFrame } from "./dialog-frame.tsx"
import { Failure } from "./failure.tsx"
import { FieldLabels } from "./field-labels.tsx"
import { useClosed } from "./use-closed.ts"
import { useFaultFocus } from "./use-fault-focus.ts"
import { isBeside } from "../server/problem.ts"

interface FormDialogProps {
  readonly title: string
  /** The word on the button, a verb. */
  readonly verb: string
  readonly isBusy: boolean
  /** Whether there is anything to send yet. */
  readonly isReady?: boolean
  readonly error: unknown
  /** JSON pointers of the fields, whose faults stand beside them. */
  readonly pointers: ReadonlyArray<string>
  readonly onSubmit: () => void
  readonly onClose: () => void
  readonly children: ReactNode
}

/** **Details** It is open while it is drawn. */
export const FormDialog = (props: FormDialogProps): ReactNode => {
  const { title, verb, isBusy, isReady = true, error, pointers, onSubmit, onClose, children } = props
  const form = useFaultFocus(error)
  useClosed(form, isBusy)
  return (
    <DialogFrame isOpen title={title} onClose={onClose} isBusy={isBusy} returnsFocus>
      <FieldLabels>
        <form
          ref={form}
          noValidate
          onSubmit={(event) => {
            event.preventDefault()
            onSubmit()
          }}
          aria-busy={isBusy}
          className="mt-4 grid gap-4"
        >
          {error !== null && !isBeside(error, pointers) && <Failure error={error} />}
          {children}
          <div className="mt-2 flex justify-end gap-2">
            <CloseButton weight="quiet">Cancel</CloseButton>
            <Button type="submit" weight="primary" disabled={isBusy || !isReady}>
              {verb}
            </Button>
          </div>
        </form>
      </FieldLabels>
    </DialogFrame>
  )
}
