/**
 * What a foreign tool answered, as a model reads it and the database keeps it.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Text and structures pass within a bound, and pictures within theirs; what a model cannot read here (sound, files) is
 * named and not carried.
 */
import { createHash } from "node:crypto"
import type { CallToolResult, Tool } from "@modelcontextprotocol/client"
import {
  type Digest,
  findFileFault,
  type MimeType,
  mimeTypeOf,
  type Picture
} from "@tropism/domain/attachment"
import { findFault, isJsonObject } from "@tropism/domain/json"
import { beginningTold } from "@tropism/domain/text-beginning"
import { keptChars } from "@tropism/domain/kept-size"
import { Result, type Schema } from "effect"
import { judge } from "./bounded-judging.ts"
import { foreignLimits } from "./foreign-limits.ts"
import { lineOf } from "./foreign-fault.ts"
import { placesOf } from "./validator-words.ts"

/**
 * The answer as JSON that can be kept.
 *
 * **Details** A structure stands for the text beside it, which says the same; what else is beside it is told
 * with it. One that does not fit what the tool says of its answers is told as text, with what does not fit.
 */
export const readResult = (
  { content = [], isError, structuredContent }: CallToolResult,
  scrub: (text: string) => string,
  tool?: Pick<Tool, "outputSchema">
): Schema.Json => {
  const shown = isError === true ? noPictures : picturesOf(content)
  const textOf = (part: Part) => partText(part, shown)
  const told = () => cut(clean(scrub(content.map(textOf).join("\n"))))
  if (structuredContent === undefined) return told()
  const structure = scrubAll(structuredContent, scrub)
  const json = JSON.stringify(structure)
  const others = content.filter(({ type }) => type !== "text").map(textOf)
  const fault = isError === true || tool === undefined ? undefined : misfit(tool, structure, json)
  if (fault === undefined && others.length === 0 && isKeepable(structure)) return structure
  const lines = [...(fault === undefined ? [] : [fault]), json, ...others.map(scrub)]
  return cut(clean(lines.join("\n")))
}

const isKeepable = (structure: Schema.Json): boolean =>
  keptChars(structure) <= foreignLimits.resultMaxChars && findFault(structure) === undefined

/** The same structure with every text in it, and every number that is a secret, scrubbed. */
export const scrubAll = (value: unknown, scrub: (text: string) => string): Schema.Json =>
  JSON.parse(JSON.stringify(value), (_key, part: unknown) => {
    if (typeof part === "string") return scrub(part)
    if (typeof part === "number") return scrub(String(part)) === String(part) ? part : scrub(String(part))
    if (!isJsonObject(part)) return part
    const names = Object.keys(part)
    return names.every((name) => scrub(name) === name)
      ? part
      : Object.fromEntries(names.map((name) => [scrub(name), part[name]]))
  })

/** What does not fit; a structure that is too long to be kept, or a schema that nobody can judge by, is not judged. */
const misfit = ({ outputSchema }: Pick<Tool, "outputSchema">, structure: Schema.Json, json: string) => {
  if (outputSchema === undefined || json.length > foreignLimits.resultMaxChars) return undefined
  if (isTooLarge(outputSchema)) return undefined
  const judged = judge(outputSchema, structure)
  if (Result.isFailure(judged) || judged.success === undefined) return undefined
  const faults = placesOf(judged.success)
    .map(({ message, pointer }) => `${pointer === "" ? "it" : pointer}: ${message}`)
    .join("; ")
  return `(The tool was called; its answer does not fit what it says of its answers. ${faults})`
}

const isTooLarge = (schema: object): boolean =>
  findFault(schema) !== undefined || JSON.stringify(schema).length > foreignLimits.schemaMaxChars

type Part = CallToolResult["content"][number]

/** A picture with its bytes. */
export interface FoundPicture extends Picture {
  readonly bytes: Uint8Array
}

const noPictures: ReadonlyMap<Part, FoundPicture> = new Map()

/** The pictures of an answer that a model may be shown: the first ones of a known kind that are not too large. */
export const picturesOf = (content: ReadonlyArray<Part> = []): ReadonlyMap<Part, FoundPicture> => {
  const found = new Map<Part, FoundPicture>()
  for (const part of content) {
    if (found.size >= foreignLimits.pictures) break
    const picture = pictureOf(part)
    if (picture !== undefined) found.set(part, picture)
  }
  return found
}

const pictureOf = (part: Part): FoundPicture | undefined => {
  const encoded = encodedPicture(part)
  if (encoded === undefined || encoded.data.length > (foreignLimits.pictureMaxBytes * 4) / 3 + 4)
    return undefined
  const { data, mimeType } = encoded
  const bytes = new Uint8Array(Buffer.from(data, "base64"))
  if (findFileFault(bytes, mimeType) !== undefined) return undefined
  const digest = createHash("sha256").update(bytes).digest("hex") as Digest
  return { bytes, digest, mimeType, sizeBytes: bytes.length }
}

const encodedPicture = (part: Part): { readonly data: string; readonly mimeType: MimeType } | undefined => {
  const [type, data] =
    part.type === "image"
      ? [part.mimeType, part.data]
      : part.type === "resource" && "blob" in part.resource
        ? [part.resource.mimeType ?? "", part.resource.blob]
        : ["", ""]
  const mimeType = mimeTypeOf(type)
  return mimeType?.startsWith("image/") === true ? { data, mimeType } : undefined
}

const partText = (part: Part, shown: ReadonlyMap<Part, FoundPicture>): string => {
  const picture = shown.get(part)
  if (picture !== undefined) {
    const number = [...shown.keys()].indexOf(part) + 1
    return `[picture ${number}: ${picture.mimeType}, ${picture.sizeBytes} bytes]`
  }
  switch (part.type) {
    case "text":
      return part.text
    case "image":
    case "audio":
      return `[${part.type}: ${lineOf(part.mimeType)}, ${part.data.length} characters of base64, not shown]`
    case "resource": {
      const { mimeType = "of an unknown kind", uri } = part.resource
      return "text" in part.resource
        ? `[resource: ${lineOf(uri)}]\n${part.resource.text}`
        : `[resource: ${lineOf(uri)}, ${lineOf(mimeType)}, ${part.resource.blob.length} characters of base64, not shown]`
    }
    case "resource_link": {
      const about = [part.title ?? part.name, part.mimeType, part.description].filter(
        (text) => text !== undefined
      )
      return `[link: ${[part.uri, ...about].map(lineOf).join(", ")}]`
    }
  }
}

/** What no database keeps goes. */
const clean = (text: string): string => text.replaceAll("\0", "").toWellFormed()

const cut = (text: string): string =>
  text.length <= foreignLimits.resultMaxChars
    ? text
    : beginningTold(text, foreignLimits.resultMaxChars).toWellFormed()
