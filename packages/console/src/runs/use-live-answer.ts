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
import { openRequestQuery, runQuery } from "../server/run-queries.ts"
import { runStreamPath, useEventStream } from "../server/use-event-stream.ts"
import { hear, type HeardAnswer, knownWords, shownWords } from "./heard-answer.ts"

export interface LiveAnswer {
  /** What was heard, with dots for what was not. */
  readonly words: string
  /** What the request has used so far, guessed; undefined while nobody knows what it was shown. */
  readonly estimate: LiveEstimate | undefined
}

export interface LiveEstimate {
  readonly tokens: number
  /** Null where the price is not known. */
  readonly costUsd: number | null
}

/** Undefined while the model says nothing. */
export const useLiveAnswer = (run: Run): LiveAnswer | undefined => {
  const { project } = useConsole()
  const queryClient = useQueryClient()
  const [heard, setHeard] = useState<HeardAnswer>()
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
  const request = data?.request ?? undefined
  const isCounted = request === undefined || request.step <= run.stepCount
  return {
    words: shownWords(heard),
    estimate: isCounted ? undefined : estimateOf(request, knownWords(heard, request.said))
  }
}

const estimateOf = ({ estimatedInputTokens, price }: OpenRequest, said: string): LiveEstimate => {
  const usage = { inputTokens: estimatedInputTokens, outputTokens: textTokens(said) }
  const micros = costMicrosOf(price, usage)
  return {
    tokens: usage.inputTokens + usage.outputTokens,
    costUsd: micros === null ? null : micros / microsPerDollar
  }
}
