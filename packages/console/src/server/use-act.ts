/**
 * One press of a button as one request: pressed twice, or sent again after a lost answer, it is done once.
 *
 * Every request has a key that stays as long as what is sent stays, and the
 * server does nothing twice under one key. What it made old is read again before it counts as
 * done, so the next press is made against what the page then shows.
 */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { Effect } from "effect"
import { useRef } from "react"
import type { Failure } from "./request.ts"
import { newRequestKey } from "./request-key.ts"

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
  const freshen = () => Promise.all(touches.map((queryKey) => queryClient.invalidateQueries({ queryKey })))
  const attempt = useRef<{ readonly said: string; readonly key: string }>(undefined)
  const { mutate, isPending, error, reset, variables } = useMutation({
    mutationFn: (given: V) => {
      const said = JSON.stringify(given) ?? ""
      if (attempt.current?.said !== said) attempt.current = { said, key: newRequestKey() }
      return Effect.runPromise(act(given, attempt.current.key))
    },
    onSuccess: (made, given) => {
      attempt.current = undefined
      return freshen().then(() => onDone?.(made, given))
    },
    onError: () => {
      freshen()
    },
    onSettled: () => {
      isAtWork.current = false
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
