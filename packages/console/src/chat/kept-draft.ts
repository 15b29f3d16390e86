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

/** A conversation has begun: what was written meanwhile is for it. */
export const moveDraft = (projectId: string, conversationId: string): void => {
  keepDraft(projectId, conversationId, keptDraft(projectId, undefined))
  keepDraft(projectId, undefined, "")
}

/** What was said is refused: it stands where it was written, unless something else does. */
export const returnDraft = (projectId: string, conversationId: string | undefined, text: string): void => {
  if (keptDraft(projectId, conversationId) === "") keepDraft(projectId, conversationId, text)
}
