/**
 * The way out: ends the session, and with it what the page may show.
 */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { Effect } from "effect"
import { principalQuery } from "../server/queries.ts"
import { signOut as leave } from "../server/request.ts"

export const useSignOut = () => {
  const queryClient = useQueryClient()
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => Effect.runPromise(leave),
    onSuccess: () => queryClient.resetQueries({ queryKey: principalQuery.queryKey })
  })
  return { signOut: () => mutate(), isPending, error }
}
