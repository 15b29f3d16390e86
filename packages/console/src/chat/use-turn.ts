/**
 * The turn that this tab waits for: what was said, what is heard of the answer, and how it ended.
 */
import type { ChatAnswer } from "@tropism/domain/conversation"
import { useQueryClient } from "@tanstack/react-query"
import { Effect, Fiber } from "effect"
import { useCallback, useEffect, useRef, useState } from "react"
import { isLeftOpen } from "../server/problem.ts"
import { newRequestKey } from "../server/request-key.ts"
import { returnDraft } from "./kept-draft.ts"
import { dropSaying, keepSaying, keptSaying } from "./kept-saying.ts"
import { type HeardCall, say, type Saying, type SayingListener } from "./say.ts"

export interface Turn {
  readonly saying: Saying
  readonly conversationId: string | undefined
  readonly words: string
  readonly calls: ReadonlyArray<HeardCall>
  /** Lost, it is opened again; after many tries in vain it is left, until a person says so. */
  readonly connection: "open" | "lost" | "left"
}

/** How the last turn of this tab ended. */
export interface Ending {
  readonly saying: Saying
  readonly answer?: ChatAnswer
  /** What the server refused it with. */
  readonly error?: unknown
}

export interface Turns {
  readonly turn: Turn | undefined
  readonly ending: Ending | undefined
  readonly speak: (what: Omit<Saying, "key">) => void
  /** Goes on with what was said and left, under its key. */
  readonly tryAgain: () => void
}

/** `place` is where the tab keeps what is said; `onBegun` is told of a conversation that began with what was said. */
export const useTurn = (
  projectId: string,
  place: string,
  onBegun: (conversationId: string) => void
): Turns => {
  const queryClient = useQueryClient()
  const [turn, setTurn] = useState(() => newTurn(keptSaying(place)))
  const [ending, setEnding] = useState<Ending>()
  const fiber = useRef<Fiber.Fiber<void>>(undefined)
  const begun = useRef(onBegun)
  useEffect(() => {
    begun.current = onBegun
  })
  const hear = useCallback(
    (saying: Saying) => {
      const change: Change = (how) => setTurn((before) => before && how(before))
      const listener = listenerOf(saying, change, (conversationId) => {
        keepSaying(place, { ...saying, conversationId })
        begun.current(conversationId)
      })
      // The page shows what is kept before it lets go of what it heard.
      const told = (end: Ending) =>
        Effect.promise(() => queryClient.invalidateQueries({ queryKey: [projectId, "conversations"] })).pipe(
          Effect.andThen(
            Effect.sync(() => {
              dropSaying(place)
              setTurn(undefined)
              setEnding(end)
            })
          )
        )
      fiber.current = Effect.runFork(
        Effect.matchEffect(say(projectId, saying, listener), {
          onSuccess: (answer) => told({ saying, answer }),
          onFailure: (error) => {
            if (isLeftOpen(error))
              return Effect.sync(() => change((before) => ({ ...before, connection: "left" })))
            returnDraft(place, saying.conversationId, saying.message)
            return told({ saying, error })
          }
        })
      )
    },
    [projectId, place, queryClient]
  )
  const goOn = useCallback(() => {
    const kept = keptSaying(place)
    if (kept !== undefined) hear(kept)
  }, [place, hear])
  // A reload goes on with what was said before it.
  useEffect(() => {
    goOn()
    return () => {
      if (fiber.current !== undefined) Effect.runFork(Fiber.interrupt(fiber.current))
    }
  }, [goOn])
  const speak = useCallback(
    (what: Omit<Saying, "key">) => {
      const saying: Saying = { ...what, key: newRequestKey() }
      keepSaying(place, saying)
      setEnding(undefined)
      setTurn(newTurn(saying))
      hear(saying)
    },
    [place, hear]
  )
  const tryAgain = () => {
    setTurn((before) => before && { ...before, connection: "lost" })
    goOn()
  }
  return { turn, ending, speak, tryAgain }
}

const newTurn = (saying: Saying | undefined): Turn | undefined =>
  saying && { saying, conversationId: saying.conversationId, words: "", calls: [], connection: "open" }

type Change = (how: (before: Turn) => Turn) => void

/** What is heard goes into the turn. After a cut it is told anew that it began; `onBegun` is told once, of a new conversation. */
const listenerOf = (
  saying: Saying,
  change: Change,
  onBegun: (conversationId: string) => void
): SayingListener => {
  let isNew = saying.conversationId === undefined
  return {
    onBegun: (conversationId) => {
      change((before) => ({ ...before, conversationId, words: "", calls: [], connection: "open" }))
      if (isNew) onBegun(conversationId)
      isNew = false
    },
    onWords: (text) => change((before) => ({ ...before, words: before.words + text })),
    onCall: (call) => change((before) => withCall(before, call)),
    onLost: () => change((before) => ({ ...before, connection: "lost" }))
  }
}

/** A call is told when it begins and when it ends; what is said behind one begins a paragraph. */
const withCall = (before: Turn, call: HeardCall): Turn => {
  const isKnown = before.calls.some(({ callId }) => callId === call.callId)
  return isKnown
    ? { ...before, calls: before.calls.map((other) => (other.callId === call.callId ? call : other)) }
    : {
        ...before,
        words: before.words === "" ? "" : `${before.words.trimEnd()}\n\n`,
        calls: [...before.calls, call]
      }
}
