/**
 * What opens the palette: a button, ⌘K or Ctrl K anywhere, `/` outside fields. It is loaded when it is opened first.
 */
import { lazy, type ReactNode, Suspense, useEffect, useState } from "react"
import { isDialogOpen, isPlain, isTyping } from "../keys/is-typing.ts"
import { useKeyMap } from "../keys/key-map.ts"
import { SearchIcon } from "../parts/icons.tsx"

const Palette = lazy(() => import("../palette/palette.tsx").then(({ Palette }) => ({ default: Palette })))

export const PaletteDoor = (): ReactNode => {
  const [isOpen, setIsOpen] = useState(false)
  const { areKeysOn } = useKeyMap()
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const isAsked =
        ((event.metaKey || event.ctrlKey) && !event.altKey && event.key.toLowerCase() === "k") ||
        (event.key === "/" && areKeysOn && isPlain(event) && !isTyping(event.target))
      if (!isAsked || isDialogOpen()) return
      event.preventDefault()
      setIsOpen(true)
    }
    document.addEventListener("keydown", listen)
    return () => document.removeEventListener("keydown", listen)
  }, [areKeysOn])
  return (
    <>
      <button
        type="button"
        onClick={() => setIsOpen(true)}
        title="Go to anything (⌘K or /)"
        className="flex h-9 items-center gap-2 rounded-lg px-2.5 text-sm text-ink-soft hover:bg-sunken hover:text-ink"
      >
        <SearchIcon />
        <span className="sr-only">Go to anything</span>
        <kbd className="hidden font-sans text-2xs text-ink-faint hover-device:inline">⌘K</kbd>
      </button>
      {isOpen && (
        <Suspense fallback={null}>
          <Palette onClose={() => setIsOpen(false)} />
        </Suspense>
      )}
    </>
  )
}
