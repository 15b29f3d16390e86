/**
 * One field that leads to anything: typed words above, what they find below.
 *
 * The focus stays in the field; arrows choose, Enter opens, Escape closes.
 */
import { Dialog } from "radix-ui"
import {
  type FocusEvent,
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useId,
  useRef,
  useState
} from "react"
import { fieldMark, takeTyped } from "../keys/typed-ahead.ts"
import { limits } from "../limits.ts"
import { SearchIcon } from "../parts/icons.tsx"
import { leaveEscape, useEscape } from "../parts/use-escape.ts"
import { useLater } from "../parts/use-later.ts"
import { Visible } from "../parts/visible.tsx"
import { failureSentence } from "../server/problem.ts"
import { countText } from "../words/amounts.ts"
import type { Entry } from "./entries.ts"
import { useEntries } from "./use-entries.ts"

interface PaletteProps {
  /** What had the focus before, and has it again when nothing was opened. */
  readonly opener: Element | null
  readonly onClose: () => void
}

export const Palette = ({ opener, onClose }: PaletteProps): ReactNode => {
  const content = useRef<HTMLDivElement>(null)
  const isLeft = useRef(false)
  const leave = () => {
    isLeft.current = true
    onClose()
  }
  useEscape(true, content, leave)
  return (
    <Dialog.Root
      open
      onOpenChange={(isOpen) => {
        if (!isOpen) leave()
      }}
    >
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-veil" />
        <Dialog.Content
          ref={content}
          onEscapeKeyDown={leaveEscape}
          onCloseAutoFocus={(event) => {
            // By itself it would go to the field, which is gone; a page that was opened takes it.
            event.preventDefault()
            if (isLeft.current && opener instanceof HTMLElement) opener.focus()
          }}
          aria-describedby={undefined}
          className="enter fixed inset-x-3 top-[max(0.75rem,10vh)] z-40 mx-auto flex max-h-[76vh] max-w-xl flex-col overflow-hidden rounded-2xl border border-line bg-surface shadow-raised outline-none"
        >
          <Dialog.Title className="sr-only">Go to anything</Dialog.Title>
          <Finder onClose={onClose} />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

const Finder = ({ onClose }: Pick<PaletteProps, "onClose">): ReactNode => {
  const [typed, setTyped] = useState("")
  const [settled, setSettled] = useState(typed)
  const [chosen, setChosen] = useState(0)
  // Enter came before anything was found.
  const [isAwaited, setIsAwaited] = useState(false)
  const later = useLater(limits.searchPauseMs)
  const listId = useId()
  const { entries, isSearching, error } = useEntries(typed, settled)
  const place = Math.min(chosen, entries.length - 1)
  const open = (entry: Entry) => {
    onClose()
    entry.open()
  }
  const change = (value: string) => {
    setTyped(value)
    setChosen(0)
    setIsAwaited(false)
  }
  const addTyped = ({ currentTarget }: FocusEvent<HTMLInputElement>) => {
    const added = takeTyped()
    if (added === "") return
    change(currentTarget.value + added)
    setSettled(currentTarget.value + added)
  }
  if (isAwaited && !isSearching && entries.length === 0) setIsAwaited(false)
  const found = isAwaited ? entries[0] : undefined
  useEffect(() => {
    if (found === undefined) return
    onClose()
    found.open()
  }, [found, onClose])
  const press = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    const entry = entries[place]
    if (by !== undefined) setChosen((place + by + entries.length) % Math.max(entries.length, 1))
    else if (event.key === "Enter" && !event.nativeEvent.isComposing) {
      if (entry) open(entry)
      else setIsAwaited(isSearching)
    } else return
    event.preventDefault()
  }
  return (
    <>
      <label className="relative flex items-center border-b border-line">
        <span className="sr-only">Search pages, agents, objects, tasks and conversations</span>
        <SearchIcon className="absolute left-4 text-ink-faint" />
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls={listId}
          aria-autocomplete="list"
          {...(entries[place] && { "aria-activedescendant": `${listId}-${place}` })}
          autoComplete="off"
          spellCheck={false}
          maxLength={limits.maxSearchCharacters}
          {...{ [fieldMark]: "" }}
          onFocus={addTyped}
          value={typed}
          onChange={(event) => {
            const { value } = event.target
            change(value)
            later(() => setSettled(value))
          }}
          onKeyDown={press}
          placeholder="Go to anything"
          className="h-13 w-full bg-transparent pr-4 pl-11 text-base outline-none placeholder:text-ink-faint"
        />
      </label>
      <EntryList id={listId} entries={entries} place={place} onChoose={setChosen} onOpen={open} />
      <p
        role="status"
        data-state={
          error !== null ? "failed" : isSearching ? "searching" : entries.length === 0 ? "nothing" : "found"
        }
        className="border-t border-line px-4 py-2 text-2xs text-ink-faint"
      >
        {error !== null
          ? failureSentence(error)
          : isSearching
            ? "Searching …"
            : entries.length === 0
              ? "No results"
              : `${countText(entries.length, "result")}. ↑↓ to select, ↵ to open`}
      </p>
    </>
  )
}

interface EntryListProps {
  readonly id: string
  readonly entries: ReadonlyArray<Entry>
  readonly place: number
  readonly onChoose: (place: number) => void
  readonly onOpen: (entry: Entry) => void
}

/** The focus is the field's; who hears the page is told which entry is chosen. */
const EntryList = ({ id, entries, place, onChoose, onOpen }: EntryListProps): ReactNode => (
  <div id={id} role="listbox" aria-label="Results" tabIndex={-1} className="min-h-0 grow overflow-y-auto p-2">
    {entries.map((entry, index) => (
      <button
        type="button"
        // The field keeps the focus; the arrows come here without it.
        tabIndex={-1}
        key={`${entry.group} ${entry.id}`}
        id={`${id}-${index}`}
        role="option"
        aria-selected={index === place}
        ref={(element) => {
          if (index === place) element?.scrollIntoView({ block: "nearest" })
        }}
        onPointerMove={() => onChoose(index)}
        onClick={() => onOpen(entry)}
        className="flex w-full items-baseline gap-3 rounded-lg px-3 py-2 text-left text-sm aria-selected:bg-leaf-soft"
      >
        <span className="min-w-0 grow truncate">
          <Visible text={entry.title} />
        </span>
        {entry.hint !== "" && (
          <span className="max-w-[40%] shrink-0 truncate text-2xs text-ink-soft">
            <Visible text={entry.hint} />
          </span>
        )}
        <span className="shrink-0 text-2xs text-ink-soft">{entry.group}</span>
      </button>
    ))}
  </div>
)
