/**
 * Text for a terminal: how wide it is, cut to a width, and free of control characters.
 *
 * Names and properties come from anybody who may write to the graph, models
 * included. An escape sequence in one of them must not move the cursor or
 * rename the window of whoever reads it, so every value is made printable here.
 */
import { CliOutput } from "effect/cli"

export const displayWidth = CliOutput.displayWidth

/** Replaces line breaks by spaces and every other control character by a visible one. */
export const printable = (text: string): string => text.replace(/\s+/g, " ").replace(control, "\uFFFD").trim()

/** The same for a text of lines, or a piece of one: its blanks, tabs and line breaks stay as they are. */
export const printableLines = (text: string): string =>
  text.replaceAll("\r", "").replace(control, (each) => (each === "\n" || each === "\t" ? each : "\uFFFD"))

// eslint-disable-next-line no-control-regex -- finding control characters is what this does
const control = /[\u0000-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069]/g

/** Cuts a text to a width in columns and says by an ellipsis that it did; what is cut loses its colours. */
export const cutEnd = (text: string, columns: number): string => {
  if (displayWidth(text) <= columns) return text
  if (columns <= 0) return ""
  let kept = ""
  for (const { segment } of graphemes.segment(unpainted(text))) {
    if (displayWidth(kept) + displayWidth(segment) > columns - 1) break
    kept += segment
  }
  return `${kept}…`
}

/** Cuts the beginning instead: the end of a path says more than its start. */
export const cutStart = (text: string, columns: number): string => {
  if (displayWidth(text) <= columns) return text
  if (columns <= 0) return ""
  let kept = ""
  for (const { segment } of [...graphemes.segment(unpainted(text))].toReversed()) {
    if (displayWidth(kept) + displayWidth(segment) > columns - 1) break
    kept = segment + kept
  }
  return `…${kept}`
}

// eslint-disable-next-line no-control-regex -- the colours of paint.ts begin with one
const unpainted = (text: string): string => text.replace(/\u001B\[\d+m/g, "")

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" })

/** Fills a text with spaces up to a width. */
export const pad = (text: string, columns: number, align: "left" | "right" = "left"): string => {
  const space = " ".repeat(Math.max(0, columns - displayWidth(text)))
  return align === "left" ? text + space : space + text
}

/** A number of bytes as a person says it: `812 B`, `12.3 KB`, `4.5 GB`. */
export const formatBytes = (bytes: number): string => {
  const power = Math.min(byteUnits.length - 1, Math.floor(Math.log(Math.max(1, bytes)) / Math.log(1_000)))
  return `${power === 0 ? bytes : (bytes / 1_000 ** power).toFixed(1)} ${byteUnits[power]}`
}

const byteUnits = ["B", "KB", "MB", "GB", "TB"]
