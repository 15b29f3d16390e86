/**
 * What is written to an agent and not yet said, kept by the tab for each conversation: it stays when one looks elsewhere and comes back.
 *
 * `place` is where the tab keeps it for whoever writes (`server/whose.ts`).
 */

const nameOf = (place: string, conversationId: string | undefined): string =>
  `${place}/draft/${conversationId ?? "new"}`

/** The draft for a conversation; for the one that is yet to begin where there is none. */
export const keptDraft = (place: string, conversationId: string | undefined): string =>
  sessionStorage.getItem(nameOf(place, conversationId)) ?? ""

export const keepDraft = (place: string, conversationId: string | undefined, text: string): void =>
  text === ""
    ? sessionStorage.removeItem(nameOf(place, conversationId))
    : sessionStorage.setItem(nameOf(place, conversationId), text)

/** The draft for a conversation that has just begun: what was written meanwhile is for it. */
export const movedDraft = (place: string, conversationId: string): string => {
  const written = keptDraft(place, undefined)
  if (written !== "") keepDraft(place, conversationId, written)
  keepDraft(place, undefined, "")
  return keptDraft(place, conversationId)
}

/** What was said is refused: it stands where it was written, unless something else does. */
export const returnDraft = (place: string, conversationId: string | undefined, text: string): void => {
  if (keptDraft(place, conversationId) === "") keepDraft(place, conversationId, text)
}
