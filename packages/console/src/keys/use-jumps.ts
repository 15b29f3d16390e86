/**
 * `g` and a letter go to a page, `?` shows the keys.
 *
 * The letter is heard before the page hears it: `g a` goes to the agents and
 * never approves what is current.
 */
import { useEffect, useRef } from "react"
import { limits } from "../limits.ts"
import { isDialogOpen, isPlain, isTyping } from "./is-typing.ts"
import { useKeyMap } from "./key-map.ts"
import { readClock } from "../parts/read-clock.ts"

/** Calls `onJump` with the letter that followed a `g`; any other letter then means nothing. */
export const useJumps = (onJump: (letter: string) => void): void => {
  const { areKeysOn, open } = useKeyMap()
  const latest = useRef(onJump)
  useEffect(() => {
    latest.current = onJump
  })
  useEffect(() => {
    if (!areKeysOn) return
    let untilMs = 0
    const listen = (event: KeyboardEvent) => {
      if (!isPlain(event) || isTyping(event.target) || isDialogOpen()) return
      if (["Shift", "CapsLock"].includes(event.key)) return
      const isJump = readClock() < untilMs
      untilMs = 0
      if (isJump && event.key.length === 1) latest.current(event.key.toLowerCase())
      else if (event.key === "g" && !event.repeat) untilMs = readClock() + limits.jumpMs
      else if (event.key === "?") open()
      else return
      event.preventDefault()
      event.stopImmediatePropagation()
    }
    window.addEventListener("keydown", listen, { capture: true })
    return () => window.removeEventListener("keydown", listen, { capture: true })
  }, [areKeysOn, open])
}
