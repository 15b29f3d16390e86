/**
 * One press of a button as one request: pressed twice, or sent again after a lost answer, it is done once.
 *
 * Every request has a key that stays as long as what is sent stays, and the
 * server does nothing twice under one key. Afterwards what it made old is read again.
 */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { Effect } from "effect"
import { useRef } from "react"
import { isUnauthorized } from "../server/problem.ts"
import { principalQuery } from "../server/queries.ts"
import type { Failure } from "../server/request.ts"
import { newRequestKey } from "../server/request-key.ts"

export interface Act<V> {
  readonly run: (given: V) => void
  readonly isBusy: boolean
  /** What the last try failed with; null where it did not. */
  readonly error: unknown
  /** Forgets the error. */
  readonly forget: () => void
  /** With what it was run last. */
  readonly given: V | undefined
}

interface ActWords<V, A> {
  readonly act: (given: V, idempotencyKey: string) => Effect.Effect<A, Failure>
  /** The beginnings of the keys of what is old afterwards. */
  readonly touches: ReadonlyArray<ReadonlyArray<unknown>>
  readonly onDone?: (made: A, given: V) => void
}

export const useAct = <V, A = unknown>({ act, touches, onDone }: ActWords<V, A>): Act<V> => {
  const queryClient = useQueryClient()
  const isAtWork = useRef(false)
  const attempt = useRef<{ readonly said: string; readonly key: string }>(undefined)
  const { mutate, isPending, error, reset, variables } = useMutation({
    mutationFn: (given: V) => {
      const said = JSON.stringify(given) ?? ""
      if (attempt.current?.said !== said) attempt.current = { said, key: newRequestKey() }
      return Effect.runPromise(act(given, attempt.current.key))
    },
    onSuccess: (made, given) => {
      attempt.current = undefined
      onDone?.(made, given)
    },
    onError: (failure) => {
      if (isUnauthorized(failure)) queryClient.invalidateQueries({ queryKey: principalQuery.queryKey })
    },
    onSettled: () => {
      isAtWork.current = false
      for (const queryKey of touches) queryClient.invalidateQueries({ queryKey })
    }
  })
  return {
    run: (given) => {
      // The second of two presses comes before the page has drawn that it is busy.
      if (isAtWork.current) return
      isAtWork.current = true
      mutate(given)
    },
    isBusy: isPending,
    error,
    forget: reset,
    given: variables
  }
}
