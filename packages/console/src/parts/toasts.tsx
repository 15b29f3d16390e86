/**
 * Short messages about what a decision did, read out by screen readers and gone after a while.
 *
 * A refusal interrupts and stays longer; F8 moves the focus to the messages.
 * They are for who is signed in, and go with them.
 */
import { Toast } from "radix-ui"
import { createContext, type ReactNode, useCallback, useContext, useRef, useState } from "react"
import { isDialogOpen } from "../keys/is-typing.ts"
import { limits } from "../limits.ts"
import { CautionIcon, CheckIcon, CrossIcon } from "./icons.tsx"

export interface Message {
  readonly tone: "done" | "refused"
  readonly title: string
  readonly sentence: string
  /** Of a refusal: the server gave no answer, so it may have been done. */
  readonly isUnknown?: boolean
  /** What can be done about it while it is shown. */
  readonly action?: { readonly label: string; readonly run: () => void }
  /** Of a refusal: why, as a code. */
  readonly reason?: string
}

interface Shown extends Message {
  readonly id: number
}

const Show = createContext<(message: Message) => void>(() => {})

/** Shows a message; may be called from anywhere below the provider. */
export const useToasts = (): ((message: Message) => void) => useContext(Show)

export const ToastsProvider = ({ children }: { readonly children: ReactNode }): ReactNode => {
  const [shown, setShown] = useState<ReadonlyArray<Shown>>([])
  const nextId = useRef(0)
  const show = useCallback((message: Message) => {
    const id = nextId.current++
    setShown((before) => [...before, { ...message, id }].slice(-limits.maxToasts))
  }, [])
  const close = (id: number) => setShown((before) => before.filter((message) => message.id !== id))
  return (
    <Show value={show}>
      <Toast.Provider swipeDirection="right" label="Message">
        {children}
        {shown.map((message) => (
          <ToastCard key={message.id} message={message} onClose={() => close(message.id)} />
        ))}
        {/* Above a bar at the bottom of the page, where there is one. */}
        <Toast.Viewport className="fixed sm:in-[body:has([data-bottom-bar])]:bottom-20 top-14 right-0 z-50 sm:top-auto sm:right-auto sm:bottom-0 sm:left-0 flex w-[min(26rem,100vw)] flex-col gap-2 p-4 outline-none" />
      </Toast.Provider>
    </Show>
  )
}

interface ToastCardProps {
  readonly message: Shown
  readonly onClose: () => void
}

const ToastCard = ({ message, onClose }: ToastCardProps): ReactNode => {
  const isDone = message.tone === "done"
  return (
    <Toast.Root
      data-outcome={message.isUnknown === true ? "unknown" : message.tone}
      type={isDone ? "background" : "foreground"}
      duration={isDone && message.action === undefined ? limits.toastMs : limits.refusalToastMs}
      onEscapeKeyDown={(event) => {
        // The key belongs to the dialog over which the message appeared.
        if (isDialogOpen()) event.preventDefault()
      }}
      onOpenChange={(isOpen) => {
        if (!isOpen) onClose()
      }}
      data-reason={message.reason}
      className="enter flex items-start gap-3 rounded-xl border border-line bg-surface py-3 pr-2 pl-4 shadow-raised"
    >
      <span className={`mt-1 ${isDone ? "text-leaf" : "text-caution-ink"}`}>
        {isDone ? <CheckIcon /> : <CautionIcon />}
      </span>
      <div className="min-w-0 grow">
        <Toast.Title className="text-sm font-medium">{message.title}</Toast.Title>
        <Toast.Description className="foreign mt-0.5 text-xs text-ink-soft">
          {message.sentence}
        </Toast.Description>
        {message.action !== undefined && (
          <Toast.Action asChild altText={message.action.label}>
            <button
              type="button"
              onClick={message.action.run}
              className="mt-1.5 rounded text-xs font-medium text-leaf underline-offset-2 hover:underline"
            >
              {message.action.label}
            </button>
          </Toast.Action>
        )}
      </div>
      <Toast.Close
        aria-label="Dismiss"
        className="grid size-7 place-items-center rounded-md text-ink-faint hover:bg-sunken hover:text-ink"
      >
        <CrossIcon size="small" />
      </Toast.Close>
    </Toast.Root>
  )
}
