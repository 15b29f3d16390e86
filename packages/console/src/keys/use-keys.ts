/**
 * Single keys of a page: told in the key map, heard while nobody types and no dialog is open.
 */
import { useEffect, useRef } from "react"
import { isDialogOpen, isPlain, isTyping } from "./is-typing.ts"
import { type KeyWords, useKeyMap } from "./key-map.ts"

export interface Binding extends KeyWords {
  /** What the browser calls the key. */
  readonly key: string
  /** Whether it may be held down; a key that decides something may not. */
  readonly repeats?: boolean
  readonly run: () => void
}

/** Binds keys while the component is mounted; `title` stands above them in the key map. */
export const useKeys = (title: string, bindings: ReadonlyArray<Binding>, isListening = true): void => {
  const { enter, areKeysOn } = useKeyMap()
  const latest = useRef(bindings)
  useEffect(() => {
    latest.current = bindings
  })
  const words = JSON.stringify(bindings.map(({ shown, means }) => ({ shown, means })))
  useEffect(() => enter({ title, keys: JSON.parse(words) }), [enter, title, words])
  const isOn = isListening && areKeysOn
  useEffect(() => {
    if (!isOn) return
    const listen = (event: KeyboardEvent) => {
      if (event.defaultPrevented || !isPlain(event) || isTyping(event.target) || isDialogOpen()) return
      const binding = latest.current.find(({ key }) => key === event.key)
      if (binding === undefined || (event.repeat && binding.repeats !== true)) return
      event.preventDefault()
      binding.run()
    }
    document.addEventListener("keydown", listen)
    return () => document.removeEventListener("keydown", listen)
  }, [isOn])
}
