/**
 * Keeps what is typed from the key that opens the palette until its field has the focus.
 *
 * It is meant for the palette, and a letter elsewhere may decide something. There is one palette, so there is one of this.
 */
import { isDialogOpen, isPlain } from "./is-typing.ts"

/** The attribute of the palette's field. */
export const fieldMark = "data-palette-field"

let isKeeping = false
let kept = ""

/** The palette is asked for. */
export const keepTyped = (): void => {
  kept = ""
  isKeeping = true
}

/** The palette is gone. */
export const keepNoMore = (): void => {
  isKeeping = false
}

/** Answers what was typed since it was last asked. */
export const takeTyped = (): string => {
  const taken = kept
  kept = ""
  return taken
}

/** Keeps a key that is meant for a palette that is not there yet, and answers whether it was one; nobody else hears it. */
export const isKept = (event: KeyboardEvent): boolean => {
  if (!isKeeping || (event.target instanceof Element && event.target.matches(`[${fieldMark}]`))) return false
  const isLetter = isPlain(event) && event.key.length === 1
  // In a dialog that is there the other keys have their own meaning.
  if (!isLetter && isDialogOpen()) return false
  event.stopImmediatePropagation()
  if (!isLetter) return true
  event.preventDefault()
  kept += event.key
  return true
}
