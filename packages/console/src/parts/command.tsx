/**
 * A command to try, with a button that copies it; it goes to the project and the server that the page shows.
 */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useContext, useState } from "react"
import { ConsoleContext } from "../frame/console-context.tsx"
import { projectsQuery } from "../server/queries.ts"
import { offeredCommand } from "../words/offered-command.ts"
import { CheckIcon } from "./icons.tsx"

export const Command = ({ text: command }: { readonly text: string }): ReactNode => {
  const text = useOffered(command)
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

/** The same within a sentence, to be selected. */
export const InlineCommand = ({ text }: { readonly text: string }): ReactNode => (
  <code className="font-mono [overflow-wrap:anywhere] select-all">{useOffered(text)}</code>
)

const useOffered = (command: string): string => {
  // Before somebody is signed in there is no project yet.
  const project = useContext(ConsoleContext)?.project
  const { data } = useQuery({ ...projectsQuery, enabled: project !== undefined })
  const hasSeveral = (data?.items.length ?? 0) > 1
  return offeredCommand(command, {
    projectId: hasSeveral ? project?.id : undefined,
    origin: window.location.origin
  })
}
