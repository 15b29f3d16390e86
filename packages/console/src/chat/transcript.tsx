/**
 * What was said in a conversation, and what is being said.
 */
import type { ConversationMessage, CutReason } from "@tropism/domain/conversation"
import { type ReactNode, useState } from "react"
import { Button } from "../parts/button.tsx"
import { Failure } from "../parts/failure.tsx"
import { LongText } from "../parts/long-text.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { type ShownCall, ToolCalls } from "./tool-calls.tsx"
import { useNewestInView } from "./use-newest-in-view.ts"
import type { Ending, Turn } from "./use-turn.ts"

interface TranscriptProps {
  readonly agentName: string
  readonly messages: ReadonlyArray<ConversationMessage>
  readonly turn: Turn | undefined
  readonly ending: Ending | undefined
  readonly onRetry: (message: string) => void
  readonly onTryAgain: () => void
}

export const Transcript = (props: TranscriptProps): ReactNode => {
  const { agentName, messages, turn, ending, onRetry, onTryAgain } = props
  const { opened, toggle } = useOpened()
  const size = messages.length + (turn === undefined ? 0 : turn.words.length + turn.calls.length + 1)
  const end = useNewestInView(size, turn?.saying.key)
  return (
    <>
      <ol aria-label="Messages" data-testid="transcript" className="grid gap-4">
        {linesOf(messages, turn).map(({ isOwn, at, calls, cut, firstCall, isKept, key, question, text }) => (
          <Said key={key} isOwn={isOwn} agentName={agentName} at={at}>
            <ToolCalls
              calls={calls}
              firstPlace={firstCall}
              opened={opened.get(question) ?? noPlaces}
              onToggle={(place, isOpen) => toggle(question, place, isOpen)}
            />
            {isKept ? <LongText text={text} /> : <Visible text={text} />}
            {cut !== undefined && <p className="mt-2 text-xs text-ink-soft">{cutSentences[cut]}</p>}
          </Said>
        ))}
      </ol>
      <p role="status" data-connection={turn?.connection} className="mt-3 min-h-5 text-xs text-ink-soft">
        {turn !== undefined && connectionWords(agentName)[turn.connection]}
        {turn === undefined &&
          ending?.answer?.status === "waiting" &&
          "Your next message answers this question."}
        {turn === undefined && ending?.answer?.status === "interrupted" && "Stopped."}
      </p>
      {turn?.connection === "left" && (
        <Button size="small" onClick={onTryAgain}>
          Try again
        </Button>
      )}
      {turn === undefined && ending?.error !== undefined && <Failure error={ending.error} />}
      {turn === undefined && ending !== undefined && isBroken(ending) && (
        <Button
          data-testid="say-again"
          data-answer={ending.answer?.status}
          size="small"
          onClick={() => onRetry(ending.saying.message)}
        >
          Retry
        </Button>
      )}
      {/* The field below stays in view and would cover the newest words. */}
      <div ref={end} className="scroll-mb-48" />
    </>
  )
}

const connectionWords = (agentName: string) => ({
  open: `${agentName} is replying …`,
  lost: "Connection lost. Your message is kept; reconnecting.",
  left: "The server does not respond. Your message is kept."
})

const noPlaces: ReadonlySet<number> = new Set()

/** Which calls are open, by the question that they are for and their place in all of its answer: kept, it has more lines than while it is said. */
const useOpened = () => {
  const [opened, setOpened] = useState<ReadonlyMap<number, ReadonlySet<number>>>(new Map())
  const toggle = (question: number, place: number, isOpen: boolean) =>
    setOpened((before) => {
      const places = new Set(before.get(question))
      if (isOpen) places.add(place)
      else places.delete(place)
      return new Map(before).set(question, places)
    })
  return { opened, toggle }
}

interface Line {
  /** Of a line with calls the question and its first call, so that it stays the same line when it is kept. */
  readonly key: string
  /** How many questions were asked so far. */
  readonly question: number
  readonly isOwn: boolean
  /** When it was kept; undefined of what is being said. */
  readonly at: string | undefined
  readonly calls: ReadonlyArray<ShownCall>
  /** The place of the first of them among the calls of the whole answer. */
  readonly firstCall: number
  readonly isKept: boolean
  readonly text: string
  /** Why an answer is not whole. */
  readonly cut?: CutReason | undefined
}

const cutSentences: Readonly<Record<CutReason, string>> = {
  length: "Truncated at the model's output token limit.",
  "content-filter": "Stopped by the content filter of the model's provider.",
  pause: "Paused by the model's provider."
}

/** What was said, and behind it what is being said. */
const linesOf = (
  messages: ReadonlyArray<ConversationMessage>,
  turn: Turn | undefined
): ReadonlyArray<Line> => {
  let question = 0
  let firstCall = 0
  const kept = messages.map(({ content, createdAt, finishReason, id, role, toolCalls }): Line => {
    const isOwn = role === "user"
    if (isOwn) {
      question += 1
      firstCall = 0
    }
    const place = firstCall
    firstCall += toolCalls.length
    return {
      key: toolCalls.length === 0 ? id : callsKey(question, place),
      question,
      isOwn,
      at: createdAt,
      calls: toolCalls,
      firstCall: place,
      isKept: true,
      text: content,
      cut: finishReason
    }
  })
  if (turn === undefined) return kept
  const now = { question: question + 1, at: undefined, firstCall: 0 }
  return [
    ...kept,
    { ...now, key: "question", isOwn: true, calls: [], isKept: true, text: turn.saying.message },
    {
      ...now,
      key: turn.calls.length === 0 ? "answer" : callsKey(now.question, 0),
      isOwn: false,
      calls: turn.calls,
      isKept: false,
      text: turn.words
    }
  ]
}

const callsKey = (question: number, firstCall: number): string => `calls ${question} ${firstCall}`

const isBroken = ({ answer, error }: Ending): boolean =>
  error !== undefined || answer?.status === "failed" || answer?.status === "interrupted"

interface SaidProps {
  readonly isOwn: boolean
  readonly agentName: string
  readonly at: string | undefined
  readonly children: ReactNode
}

const Said = ({ isOwn, agentName, at, children }: SaidProps): ReactNode => (
  <li className={`min-w-0 ${isOwn ? "ml-8 sm:ml-24" : "mr-8 sm:mr-24"}`}>
    <p className={`mb-1 text-2xs text-ink-faint ${isOwn ? "text-right" : ""}`}>
      {isOwn ? "You" : <Visible text={agentName} />}
      {at !== undefined && (
        <>
          {", "}
          <TimeAgo instant={at} />
        </>
      )}
    </p>
    <div
      className={`rounded-2xl border px-4 py-2.5 text-sm whitespace-pre-wrap ${isOwn ? "border-transparent bg-leaf-soft" : "border-line bg-surface"}`}
    >
      {children}
    </div>
  </li>
)
