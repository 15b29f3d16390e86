/**
 * Whose the tab is: what was read for somebody, and what they wrote and have not yet said, is theirs alone.
 *
 * It goes when they sign out, and when the server says that somebody else is here.
 */
import type { Me } from "@tropism/api/system-api"
import type { QueryClient } from "@tanstack/react-query"

/** The key of who one is, which alone is of nobody. */
export const principalKey = ["principal"] as const

/** All that a tab keeps is named so, that of a user below their id. */
const root = "tropism"

const placeOf = (userId: string): string => `${root}/${encodeURIComponent(userId)}/`

/** Under what a tab keeps what somebody writes in a project. */
export const keptPlace = (userId: string, projectId: string): string =>
  placeOf(userId) + encodeURIComponent(projectId)

/** Somebody has signed in: it is asked anew who they are, and all is read anew for them. */
export const signedIn = (queryClient: QueryClient): Promise<void> => {
  forgetRead(queryClient)
  return queryClient.resetQueries({ queryKey: principalKey })
}

/** Somebody has signed out: nothing of theirs stays. */
export const signedOut = (queryClient: QueryClient): Promise<void> => {
  forgetWritten(undefined)
  return signedIn(queryClient)
}

/** The server says who is here: of anybody else nothing stays. */
export const isHere = (queryClient: QueryClient, me: Me): Me => {
  const before = queryClient.getQueryData<Me>(principalKey)
  if (before !== undefined && before.userId !== me.userId) forgetRead(queryClient)
  forgetWritten(me.userId)
  return me
}

const forgetRead = (queryClient: QueryClient): void =>
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== principalKey[0] })

/** Forgets what was written, but for what one user wrote. */
const forgetWritten = (userId: string | undefined): void =>
  Object.keys(sessionStorage)
    .filter((name) => name.startsWith(root))
    .filter((name) => userId === undefined || !name.startsWith(placeOf(userId)))
    .forEach((name) => sessionStorage.removeItem(name))
