/**
 * What opens the palette: a button, ⌘K or Ctrl K anywhere, `/` outside fields. It is loaded when it is opened first.
 */
import { type ReactNode, useCallback, useEffect, useState } from "react"
import { commandText } from "../keys/command-key.ts"
import { isDialogOpen, isPlain, isTyping } from "../keys/is-typing.ts"
import { useKeyMap } from "../keys/key-map.ts"
import { keepNoMore, keepTyped } from "../keys/typed-ahead.ts"
import { Button } from "../parts/button.tsx"
import { DialogFrame } from "../parts/dialog-frame.tsx"
import { SearchIcon } from "../parts/icons.tsx"
import { lazyPart } from "../parts/lazy-part.tsx"

const Palette = lazyPart(() => import("../palette/palette.tsx"), "Palette", {
  fetching: () => null,
  missing: ({ onClose }, again) => (
    <DialogFrame isOpen title="Not loaded" onClose={onClose} returnsFocus>
      <p data-fault="notFetched" className="mt-2 text-sm text-ink-soft">
        Search could not be loaded: the server does not respond.
      </p>
      <p className="mt-4">
        <Button data-first-focus onClick={again}>
          Try again
        </Button>
      </p>
    </DialogFrame>
  )
})

export const PaletteDoor = (): ReactNode => {
  const [isOpen, setIsOpen] = useState(false)
  const [opener, setOpener] = useState<Element | null>(null)
  const open = useCallback(() => {
    setOpener(document.activeElement)
    keepTyped()
    setIsOpen(true)
  }, [])
  const { areKeysOn } = useKeyMap()
  useEffect(() => keepNoMore, [])
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
  }, [areKeysOn, open])
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
      {isOpen && (
        <Palette
          opener={opener}
          onClose={() => {
            keepNoMore()
            setIsOpen(false)
          }}
        />
      )}
    </>
  )
}
