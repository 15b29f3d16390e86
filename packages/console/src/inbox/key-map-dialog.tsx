/**
 * The keys of the inbox on one page, and the switch that turns them off.
 *
 * Single keys get in the way of speech input and of some assistive tools, so
 * they can be switched off; everything they do can be done with Tab and Enter.
 */
import type { ReactNode } from "react"
import { Key } from "../parts/button.tsx"
import { DialogFrame } from "../parts/dialog-frame.tsx"
import { bindings } from "./inbox-keys.ts"

interface KeyMapDialogProps {
  readonly isOpen: boolean
  readonly areKeysOn: boolean
  readonly onSwitch: (areOn: boolean) => void
  readonly onClose: () => void
}

export const KeyMapDialog = ({ isOpen, areKeysOn, onSwitch, onClose }: KeyMapDialogProps): ReactNode => (
  <DialogFrame isOpen={isOpen} title="Keyboard" onClose={onClose}>
    <dl className="mt-4 grid grid-cols-[auto_1fr] items-center gap-x-5 gap-y-2.5 text-sm">
      {bindings.map(({ command, shown, means }) => (
        <div key={command} className="contents">
          <dt className="flex gap-1">
            {shown.map((key) => (
              <Key key={key}>{key}</Key>
            ))}
          </dt>
          <dd className="text-ink-soft">{means}</dd>
        </div>
      ))}
    </dl>
    <label className="mt-5 flex items-center gap-3 border-t border-line pt-4 text-sm">
      <input
        type="checkbox"
        checked={areKeysOn}
        onChange={(event) => onSwitch(event.target.checked)}
        className="size-4 accent-leaf"
      />
      Use these keys
    </label>
  </DialogFrame>
)
