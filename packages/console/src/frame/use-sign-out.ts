/**
 * The way out: ends the session, and with it what the page may show and what the tab has kept.
 */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { Effect } from "effect"
import { signOut as leave } from "../server/request.ts"
import { signedOut } from "../server/whose.ts"

export const useSignOut = () => {
  const queryClient = useQueryClient()
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => Effect.runPromise(leave),
    onSuccess: () => signedOut(queryClient)
  })
  return { signOut: () => mutate(), isPending, error }
}
