/**
 * What a foreign tool answered, as a model reads it and the database keeps it.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Text and structures pass within a bound; what a model cannot read here (images,
 * sound, files) is named and not carried.
 */
import type { CallToolResult } from "@modelcontextprotocol/client"
import { findFault } from "@tropism/domain/json"
import type { Schema } from "effect"
import { foreignLimits } from "../limits.ts"

/** The answer as JSON that can be kept. */
export const readResult = (result: CallToolResult, scrub: (text: string) => string): Schema.Json => {
  const { content = [], structuredContent } = result
  const structured = structuredContent === undefined ? undefined : keptJson(structuredContent, scrub)
  if (structured !== undefined) return structured
  return cut(clean(scrub(content.map(partText).join("\n"))))
}

/** A structure that is not too large; nothing where its text has to do. */
const keptJson = (value: unknown, scrub: (text: string) => string): Schema.Json | undefined => {
  const text = scrub(JSON.stringify(value))
  if (text.length > foreignLimits.resultMaxChars) return cut(clean(text))
  const parsed: Schema.Json = JSON.parse(text)
  return findFault(parsed) === undefined ? parsed : clean(text)
}

const partText = (part: CallToolResult["content"][number]): string => {
  switch (part.type) {
    case "text":
      return part.text
    case "image":
    case "audio":
      return `[${part.type}: ${part.mimeType}, ${part.data.length} characters of base64, not shown]`
    case "resource":
      return "text" in part.resource
        ? part.resource.text
        : `[resource: ${part.resource.uri}, ${part.resource.mimeType ?? "of an unknown kind"}, not shown]`
    case "resource_link":
      return `[resource: ${part.uri}]`
  }
}

/** What no database keeps goes. */
const clean = (text: string): string => text.replaceAll("\0", "").toWellFormed()

const cut = (text: string): string =>
  text.length <= foreignLimits.resultMaxChars
    ? text
    : `${text.slice(0, foreignLimits.resultMaxChars)}… (cut: ${foreignLimits.resultMaxChars} of ${text.length} characters)`.toWellFormed()
