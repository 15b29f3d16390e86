/**
 * The key map: which single keys mean something on the page now, and whether they are on.
 *
 * Pages enter their keys while they are open, so that one dialog can tell them all.
 */
import { createContext, useContext, useMemo, useRef, useState } from "react"

/** A key as the key map tells it. */
export interface KeyWords {
  /** What is printed on the keys, in the order in which they are pressed. */
  readonly shown: ReadonlyArray<string>
  readonly means: string
}

export interface KeyTable {
  readonly title: string
  readonly keys: ReadonlyArray<KeyWords>
}

export interface KeyMap {
  readonly isOpen: boolean
  readonly areKeysOn: boolean
  readonly open: () => void
  readonly close: () => void
  readonly switchKeys: (areOn: boolean) => void
  /** Enters a page's keys until the answer is called. */
  readonly enter: (table: KeyTable) => () => void
  /** What has been entered, read when the map is opened. */
  readonly tables: () => ReadonlyArray<KeyTable>
}

export const KeyMapContext = createContext<KeyMap | undefined>(undefined)

/** **Gotchas** A defect outside the frame: only pages inside it have keys. */
export const useKeyMap = (): KeyMap => {
  const keyMap = useContext(KeyMapContext)
  if (keyMap === undefined) throw new Error("Keys were asked for outside the console's frame")
  return keyMap
}

export const useNewKeyMap = (): KeyMap => {
  const [isOpen, setIsOpen] = useState(false)
  const [areKeysOn, switchKeys] = useState(true)
  const entered = useRef<ReadonlyArray<KeyTable>>([])
  return useMemo(
    () => ({
      isOpen,
      areKeysOn,
      switchKeys,
      open: () => setIsOpen(true),
      close: () => setIsOpen(false),
      enter: (table) => {
        entered.current = [...entered.current, table]
        return () => {
          entered.current = entered.current.filter((other) => other !== table)
        }
      },
      tables: () => entered.current
    }),
    [isOpen, areKeysOn]
  )
}
