/**
 * What is shown this once: it stays until somebody says that it is copied.
 *
 * No key and no click beside it closes it, for nobody could show it again. Only with the session it goes, which is said then.
 */
import { type ReactNode, useContext, useEffect } from "react"
import { Button } from "./button.tsx"
import { DialogFrame } from "./dialog-frame.tsx"
import { OpenSecret } from "./open-secret.ts"
import { Secret } from "./secret.tsx"

interface ShownOnceProps {
  readonly title: string
  /** What it is and to whom it is given. */
  readonly children: ReactNode
  readonly secrets: ReadonlyArray<{ readonly label: string; readonly text: string }>
  readonly onClose: () => void
}

export const ShownOnce = ({ title, children, secrets, onClose }: ShownOnceProps): ReactNode => {
  const isOne = secrets.length === 1
  const tell = useContext(OpenSecret)
  useEffect(() => {
    tell(true)
    return () => tell(false)
  }, [tell])
  return (
    <DialogFrame
      isOpen
      title={title}
      onClose={onClose}
      returnsFocus
      holds={`Copy ${isOne ? "it" : "them"} before you close this: ${isOne ? "it is" : "they are"} not shown again.`}
    >
      <div className="mt-2 text-sm text-ink-soft">{children}</div>
      <dl className="mt-4 grid gap-3 text-sm">
        {secrets.map(({ label, text }) => (
          <div key={label}>
            <dt className={isOne ? "sr-only" : "mb-1 text-xs text-ink-faint"}>{label}</dt>
            <dd className="m-0">
              <Secret text={text} label={label} />
            </dd>
          </div>
        ))}
      </dl>
      <div className="mt-5 flex justify-end">
        <Button weight="primary" data-testid="copied" onClick={onClose}>
          I have copied {isOne ? "it" : "them"}
        </Button>
      </div>
    </DialogFrame>
  )
}
