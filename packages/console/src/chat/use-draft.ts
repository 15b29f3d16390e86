/**
 * What is written in a conversation and not yet said; what was said and refused stands there again.
 */
import { useState } from "react"
import { keepDraft, keptDraft } from "./kept-draft.ts"
import type { Ending } from "./use-turn.ts"

/** `ending` is how the last turn ended that was of this conversation. */
export const useDraft = (
  projectId: string,
  conversationId: string | undefined,
  ending: Ending | undefined
): readonly [text: string, write: (text: string) => void] => {
  const [text, setText] = useState(() => keptDraft(projectId, conversationId))
  const [heard, setHeard] = useState(ending)
  if (heard !== ending) {
    setHeard(ending)
    if (ending?.error !== undefined && text === "") setText(ending.saying.message)
  }
  const write = (written: string) => {
    keepDraft(projectId, conversationId, written)
    setText(written)
  }
  return [text, write]
}
