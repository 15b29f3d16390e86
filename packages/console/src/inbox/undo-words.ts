/**
 * An undo in sentences: whose work is taken back, how much of it, and what becomes of each thing.
 */
import type { UndoCause, UndoItem, UndoPayload } from "@tropism/domain/undo"
import { countText } from "../words/amounts.ts"

/** Where the work that is taken back is seen. */
export const causeWords: Readonly<Record<UndoCause["type"], string>> = {
  run: "Open run",
  agentVersion: "Open agent",
  chain: "Open chain"
}

/** What a plan comes to, in sentences: `3 changes go back. 1 stays, because somebody came after.` */
export const planSentence = ({ counts }: UndoPayload): string => {
  const { conflicts, kept, ready, suggestions, unneeded } = counts
  return [
    ready === 0
      ? "Nothing can be undone."
      : `${countText(ready, "object or relationship", "objects and relationships")} will be reverted.`,
    conflicts === 0 ? "" : `${conflicts} skipped: changed since.`,
    kept === 0
      ? ""
      : `${countText(kept, "property keeps its later value", "properties keep their later values")}.`,
    unneeded === 0 ? "" : `${unneeded} already undone.`,
    suggestions === 0
      ? ""
      : `${countText(suggestions, "pending suggestion expires", "pending suggestions expire")}.`
  ]
    .filter((sentence) => sentence !== "")
    .join(" ")
}

const actions: Readonly<Record<UndoItem["action"], string>> = {
  delete: "will be deleted",
  restore: "will be restored",
  update: "will be reverted",
  none: "unchanged"
}

/** What becomes of one thing. */
export const itemWords = ({ action, status }: Pick<UndoItem, "action" | "status">): string =>
  status === "ready" ? actions[action] : status === "conflict" ? "Skipped: changed since" : "already undone"
