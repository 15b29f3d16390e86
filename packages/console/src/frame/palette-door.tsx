/**
 * What opens the palette: a button, ⌘K or Ctrl K anywhere, `/` outside fields. It is loaded when it is opened first.
 */
import { type ReactNode, type RefObject, useEffect, useRef, useState } from "react"
import { commandText } from "../keys/command-key.ts"
import { isDialogOpen, isPlain, isTyping } from "../keys/is-typing.ts"
import { useKeyMap } from "../keys/key-map.ts"
import { Button } from "../parts/button.tsx"
import { DialogFrame } from "../parts/dialog-frame.tsx"
import { SearchIcon } from "../parts/icons.tsx"
import { lazyPart } from "../parts/lazy-part.tsx"
import { fieldMark } from "./palette-field.ts"

const Palette = lazyPart(() => import("../palette/palette.tsx"), "Palette", {
  fetching: () => null,
  missing: ({ onClose }, again) => (
    <DialogFrame isOpen title="Not here yet" onClose={onClose} returnsFocus>
      <p className="mt-2 text-sm text-ink-soft">
        What finds anything could not be fetched: the server does not answer.
      </p>
      <p className="mt-4">
        <Button data-first-focus onClick={again}>
          Try again
        </Button>
      </p>
    </DialogFrame>
  )
})

/**
 * Keeps what is typed, from the key that opens the palette until its field has the focus: it is meant for the palette, and a
 * letter elsewhere may decide something. Answers what ends that.
 */
const keepTyped = (typed: RefObject<string>): (() => void) => {
  const keep = (event: KeyboardEvent) => {
    if (event.target instanceof Element && event.target.matches(`[${fieldMark}]`)) return
    const isLetter = isPlain(event) && event.key.length === 1
    // In a dialog that is there the other keys have their own meaning.
    if (!isLetter && isDialogOpen()) return
    event.stopImmediatePropagation()
    if (!isLetter) return
    event.preventDefault()
    typed.current += event.key
  }
  window.addEventListener("keydown", keep, true)
  return () => window.removeEventListener("keydown", keep, true)
}

export const PaletteDoor = (): ReactNode => {
  const [isOpen, setIsOpen] = useState(false)
  const { areKeysOn } = useKeyMap()
  const typedAhead = useRef("")
  const stopKeeping = useRef(() => {})
  const open = () => {
    typedAhead.current = ""
    stopKeeping.current = keepTyped(typedAhead)
    setIsOpen(true)
  }
  const close = () => {
    stopKeeping.current()
    setIsOpen(false)
  }
  useEffect(() => () => stopKeeping.current(), [])
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const isAsked =
        ((event.metaKey || event.ctrlKey) && !event.altKey && event.key.toLowerCase() === "k") ||
        (event.key === "/" && areKeysOn && isPlain(event) && !isTyping(event.target))
      if (!isAsked || isDialogOpen()) return
      event.preventDefault()
      open()
    }
    document.addEventListener("keydown", listen)
    return () => document.removeEventListener("keydown", listen)
  }, [areKeysOn])
  return (
    <>
      <button
        type="button"
        onClick={open}
        title={`Go to anything (${commandText("K")} or /)`}
        className="flex h-9 items-center gap-2 rounded-lg px-2.5 text-sm text-ink-soft hover:bg-sunken hover:text-ink"
      >
        <SearchIcon />
        <span className="sr-only">Go to anything</span>
        <kbd className="hidden font-sans text-2xs text-ink-faint hover-device:inline">{commandText("K")}</kbd>
      </button>
      {isOpen && <Palette typedAhead={typedAhead} onClose={close} />}
    </>
  )
}
