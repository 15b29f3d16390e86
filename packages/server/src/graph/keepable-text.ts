/**
 * Text out of a file that nobody has judged yet, so that a message may quote it.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * PostgreSQL keeps neither U+0000 nor half a surrogate pair. What says that a
 * line is bad must not be what breaks the import of the good ones.
 */

/** Shows what cannot be kept or seen as an escape, and cuts the text between two characters. */
export const keepableText = (text: string, maxChars: number): string =>
  cutText(text.replace(/[\p{Cc}\p{Cs}]/gu, escapeOf), maxChars)

/** The beginning of a text, with an ellipsis where it was longer; no character is cut in two. */
export const cutText = (text: string, maxChars: number): string =>
  text.length > maxChars ? `${beginningOf(text, maxChars)}…` : text

/** At most so many UTF-16 units of a text, and no half of a character at the end. */
export const beginningOf = (text: string, maxChars: number): string =>
  text.length > maxChars && (text.codePointAt(maxChars - 1) ?? 0) > 0xff_ff
    ? text.slice(0, maxChars - 1)
    : text.slice(0, maxChars)

const escapeOf = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`
