/**
 * What was said in a conversation, and what is being said.
 */
import type { ConversationMessage } from "@tropism/domain/conversation"
import { type ReactNode, useEffect, useRef } from "react"
import { Button } from "../parts/button.tsx"
import { Failure } from "../parts/failure.tsx"
import { LongText } from "../parts/long-text.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { ToolCalls } from "./tool-calls.tsx"
import type { Ending, Turn } from "./use-turn.ts"

interface TranscriptProps {
  readonly agentName: string
  readonly messages: ReadonlyArray<ConversationMessage>
  readonly turn: Turn | undefined
  readonly ending: Ending | undefined
  readonly onRetry: (message: string) => void
}

export const Transcript = (props: TranscriptProps): ReactNode => {
  const { agentName, messages, turn, ending, onRetry } = props
  const end = useRef<HTMLDivElement>(null)
  const size = messages.length + (turn === undefined ? 0 : turn.words.length + turn.calls.length + 1)
  useEffect(() => {
    if (size > 0) end.current?.scrollIntoView({ block: "nearest" })
  }, [size])
  return (
    <>
      <ol aria-label="What was said" className="grid gap-4">
        {messages.map((message) => (
          <Said key={message.id} isOwn={message.role === "user"} agentName={agentName} at={message.createdAt}>
            <ToolCalls calls={message.toolCalls} />
            <LongText text={message.content} />
          </Said>
        ))}
        {turn !== undefined && (
          <>
            <Said isOwn agentName={agentName}>
              <LongText text={turn.saying.message} />
            </Said>
            <Said isOwn={false} agentName={agentName}>
              <ToolCalls calls={turn.calls} />
              <Visible text={turn.words} />
            </Said>
          </>
        )}
      </ol>
      <p role="status" className="mt-3 min-h-5 text-xs text-ink-soft">
        {turn !== undefined &&
          (turn.isLost
            ? "The connection is lost; what you said is kept. Trying again."
            : `${agentName} works …`)}
        {turn === undefined && ending?.answer?.status === "waiting" && "Your next message is the answer."}
        {turn === undefined && ending?.answer?.status === "interrupted" && "It was stopped."}
      </p>
      {turn === undefined && ending?.error !== undefined && <Failure error={ending.error} />}
      {turn === undefined && ending !== undefined && isBroken(ending) && (
        <Button size="small" onClick={() => onRetry(ending.saying.message)}>
          Say it again
        </Button>
      )}
      <div ref={end} />
    </>
  )
}

const isBroken = ({ answer, error }: Ending): boolean =>
  error !== undefined || answer?.status === "failed" || answer?.status === "interrupted"

interface SaidProps {
  readonly isOwn: boolean
  readonly agentName: string
  readonly at?: string
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
