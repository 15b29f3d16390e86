/**
 * The beginning of a text that is too long for where it stands.
 *
 * Lengths are counted in UTF-16 units, as every bound of a text is. A cut falls
 * between two of what people see as one character: half of an emoji is a
 * question mark to them, and half of its surrogate pair is none at all to a database.
 */

/** At most so many units of a text, the last character whole; the same text where it fits. */
export const beginningOf = (text: string, maxChars: number): string => {
  if (text.length <= maxChars) return text
  if (maxChars <= 0) return ""
  if (standsAlone(text.charCodeAt(maxChars - 1)) && standsAlone(text.charCodeAt(maxChars)))
    return text.slice(0, maxChars)
  // What stands at the cut is known by what comes a little behind it.
  const start = characters.segment(text.slice(0, maxChars + longestCharacter)).containing(maxChars)?.index
  return text.slice(
    0,
    start !== undefined && maxChars - start <= longestCharacter ? start : wholePoints(text, maxChars)
  )
}

/** The same with "…" behind it where the text was longer. */
export const shortened = (text: string, maxChars: number): string =>
  text.length > maxChars ? `${beginningOf(text, maxChars)}…` : text

/** The same, cut after a whole word where one ends in the second half. */
export const shortenedAtWord = (text: string, maxChars: number): string => {
  if (text.length <= maxChars) return text
  const cut = beginningOf(text, maxChars)
  const end = /\s/.test(text.charAt(cut.length)) ? cut.length : cut.search(/\s\S*$/)
  return `${end * 2 > maxChars ? cut.slice(0, end) : cut}…`
}

/** The same with how much of how much it is behind it, for people and models alike; it is longer than the bound by that. */
export const beginningTold = (text: string, maxChars: number, wholeChars = text.length): string =>
  text.length > maxChars
    ? `${beginningOf(text, maxChars)}… (cut: ${maxChars} of ${wholeChars} characters)`
    : text

const characters = new Intl.Segmenter("en", { granularity: "grapheme" })

/** Units; a family of emoji is some twenty. Of marks that somebody has heaped up no text is to vanish. */
const longestCharacter = 32

/** Whether it joins neither what comes before nor what comes behind: all before the combining marks, but for the first half of a line break. */
const standsAlone = (unit: number): boolean => unit < 0x3_00 && unit !== 0x0d

/** At most so many units, and no half of a surrogate pair at the end. */
const wholePoints = (text: string, maxChars: number): number =>
  (text.codePointAt(maxChars - 1) ?? 0) > 0xff_ff ? maxChars - 1 : maxChars
