/**
 * What is shown once: to be selected, or copied.
 */
import type { ReactNode } from "react"
import { CopyButton } from "./copy-button.tsx"

interface SecretProps {
  readonly text: string
  /** What it is, for who does not see it. */
  readonly label: string
}

export const Secret = ({ text, label }: SecretProps): ReactNode => (
  <div className="flex items-center gap-2 rounded-lg border border-line bg-sunken py-1.5 pr-1.5 pl-3.5">
    <code className="min-w-0 grow py-1 font-mono text-xs select-all [overflow-wrap:anywhere]">{text}</code>
    <CopyButton text={text} label={label} />
  </div>
)
