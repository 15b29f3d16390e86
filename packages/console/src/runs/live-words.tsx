/**
 * What the model says at this moment, as it says it; nothing where the run does not work.
 */
import type { Run } from "@tropism/domain/run"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { LongText } from "../parts/long-text.tsx"
import type { StreamEvent } from "../server/event-stream.ts"
import { runStreamPath, useEventStream } from "../server/use-event-stream.ts"

export const LiveWords = ({ run }: { readonly run: Run }): ReactNode => {
  const { project } = useConsole()
  const [words, setWords] = useState("")
  const isAtWork = run.status === "running" || run.status === "queued"
  useEventStream(isAtWork ? runStreamPath(project.id, run.id) : undefined, (event) =>
    setWords((before) => heard(before, event))
  )
  if (!isAtWork || words === "") return null
  return (
    <section aria-label="What it says now" className="mb-8 border-l-2 border-leaf pl-4">
      <h2 className="mb-1 text-xs font-medium text-leaf">It says</h2>
      <p aria-live="polite" className="text-sm whitespace-pre-wrap [overflow-wrap:anywhere]">
        <LongText text={words} />
      </p>
    </section>
  )
}

/** A piece is added; what ends an answer stands in the steps, and is no longer said now. Who comes late hears the rest, after dots. */
const heard = (before: string, { name, text }: StreamEvent): string => {
  if (name !== "TextDeltaEvent") return name === "AssistantMessageEvent" ? "" : before
  const { id, delta }: { readonly id: string; readonly delta: string } = JSON.parse(text)
  return before === "" && !id.endsWith(".d1") ? `… ${delta}` : before + delta
}
