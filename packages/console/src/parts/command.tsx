/**
 * A command to try, with a button that copies it.
 */
import { type ReactNode, useState } from "react"
import { CheckIcon } from "./icons.tsx"

export const Command = ({ text }: { readonly text: string }): ReactNode => {
  const [isCopied, setIsCopied] = useState(false)
  const copy = () => {
    // Only a page served from this machine or over TLS may write to the clipboard; elsewhere people select the text.
    navigator.clipboard?.writeText(text).then(
      () => setIsCopied(true),
      () => setIsCopied(false)
    )
  }
  return (
    <div className="flex items-center gap-2 rounded-lg border border-line bg-sunken py-1.5 pr-1.5 pl-3.5 text-left">
      <code className="min-w-0 grow py-1 font-mono text-xs [overflow-wrap:anywhere]">
        <span aria-hidden="true" className="mr-2 text-ink-faint select-none">
          $
        </span>
        {text}
      </code>
      <button
        type="button"
        onClick={copy}
        className="flex h-7 shrink-0 items-center gap-1 rounded-md px-2 text-2xs text-ink-soft hover:bg-surface hover:text-ink"
      >
        {isCopied && <CheckIcon size="small" className="text-leaf" />}
        <span aria-live="polite">{isCopied ? "Copied" : "Copy"}</span>
      </button>
    </div>
  )
}
