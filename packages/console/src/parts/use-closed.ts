/**
 * Closes a form to typing and choosing while what stands in it is being sent: it goes when that is done, and so would what was changed.
 *
 * The focus stays where it is; a field that was disabled would lose it.
 */
import { type RefObject, useEffect } from "react"

export const useClosed = (form: RefObject<HTMLFormElement | null>, isClosed: boolean): void => {
  useEffect(() => {
    const { current } = form
    if (current === null || !isClosed) return
    const refuse = (event: Event) => event.preventDefault()
    const chosen = new Map(Array.from(current.querySelectorAll("select"), (each) => [each, each.value]))
    const refuseClick = (event: Event) => {
      if (!(event.target instanceof HTMLInputElement) || !isClicked.includes(event.target.type)) return
      event.preventDefault()
      event.stopPropagation()
    }
    const chooseBack = (event: Event) => {
      if (!(event.target instanceof HTMLSelectElement)) return
      event.stopPropagation()
      event.target.value = chosen.get(event.target) ?? event.target.value
    }
    current.addEventListener("beforeinput", refuse)
    current.addEventListener("click", refuseClick, true)
    choosing.forEach((name) => current.addEventListener(name, chooseBack, true))
    return () => {
      current.removeEventListener("beforeinput", refuse)
      current.removeEventListener("click", refuseClick, true)
      choosing.forEach((name) => current.removeEventListener(name, chooseBack, true))
    }
  }, [form, isClosed])
}

/** Fields that a click changes. */
const isClicked: ReadonlyArray<string> = ["checkbox", "radio"]

/** What a list tells of a choice, which no browser lets be refused before. */
const choosing = ["input", "change"] as const
