/**
 * How far the imports are that are at work, and what came of those that ended while the page was open.
 */
import type { Import } from "@tropism/api/transfer-api"
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { Visible } from "../parts/visible.tsx"
import { importsQuery } from "../server/graph-queries.ts"
import { cutText } from "../words/cut-text.ts"
import { visibleText } from "../words/visible-text.ts"
import { importedText, importStatusText } from "./import-words.ts"

export const ImportProgress = (): ReactNode => {
  const { project } = useConsole()
  const { data } = useQuery(importsQuery(project.id))
  const { told, dismiss } = useTold(data?.items ?? noImports)
  if (told.length === 0) return null
  return (
    <section
      aria-label="Imports"
      className="mb-4 rounded-xl border border-line bg-sunken px-4 py-3 text-sm [overflow-wrap:anywhere]"
    >
      <ul className="m-0 grid list-none gap-2 p-0">
        {told.map((one) => (
          <li
            key={one.id}
            data-status={one.status}
            className="flex flex-wrap items-center justify-between gap-x-4 gap-y-1"
          >
            <div className="min-w-0 grow basis-64">
              <p className="font-medium">
                <Visible text={cutText(importStatusText(one), 1, 300)} />
              </p>
              <p className="text-xs text-ink-soft">{importedText(one)}</p>
            </div>
            {one.status !== "running" && (
              <Button size="small" weight="quiet" onClick={() => dismiss(one.id)}>
                Close
                <span className="sr-only">: hide {visibleText(one.name ?? "it")}</span>
              </Button>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}

const noImports: ReadonlyArray<Import> = []

/** Imports that are at work, or were when the page saw them first; until somebody dismisses one that ended. */
const useTold = (imports: ReadonlyArray<Import>) => {
  const [seen, setSeen] = useState<ReadonlySet<string>>(new Set())
  const running = imports.filter(({ id, status }) => status === "running" && !seen.has(id))
  if (running.length > 0) setSeen(new Set([...seen, ...running.map(({ id }) => id)]))
  return {
    told: imports.filter(({ id }) => seen.has(id)),
    dismiss: (dismissed: string) => setSeen(new Set([...seen].filter((id) => id !== dismissed)))
  }
}
