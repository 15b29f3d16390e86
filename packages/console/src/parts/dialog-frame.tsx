/**
 * A dialog over the page: traps the focus, closes on the first Escape, has a title.
 *
 * While what it asked for is under way it does not close: whoever asked sees what becomes of it.
 */
import { useBlocker } from "@tanstack/react-router"
import { Dialog } from "radix-ui"
import { type ReactNode, useRef } from "react"
import { isDialogOpen } from "../keys/is-typing.ts"
import { Button, type ButtonProps } from "./button.tsx"
import { CrossIcon } from "./icons.tsx"
import { leaveEscape, useEscape } from "./use-escape.ts"
import { useLeaving } from "./use-leaving.ts"

interface DialogFrameProps {
  readonly isOpen: boolean
  readonly title: string
  readonly onClose: () => void
  /** Gives the focus back to what had it before. */
  readonly returnsFocus?: boolean
  /** What it asked for is under way. */
  readonly isBusy?: boolean
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
  isBusy = false,
  holds,
  onClosed,
  children
}: DialogFrameProps): ReactNode => {
  const opener = useRef<Element>(null)
  const content = useRef<HTMLDivElement>(null)
  const held = isBusy ? busySentence : holds
  const { type, mayLeave, hold, begin, isHolding, sentence } = useLeaving(held)
  const close = () => {
    begin()
    onClose()
  }
  useEscape(isOpen, content, () => {
    if (mayLeave(true)) close()
  })
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
        if (held === undefined) close()
        else hold()
      }}
    >
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-veil" />
        <Dialog.Content
          ref={content}
          aria-describedby={undefined}
          onInput={({ target }) => type(target)}
          onEscapeKeyDown={leaveEscape}
          onInteractOutside={(event) => {
            if (!mayLeave(false)) event.preventDefault()
          }}
          onOpenAutoFocus={(event) => {
            if (document.activeElement !== document.body) openedBy = document.activeElement
            opener.current = openedBy
            begin()
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
          {sentence !== undefined && (
            <p
              role="status"
              data-kept-open={isBusy ? "busy" : holds === undefined ? "typed" : "held"}
              className="mt-2 text-sm text-caution-ink"
            >
              {sentence}
            </p>
          )}
          {children}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

/** A button that closes the dialog around it, where that may close. */
export const CloseButton = (props: ButtonProps): ReactNode => (
  <Dialog.Close asChild>
    <Button {...props} />
  </Dialog.Close>
)

const busySentence = "Saving… This closes when the server responds."

/** What had the focus before: a dialog that takes the place of another gives it back to what opened the first. */
let openedBy: Element | null = null
