/**
 * Where a person writes to an agent: Enter sends, Shift and Enter begin a line.
 */
import { conversationBounds } from "@tropism/domain/conversation"
import { type ReactNode, useEffect, useId, useRef } from "react"
import { Button } from "../parts/button.tsx"

interface ComposerProps {
  readonly agentName: string
  /** While the agent works, what is written waits. */
  readonly isAtWork: boolean
  /** Whether the focus begins here: what was said began a conversation, and the person goes on writing. */
  readonly hasFocus: boolean
  /** What is written and not yet said. */
  readonly text: string
  readonly onWrite: (text: string) => void
  readonly onSend: (message: string) => void
  readonly onStop: (() => void) | undefined
}

export const Composer = (props: ComposerProps): ReactNode => {
  const { agentName, isAtWork, hasFocus, text, onWrite, onSend, onStop } = props
  const id = useId()
  const area = useRef<HTMLTextAreaElement>(null)
  const wasFocused = useRef(hasFocus)
  useEffect(() => {
    const { current } = area
    if (current === null || !wasFocused.current) return
    current.focus({ preventScroll: true })
    // Who goes on writing does so behind what is there.
    current.setSelectionRange(current.value.length, current.value.length)
  }, [])
  const send = () => {
    if (isAtWork || text.trim() === "") return
    onSend(text)
  }
  return (
    <form
      className="sticky bottom-0 z-10 mt-4 grid gap-2 border-t border-line bg-canvas pt-3 pb-4"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      <label htmlFor={id} className="text-xs text-ink-faint">
        Message to <bdi>{agentName}</bdi>
      </label>
      <textarea
        ref={area}
        id={id}
        value={text}
        rows={3}
        maxLength={conversationBounds.messageMaxChars}
        onChange={(event) => onWrite(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return
          event.preventDefault()
          send()
        }}
        className="w-full rounded-xl border border-line-strong bg-surface px-3.5 py-2.5 text-sm"
      />
      <div className="flex items-center justify-end gap-2">
        <span className="mr-auto text-2xs text-ink-faint">Enter sends, Shift + Enter adds a line.</span>
        {isAtWork && onStop !== undefined && <Button onClick={onStop}>Stop</Button>}
        <Button type="submit" weight="primary" disabled={isAtWork || text.trim() === ""}>
          Send
        </Button>
      </div>
    </form>
  )
}
