/**
 * The first part of a long text, cut where it hurts least.
 */
import { beginningOf } from "@tropism/domain/text-beginning"

/** Cuts a text to so many lines and characters, never inside a character; the same text when it fits. */
export const cutText = (text: string, maxLines: number, maxCharacters: number): string => {
  const lines = text.split("\n")
  const fewer = lines.length > maxLines ? lines.slice(0, maxLines).join("\n") : text
  return beginningOf(fewer, maxCharacters)
}

/** The same on one glance: with "…" where something is left out, behind the last word that is whole where one is near. */
export const shortText = (text: string, maxLines: number, maxCharacters: number): string => {
  const cut = cutText(text, maxLines, maxCharacters)
  if (cut === text) return text
  const isMidWord = /\S$/.test(cut) && /^\S/.test(text.slice(cut.length))
  return `${(isMidWord ? cut.replace(/\s\S{1,30}$/, "") : cut).trimEnd()}…`
}
