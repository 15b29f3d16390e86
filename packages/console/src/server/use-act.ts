/**
 * One press of a button as one request: pressed twice, or sent again after a lost answer, it is done once.
 *
 * Every request has a key that stays as long as what is sent stays, and the
 * server does nothing twice under one key. What it made old is read again before it counts as
 * done, so the next press is made against what the page then shows. Whoever is elsewhere by then
 * is told what became of it, and stays there.
 */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { Effect } from "effect"
import { useRef, useState } from "react"
import { useToasts } from "../parts/toasts.tsx"
import { doneMessage, failedMessage } from "./act-words.ts"
import type { Failure } from "./request.ts"
import { newRequestKey } from "./request-key.ts"
import { type Pressed, useHere } from "./use-here.ts"

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

/** What is done, as a title: `Make a token`. */
export type ActName<V> = string | ((given: V) => string)

interface ActWords<V, A> {
  readonly what: ActName<V>
  readonly act: (given: V, idempotencyKey: string) => Effect.Effect<A, Failure>
  /** The beginnings of the keys of what is old afterwards. */
  readonly touches: ReadonlyArray<ReadonlyArray<unknown>>
  /** Not called where whoever pressed is elsewhere by then. */
  readonly onDone?: (made: A, given: V) => void
}

export const useAct = <V, A = unknown>({ what, act, touches, onDone }: ActWords<V, A>): Act<V> => {
  const queryClient = useQueryClient()
  const show = useToasts()
  const here = useHere()
  const pressed = useRef<Pressed>(undefined)
  const isAtWork = useRef(false)
  /** Drawn at the press itself: what is under way is told of a moment later. */
  const [isBegun, setIsBegun] = useState(false)
  const freshen = () => Promise.all(touches.map((queryKey) => queryClient.invalidateQueries({ queryKey })))
  const attempt = useRef<{ readonly said: string; readonly key: string }>(undefined)
  const nameOf = (given: V) => (typeof what === "string" ? what : what(given))
  const { mutate, isPending, error, reset, variables } = useMutation({
    mutationFn: (given: V) => {
      const said = JSON.stringify(given) ?? ""
      if (attempt.current?.said !== said) attempt.current = { said, key: newRequestKey() }
      return Effect.runPromise(act(given, attempt.current.key))
    },
    onSuccess: (made, given) => {
      attempt.current = undefined
      return freshen().then(() =>
        pressed.current?.isHere() === false ? show(doneMessage(nameOf(given))) : onDone?.(made, given)
      )
    },
    onError: (failure, given) => {
      if (pressed.current?.isDrawn() === false) show(failedMessage(nameOf(given), failure))
      freshen()
    },
    onSettled: () => {
      isAtWork.current = false
      setIsBegun(false)
    }
  })
  return {
    run: (given) => {
      // The second of two presses comes before the page has drawn that it is busy.
      if (isAtWork.current) return
      isAtWork.current = true
      setIsBegun(true)
      pressed.current = here()
      mutate(given)
    },
    isBusy: isBegun || isPending,
    error,
    forget: reset,
    given: variables
  }
}
