/**
 * Words that somebody is typing decide nothing when their field is taken away.
 *
 * What others do may remove the field under somebody's hands, and the letters
 * that follow would be keys of the page: `a` approves. So letters mean nothing,
 * until the hands have rested, where the last one was meant for a field that was
 * left neither by a key nor by the pointer, or where the field went that had the focus.
 * Letters for a palette that is not there yet are kept for it before all else.
 */
import { useEffect } from "react"
import { limits } from "../limits.ts"
import { readClock } from "../parts/read-clock.ts"
import { isPlain, isTyping } from "./is-typing.ts"
import { isKept } from "./typed-ahead.ts"

/** **Gotchas** It must listen before everybody else: it is used once, by the frame, above all that hears keys in the capture phase. */
export const useTakenAway = (): void => {
  useEffect(() => {
    /** When the last letter came that was meant for a field, or the field went; 0 once it was left on purpose. */
    let typedAtMs = 0
    let focused: EventTarget | null = null
    const follow = ({ target }: FocusEvent) => {
      if (isTyping(focused) && focused instanceof Node && !focused.isConnected) typedAtMs = readClock()
      focused = target
    }
    const leave = () => {
      typedAtMs = 0
      focused = null
    }
    const listen = (event: KeyboardEvent) => {
      if (isKept(event)) return
      const isLetter = isPlain(event) && [...event.key].length === 1
      if (isTyping(event.target)) {
        if (!isLetter) return leave()
        typedAtMs = readClock()
        focused = event.target
        return
      }
      if (!isLetter || readClock() - typedAtMs > limits.typingRestMs) {
        typedAtMs = 0
        return
      }
      typedAtMs = readClock()
      event.preventDefault()
      event.stopImmediatePropagation()
    }
    window.addEventListener("keydown", listen, { capture: true })
    window.addEventListener("pointerdown", leave, { capture: true })
    window.addEventListener("focusin", follow, { capture: true })
    return () => {
      window.removeEventListener("keydown", listen, { capture: true })
      window.removeEventListener("pointerdown", leave, { capture: true })
      window.removeEventListener("focusin", follow, { capture: true })
    }
  }, [])
}
