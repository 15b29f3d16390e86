/**
 * What is written to an agent and not yet said, kept by the tab for each conversation: it stays when one looks elsewhere and comes back.
 */

const nameOf = (projectId: string, conversationId: string | undefined): string =>
  `tropism.draft.${projectId}.${conversationId ?? "new"}`

/** The draft for a conversation; for the one that is yet to begin where there is none. */
export const keptDraft = (projectId: string, conversationId: string | undefined): string =>
  sessionStorage.getItem(nameOf(projectId, conversationId)) ?? ""

export const keepDraft = (projectId: string, conversationId: string | undefined, text: string): void =>
  text === ""
    ? sessionStorage.removeItem(nameOf(projectId, conversationId))
    : sessionStorage.setItem(nameOf(projectId, conversationId), text)

/** The draft for a conversation that has just begun: what was written meanwhile is for it. */
export const movedDraft = (projectId: string, conversationId: string): string => {
  const written = keptDraft(projectId, undefined)
  if (written !== "") keepDraft(projectId, conversationId, written)
  keepDraft(projectId, undefined, "")
  return keptDraft(projectId, conversationId)
}

/** What was said is refused: it stands where it was written, unless something else does. */
export const returnDraft = (projectId: string, conversationId: string | undefined, text: string): void => {
  if (keptDraft(projectId, conversationId) === "") keepDraft(projectId, conversationId, text)
}
