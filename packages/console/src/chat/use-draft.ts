/**
 * What is written in a conversation and not yet said; what was said and refused stands there again.
 */
import { useState } from "react"
import { keepDraft, keptDraft, movedDraft } from "./kept-draft.ts"
import type { Ending } from "./use-turn.ts"

/** `place` is where the tab keeps it; `hasBegun` says that it was begun by what is being said, `ending` how the last turn ended that was of it. */
export const useDraft = (
  place: string,
  conversationId: string | undefined,
  hasBegun: boolean,
  ending: Ending | undefined
): readonly [text: string, write: (text: string) => void] => {
  const [text, setText] = useState(() =>
    hasBegun && conversationId !== undefined
      ? movedDraft(place, conversationId)
      : keptDraft(place, conversationId)
  )
  const [heard, setHeard] = useState(ending)
  if (heard !== ending) {
    setHeard(ending)
    if (ending?.error !== undefined && text === "") setText(ending.saying.message)
  }
  const write = (written: string) => {
    keepDraft(place, conversationId, written)
    setText(written)
  }
  return [text, write]
}
