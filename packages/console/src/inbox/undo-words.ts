/**
 * An undo in sentences: whose work is taken back, how much of it, and what becomes of each thing.
 */
import type { UndoCause, UndoItem, UndoPayload } from "@tropism/domain/undo"
import { countText } from "../words/amounts.ts"

/** Where the work that is taken back is seen. */
export const causeWords: Readonly<Record<UndoCause["type"], string>> = {
  run: "Open the run",
  agentVersion: "Open the agent",
  chain: "Open the chain"
}

/** What a plan comes to, in sentences: `3 changes go back. 1 stays, because somebody came after.` */
export const planSentence = ({ counts }: UndoPayload): string => {
  const { conflicts, kept, ready, suggestions, unneeded } = counts
  return [
    ready === 0
      ? "Nothing can go back."
      : `${countText(ready, "thing goes", "things go")} back to what was before.`,
    conflicts === 0 ? "" : `${countText(conflicts, "stays", "stay")}, because somebody came after.`,
    kept === 0 ? "" : `${countText(kept, "property keeps", "properties keep")} what somebody set later.`,
    unneeded === 0 ? "" : `Of ${countText(unneeded, "other", "others")} nothing is left to undo.`,
    suggestions === 0
      ? ""
      : `${countText(suggestions, "suggestion that waits expires", "suggestions that wait expire")} with it.`
  ]
    .filter((sentence) => sentence !== "")
    .join(" ")
}

const actions: Readonly<Record<UndoItem["action"], string>> = {
  delete: "is deleted again",
  restore: "comes back",
  update: "goes back",
  none: "stays"
}

/** What becomes of one thing. */
export const itemWords = ({ action, status }: Pick<UndoItem, "action" | "status">): string =>
  status === "ready" ? actions[action] : status === "conflict" ? "stays: somebody came after" : "is as it was"
