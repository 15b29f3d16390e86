/**
 * A dialog over the page: traps the focus, closes on the first Escape, has a title.
 */
import { useBlocker } from "@tanstack/react-router"
import { Dialog } from "radix-ui"
import { type ReactNode, useRef, useState } from "react"
import { isDialogOpen } from "../keys/is-typing.ts"
import { CrossIcon } from "./icons.tsx"
import { leaveEscape, useEscape } from "./use-escape.ts"

interface DialogFrameProps {
  readonly isOpen: boolean
  readonly title: string
  readonly onClose: () => void
  /** Gives the focus back to what had it before. */
  readonly returnsFocus?: boolean
  /** What closing would lose, in a sentence: then it closes only by what is drawn in it. */
  readonly holds?: string
  /** It is gone, and the focus is free. */
  readonly onClosed?: () => void
  readonly children: ReactNode
}

/** **Details** What bears `data-first-focus` gets the focus first. **Gotchas** Unless it is given back, the focus then goes where `onClosed` sends it: what opened the dialog may be gone by then. */
export const DialogFrame = ({
  isOpen,
  title,
  onClose,
  returnsFocus = false,
  holds,
  onClosed,
  children
}: DialogFrameProps): ReactNode => {
  const opener = useRef<Element>(null)
  const content = useRef<HTMLDivElement>(null)
  const [typing, setTyping] = useState<"nothing" | "typed" | "leaving">("nothing")
  /** Where something was typed: what was sent with its field is not lost any more. */
  const field = useRef<HTMLElement>(null)
  /** What was typed is not lost by one key or a click beside the dialog, and what it holds by neither. */
  const mayLeave = (isAsked: boolean): boolean => {
    const hasTyped = typing !== "nothing" && field.current?.isConnected === true
    if (holds === undefined && (!hasTyped || (isAsked && typing === "leaving"))) return true
    setTyping("leaving")
    return false
  }
  const close = () => {
    setTyping("nothing")
    onClose()
  }
  useEscape(isOpen, content, () => {
    if (mayLeave(true)) close()
  })
  const isHolding = holds !== undefined || typing !== "nothing"
  useBlocker({
    // By its own buttons a dialog goes on to other pages; by the browser's it would only be lost.
    shouldBlockFn: ({ action }) => action !== "PUSH" && action !== "REPLACE" && !mayLeave(true),
    enableBeforeUnload: isHolding,
    disabled: !isOpen || !isHolding
  })
  return (
    <Dialog.Root
      open={isOpen}
      onOpenChange={(open) => {
        if (open) return
        if (holds === undefined) close()
        else setTyping("leaving")
      }}
    >
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-veil" />
        <Dialog.Content
          ref={content}
          aria-describedby={undefined}
          onInput={({ target }) => {
            if (!(target instanceof HTMLElement) || !target.matches(typedInto)) return
            field.current = target
            setTyping("typed")
          }}
          onEscapeKeyDown={leaveEscape}
          onInteractOutside={(event) => {
            if (!mayLeave(false)) event.preventDefault()
          }}
          onOpenAutoFocus={(event) => {
            if (document.activeElement !== document.body) openedBy = document.activeElement
            opener.current = openedBy
            setTyping("nothing")
            const first = document.querySelector<HTMLElement>("[role=dialog] [data-first-focus]")
            if (first === null) return
            event.preventDefault()
            first.focus()
          }}
          onCloseAutoFocus={(event) => {
            // By itself it would go to a trigger, and there is none.
            event.preventDefault()
            if (returnsFocus && opener.current instanceof HTMLElement) opener.current.focus()
            if (!isDialogOpen()) openedBy = null
            onClosed?.()
          }}
          className="enter fixed inset-x-4 top-[max(1rem,12vh)] z-40 mx-auto max-h-[80vh] max-w-lg overflow-y-auto rounded-2xl border border-line bg-surface p-5 shadow-raised outline-none sm:p-6"
        >
          <div className="flex items-start justify-between gap-4">
            <Dialog.Title className="text-lg font-semibold">{title}</Dialog.Title>
            <Dialog.Close
              aria-label="Close"
              className="-m-1 grid size-8 place-items-center rounded-md text-ink-faint hover:bg-sunken hover:text-ink"
            >
              <CrossIcon />
            </Dialog.Close>
          </div>
          {typing === "leaving" && (
            <p role="status" className="mt-2 text-sm text-caution-ink">
              {holds ?? "What you typed is not kept yet. Escape once more drops it, and so does Back."}
            </p>
          )}
          {children}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

/** What had the focus before: a dialog that takes the place of another gives it back to what opened the first. */
let openedBy: Element | null = null

/** Fields that hold words, which somebody would have to write again. */
const typedInto = "textarea, input:not([type=checkbox], [type=radio])"
