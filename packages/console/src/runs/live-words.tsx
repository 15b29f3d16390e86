/**
 * What the model says at this moment, as it says it; nothing where it says nothing.
 */
import type { ReactNode } from "react"
import { LongText } from "../parts/long-text.tsx"
import type { LiveAnswer } from "./use-live-answer.ts"

export const LiveWords = ({ answer }: { readonly answer: LiveAnswer | undefined }): ReactNode => {
  if (answer === undefined) return null
  return (
    <section aria-label="Live output" data-testid="live-answer" className="mb-8 border-l-2 border-leaf pl-4">
      <h2 className="mb-1 text-xs font-medium text-leaf">Output</h2>
      <p aria-live="polite" className="text-sm whitespace-pre-wrap [overflow-wrap:anywhere]">
        <LongText text={answer.words} />
      </p>
    </section>
  )
}
