/**
 * What of untrusted sources was read, in words short enough for a line.
 */
import { sourceText, type TaintSource } from "@tropism/domain/taint"
import { printable } from "./terminal/text.ts"

/** The sources by their names; nothing where there are none. */
export const taintText = (taintedBy: ReadonlyArray<TaintSource>): string =>
  taintedBy.map((source) => printable(sourceText(source))).join("; ")
