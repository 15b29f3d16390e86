/**
 * Copies a text; says so in words and to screen readers.
 */
import { type ReactNode, useState } from "react"
import { CheckIcon, CopyIcon } from "./icons.tsx"

interface CopyButtonProps {
  readonly text: string
  /** What is copied, for who does not see it. */
  readonly label: string
}

/** **Gotchas** Only a page from this machine or over TLS may write to the clipboard; elsewhere people select the text. */
export const CopyButton = ({ text, label }: CopyButtonProps): ReactNode => {
  const [isCopied, setIsCopied] = useState(false)
  const copy = () => {
    navigator.clipboard?.writeText(text).then(
      () => setIsCopied(true),
      () => setIsCopied(false)
    )
  }
  return (
    <button
      type="button"
      onClick={copy}
      aria-label={`${isCopied ? "Copied" : "Copy"} ${label}`}
      className="flex h-7 shrink-0 items-center gap-1.5 rounded-md px-2 text-2xs text-ink-soft hover:bg-sunken hover:text-ink"
    >
      {isCopied ? <CheckIcon size="small" className="text-leaf" /> : <CopyIcon size="small" />}
      <span aria-live="polite">{isCopied ? "Copied" : "Copy"}</span>
    </button>
  )
}
