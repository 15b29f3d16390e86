/**
 * Whether a dialog may be left, and what is said where it may not: what was typed goes by the second try, what it holds by none.
 */
import { useRef, useState } from "react"

interface Leaving {
  /** Something was typed into a field. */
  readonly type: (target: EventTarget) => void
  /** Whether it may close: somebody has asked for that by a key or by Back, or has only clicked beside it. */
  readonly mayLeave: (isAsked: boolean) => boolean
  /** It was to be closed by what it holds: that is said. */
  readonly hold: () => void
  /** Nothing is typed. */
  readonly begin: () => void
  /** Whether something would be lost with the page. */
  readonly isHolding: boolean
  /** Why it did not close, in a sentence. */
  readonly sentence: string | undefined
}

/** `holds` is what closing would lose, in a sentence. */
export const useLeaving = (holds: string | undefined): Leaving => {
  const [typing, setTyping] = useState<"nothing" | "typed" | "leaving">("nothing")
  const [isHeld, setIsHeld] = useState(false)
  if (isHeld && holds === undefined) setIsHeld(false)
  /** Where something was typed: what was sent with its field is not lost any more. */
  const field = useRef<HTMLElement>(null)
  return {
    type: (target) => {
      if (!(target instanceof HTMLElement) || !target.matches(typedInto)) return
      field.current = target
      setTyping("typed")
    },
    mayLeave: (isAsked) => {
      if (holds !== undefined) {
        setIsHeld(true)
        return false
      }
      const hasTyped = typing !== "nothing" && field.current?.isConnected === true
      if (!hasTyped || (isAsked && typing === "leaving")) return true
      setTyping("leaving")
      return false
    },
    hold: () => setIsHeld(true),
    begin: () => setTyping("nothing"),
    isHolding: holds !== undefined || typing !== "nothing",
    sentence: isHeld ? holds : typing === "leaving" ? typedSentence : undefined
  }
}

const typedSentence = "Press Esc again to discard your changes."

/** Fields that hold words, which somebody would have to write again. */
const typedInto = "textarea, input:not([type=checkbox], [type=radio])"
