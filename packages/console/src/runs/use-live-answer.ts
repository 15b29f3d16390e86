/**
 * The answer that a run's model is giving at this moment, piece by piece, and what it costs by a guess.
 *
 * What was used is known when an answer is whole. Until then four characters are
 * taken for a token, as the server does where nobody says; whoever shows such a
 * figure marks it.
 */
import { microsPerDollar } from "@tropism/domain/chain"
import { textTokens } from "@tropism/domain/message-size"
import type { OpenRequest } from "@tropism/domain/model-call"
import { costMicrosOf } from "@tropism/domain/model-price"
import type { Run } from "@tropism/domain/run"
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import type { StreamEvent } from "../server/event-stream.ts"
import { openRequestQuery, runQuery } from "../server/run-queries.ts"
import { runStreamPath, useEventStream } from "../server/use-event-stream.ts"

export interface LiveAnswer {
  /** What was heard; who comes late hears the rest, after dots. */
  readonly words: string
  /** What the request has used so far, guessed; undefined while nobody knows what it was shown. */
  readonly estimate: LiveEstimate | undefined
}

export interface LiveEstimate {
  readonly tokens: number
  /** Null where the price is not known. */
  readonly costUsd: number | null
}

interface Heard {
  readonly words: string
  readonly isFromBeginning: boolean
  /** The last event that the model was shown. */
  readonly afterEvent: number
}

/** Undefined while the model says nothing. */
export const useLiveAnswer = (run: Run): LiveAnswer | undefined => {
  const { project } = useConsole()
  const queryClient = useQueryClient()
  const [heard, setHeard] = useState<Heard>()
  const isAtWork = run.status === "running" || run.status === "queued"
  useEventStream(isAtWork ? runStreamPath(project.id, run.id) : undefined, (event) => {
    setHeard((before) => hear(before, event))
    // Its cost is known now, and takes the place of the guess.
    if (event.name === "AssistantMessageEvent")
      void queryClient.invalidateQueries({ queryKey: runQuery(project.id, run.id).queryKey })
  })
  const { data } = useQuery({
    ...openRequestQuery(project.id, run.id, heard?.afterEvent ?? 0),
    enabled: isAtWork && heard !== undefined,
    staleTime: Infinity
  })
  if (!isAtWork || heard === undefined) return undefined
  const { words, isFromBeginning } = heard
  const request = data?.request ?? undefined
  const isCounted = request === undefined || request.step <= run.stepCount
  const said = isFromBeginning ? words : longer(words, request?.said ?? "")
  return {
    words: isFromBeginning ? words : `… ${words}`,
    estimate: isCounted ? undefined : estimateOf(request, said)
  }
}

const longer = (a: string, b: string): string => (a.length < b.length ? b : a)

const estimateOf = ({ estimatedInputTokens, price }: OpenRequest, said: string): LiveEstimate => {
  const usage = { inputTokens: estimatedInputTokens, outputTokens: textTokens(said) }
  const micros = costMicrosOf(price, usage)
  return {
    tokens: usage.inputTokens + usage.outputTokens,
    costUsd: micros === null ? null : micros / microsPerDollar
  }
}

/** A piece is added; what ends an answer stands in the steps, and is no longer said now. */
const hear = (before: Heard | undefined, { name, text }: StreamEvent): Heard | undefined => {
  if (name !== "TextDeltaEvent") return name === "AssistantMessageEvent" ? undefined : before
  const { id, delta }: { readonly id: string; readonly delta: string } = JSON.parse(text)
  const [, after = "0", piece = "1"] = /:(\d+)\.d(\d+)$/.exec(id) ?? []
  const afterEvent = Number(after)
  return before !== undefined && before.afterEvent === afterEvent
    ? { ...before, words: before.words + delta }
    : { words: delta, isFromBeginning: piece === "1", afterEvent }
}
