/**
 * Text out of a file that nobody has judged yet, so that a message may quote it.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * PostgreSQL keeps neither U+0000 nor half a surrogate pair. What says that a
 * line is bad must not be what breaks the import of the good ones.
 */
import { shortened } from "@tropism/domain/text-beginning"

/** Shows what cannot be kept or seen as an escape, and cuts the text between two characters. */
export const keepableText = (text: string, maxChars: number): string =>
  shortened(text.replace(/[\p{Cc}\p{Cs}]/gu, escapeOf), maxChars)

const escapeOf = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`
