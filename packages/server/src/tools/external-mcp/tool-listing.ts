/**
 * Reads a server's list of tools page by page, skipping what is unreadable.
 *
 * **Invariant** A fault costs only its own part: an invalid tool is left out with the reason, an invalid `outputSchema`
 * is ignored, and a failed page keeps the pages before it. The SDK refuses a whole list for one fault, so each page is
 * repaired before the SDK reads it. Nulls for absent fields are removed from every answer.
 */
import { createHash } from "node:crypto"
import {
  type JSONRPCMessage,
  type ListToolsResult,
  specTypeSchemas,
  type Tool,
  type Transport
} from "@modelcontextprotocol/client"
import { isJsonObject, canonicalJson, findFault } from "@tropism/domain/json"
import { keptChars } from "@tropism/domain/kept-size"
import { offeredNameOf, type PinnedTool } from "@tropism/domain/mcp-server"
import { beginningOf, shortenedAtWord } from "@tropism/domain/text-beginning"
import { Clock, Effect, Option, Schema } from "effect"
import { whyUnjudgeable } from "../arguments.ts"
import { findLostRef, type JsonSchema } from "../json-schemas.ts"
import { answered, faultLike, type ExternalFault, leftOutFor, lineOf } from "./faults.ts"
import type { Fetch } from "./fetch.ts"
import { externalLimits } from "./limits.ts"
import { fitAnswer, isCallAnswer } from "./results.ts"

/** A list's cursor as the server sent it; some servers send numbers. */
export type Cursor = string | number

/** A server's list. */
export interface Listed {
  /** Each name once. */
  readonly tools: ReadonlyArray<Tool>
  /** The tools left out, with reasons. */
  readonly unfit: ReadonlyArray<string>
  /** Why there may be more tools; undefined when the list is complete. */
  readonly missing: ExternalFault | undefined
}

/** What a repaired page carries besides its tools: the SDK only accepts text as a cursor. */
interface Aside {
  readonly nextCursor: unknown
  readonly unfit: ReadonlyArray<string>
}

const asideKey = "tropism/page"

/** Repairs incoming pages of lists and answers of calls before the SDK reads them. */
export const repairPages = (wire: Transport, isNewRevision: () => boolean): void => {
  // The SDK calls an existing listener before its own, with the same message.
  const { onmessage: before } = wire
  const onmessage = (message: JSONRPCMessage) => {
    before?.(message)
    if (!("result" in message) || !isJsonObject(message.result)) return
    const { nextCursor, resultType, tools } = message.result
    // A call's answer has content and may have anything else.
    if (isCallAnswer(message.result)) {
      Object.assign(message, { result: fitAnswer(message.result) })
      return
    }
    if (!Array.isArray(tools)) return
    const fit: Array<unknown> = []
    const unfit: Array<string> = []
    for (const listed of tools) {
      const tool = repaired(listed, isNewRevision())
      const fault = faultOf(tool)
      if (fault === undefined) fit.push(tool)
      else unfit.push(leftOutFor(nameOf(tool), fault))
    }
    const aside: Aside = { nextCursor, unfit }
    const result = {
      ...(resultType === undefined ? {} : { resultType }),
      // The newer revision requires these; nothing is cached by them here.
      ttlMs: 0,
      cacheScope: "private",
      tools: fit,
      _meta: { [asideKey]: aside }
    }
    Object.assign(message, { result })
  }
  Object.assign(wire, { onmessage })
}

/** Returns a tool without nulls for absent fields, and without an outputSchema that the revision does not allow. */
const repaired = (listed: unknown, isNewRevision: boolean): unknown => {
  if (!isJsonObject(listed)) return listed
  const tool = withoutNulls(listed)
  for (const key of ["annotations", "execution"])
    if (isJsonObject(tool[key])) tool[key] = withoutNulls(tool[key])
  if (Array.isArray(tool["icons"]))
    tool["icons"] = tool["icons"].map((icon: unknown) => (isJsonObject(icon) ? withoutNulls(icon) : icon))
  const { inputSchema, outputSchema } = tool
  if (isJsonObject(inputSchema)) tool["inputSchema"] = withoutEmptyKeywords(inputSchema)
  const isAllowed =
    outputSchema === undefined ||
    faultOf(
      isNewRevision
        ? { name: "any", inputSchema: { type: "object" }, outputSchema }
        : { name: "any", inputSchema: outputSchema }
    ) === undefined
  if (!isAllowed) delete tool["outputSchema"]
  return tool
}

/** Removes `properties` or `required` that are null, and draft 3's `required: true`, which have no meaning here. */
const withoutEmptyKeywords = (schema: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(schema).filter(
      ([key, part]) =>
        !(["properties", "required"].includes(key) && part === null) &&
        !(key === "required" && typeof part === "boolean")
    )
  )

const withoutNulls = (value: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(value).filter(([, part]) => part !== null))

const faultOf = (tool: unknown): string | undefined => {
  const judged = specTypeSchemas.Tool["~standard"].validate(tool)
  if (judged instanceof Promise || judged.issues === undefined) return undefined
  const [issue] = judged.issues
  const path = (issue?.path ?? []).map((step) => String(typeof step === "object" ? step.key : step))
  return lineOf([path.join("."), issue?.message ?? ""].filter((part) => part !== "").join(": "))
}

const nameOf = (tool: unknown): string =>
  isJsonObject(tool) && typeof tool["name"] === "string" && tool["name"] !== ""
    ? beginningOf(lineOf(tool["name"]), externalLimits.leftOutNameMaxChars)
    : "one without a name"

/**
 * Wraps `fetch` to repair the text of answers before the SDK parses it.
 *
 * **Details** The SDK refuses a message whose result has `_meta: null`, and content with nulls. `fetch` bounds a line to one
 * message.
 */
export const repairingAnswers =
  (fetch: Fetch): Fetch =>
  (address, init) =>
    fetch(address, init).then((response) =>
      response.ok && response.body !== null
        ? new Response(
            response.body.pipeThrough(
              repairedText(/\bjson\b/.test(response.headers.get("content-type") ?? ""))
            ),
            response
          )
        : response
    )

/**
 * A JSON body is one message of any number of lines. An event at the end of the stream counts without its final empty line, if
 * its message is whole; the rest is requested again.
 */
const repairedText = (isWhole: boolean) => {
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  let rest = ""
  /** The last, incomplete event. */
  let event = ""
  return new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      rest += decoder.decode(chunk, { stream: true })
      const end = isWhole ? 0 : rest.lastIndexOf("\n") + 1
      if (end === 0) return
      const lines = withoutNullsInLines(rest.slice(0, end))
      event = (event + lines).split(/\r?\n\r?\n/).at(-1) ?? ""
      controller.enqueue(encoder.encode(lines))
      rest = rest.slice(end)
    },
    flush: (controller) => {
      const last = rest + decoder.decode()
      const text = isWhole ? withoutNullsIn(last) : withoutNullsInLines(last)
      controller.enqueue(encoder.encode(!isWhole && isWholeEvent(event + text) ? `${text}\n\n` : text))
    }
  })
}

/** Whether the data of an event is a message. */
const isWholeEvent = (event: string): boolean => {
  const data = [...event.matchAll(/^data: ?(.*?)\r?$/gm)].map(([, line = ""]) => line)
  const message = Option.getOrUndefined(decodeMessage(data.join("\n")))
  return isJsonObject(message) && message["jsonrpc"] === "2.0"
}

/** Repairs lines of JSON messages, with or without an event field name. */
export const withoutNullsInLines = (lines: string): string =>
  mayNeedRepair.test(lines)
    ? lines.replace(/^(data: ?)?(\{.*\})(\r?)$/gm, (_line, field = "", message: string, end: string) =>
        [field, withoutNullsIn(message), end].join("")
      )
    : lines

/** Nulls, and errors that may lack required fields. */
const mayNeedRepair = /:\s*null\b|"error"\s*:/

const decodeMessage = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/** Removes nulls for absent fields from a message; returns text that is not a JSON message unchanged. */
const withoutNullsIn = (text: string): string => {
  if (!mayNeedRepair.test(text)) return text
  const message = Option.getOrUndefined(decodeMessage(text))
  if (!isJsonObject(message) || message["jsonrpc"] !== "2.0") return text
  const repaired = JSON.stringify(repairedMessage(message))
  return repaired === JSON.stringify(message) ? text : repaired
}

const repairedMessage = (message: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  const { error, params, result, ...rest } = message
  return {
    ...rest,
    ...(isJsonObject(params) ? { params: without(params, ["_meta"]) } : {}),
    ...(error === undefined || error === null ? {} : { error: repairedError(error) }),
    // A null where an object belongs means that there is none.
    ...(result === undefined || (result === null && error) ? {} : { result: repairedResult(result ?? {}) })
  }
}

/** Completes an error with the code and message that the SDK requires; keeps the server's text in any form. */
const repairedError = (error: unknown): unknown => {
  const given: Readonly<Record<string, unknown>> = isJsonObject(error) ? error : { message: error }
  const { code, message, ...more } = given
  return {
    ...more,
    code: Number.isInteger(code) ? code : internalError,
    message:
      typeof message === "string"
        ? message
        : message === undefined
          ? "The server answered with an error and gave no reason"
          : JSON.stringify(message)
  }
}

const internalError = -32_603

/** The optional keys of a result; a null under another key may have a meaning. */
const optional = ["_meta", "content", "instructions", "isError", "nextCursor", "structuredContent"]

const repairedResult = (result: unknown): unknown => {
  if (!isJsonObject(result)) return result
  const fit = without(result, optional)
  for (const key of ["capabilities", "serverInfo"])
    if (isJsonObject(fit[key])) fit[key] = withoutNulls(fit[key])
  if (Array.isArray(fit["content"])) fit["content"] = fit["content"].map(repairedPart)
  // The result of a call whose task has ended.
  if (isJsonObject(fit["result"])) fit["result"] = repairedResult(fit["result"])
  return fit
}

const repairedPart = (part: unknown): unknown => {
  if (!isJsonObject(part)) return part
  const fit = withoutNulls(part)
  for (const key of ["annotations", "resource"]) if (isJsonObject(fit[key])) fit[key] = withoutNulls(fit[key])
  return fit
}

const without = (
  value: Readonly<Record<string, unknown>>,
  keys: ReadonlyArray<string>
): Record<string, unknown> =>
  Object.fromEntries(Object.entries(value).filter(([key, part]) => part !== null || !keys.includes(key)))

/** Requests pages until the list ends, repeats or breaks off; fails when the first page fails. */
export const walkPages = Effect.fn("walkPages")(function* (
  ask: (cursor: Cursor | undefined) => Effect.Effect<ListToolsResult, ExternalFault>
): Effect.fn.Return<Listed, ExternalFault> {
  const tools = new Map<string, Tool>()
  const unfit: Array<string> = []
  const seen = new Set<Cursor>()
  const began = yield* Clock.currentTimeMillis
  let cursor: Cursor | undefined
  let chars = 0
  const listed = (missing?: ExternalFault): Listed => ({ tools: [...tools.values()], unfit, missing })
  for (let number = 1; ; number += 1) {
    const page = yield* Effect.result(ask(cursor))
    if (page._tag === "Failure") {
      if (number === 1) return yield* page.failure
      // Empty text may also mean the end: a server that refuses it as a cursor has ended its list.
      if (cursor === "" && !page.failure.isBroken) return listed()
      return listed(notWhole(number, page.failure))
    }
    const aside = asideOf(page.success)
    const isKnown = page.success.tools.every(({ name }) => tools.has(name))
    for (const tool of page.success.tools) if (!tools.has(tool.name)) tools.set(tool.name, tool)
    for (const one of aside.unfit) if (unfit.length < externalLimits.tools) unfit.push(one)
    const { nextCursor: next } = aside
    // When empty text leads to nothing new, the server has started over.
    if (next === undefined || next === null || (cursor === "" && isKnown)) return listed()
    if (!isCursor(next))
      return listed(notWhole(number + 1, answered("its cursor is neither text nor a number")))
    if (seen.has(next)) return listed()
    seen.add(next)
    chars += JSON.stringify(page.success.tools).length
    const elapsedMs = (yield* Clock.currentTimeMillis) - began
    const bound = boundOf({ chars, elapsedMs, pages: number, tools: tools.size })
    if (bound !== undefined) return listed(notWhole(number + 1, answered(bound)))
    cursor = next
  }
})

/** Returns why no further page is requested. */
const boundOf = (so: {
  readonly chars: number
  readonly elapsedMs: number
  readonly pages: number
  readonly tools: number
}): string | undefined => {
  if (so.tools > externalLimits.tools) return `a server has at most ${externalLimits.tools} tools`
  if (so.pages >= externalLimits.toolPages) return `a list has at most ${externalLimits.toolPages} pages`
  if (so.chars > externalLimits.listMaxChars)
    return `a list has at most ${externalLimits.listMaxChars} characters`
  return so.elapsedMs > externalLimits.listTimeoutMs
    ? `the pages before took more than ${externalLimits.listTimeoutMs} milliseconds`
    : undefined
}

const notWhole = (page: number, fault: ExternalFault): ExternalFault =>
  faultLike(fault, { message: lineOf(`The list of its tools is not whole: page ${page}: ${fault.message}`) })

const isCursor = Schema.is(Schema.Union([Schema.String, Schema.Finite]))

const asideOf = ({ _meta }: ListToolsResult): Aside =>
  (_meta?.[asideKey] as Aside | undefined) ?? { nextCursor: undefined, unfit: [] }

// Pins a foreign server's list as a person reviewed it.
//
// The hash covers everything that a model, or this program's rules, depend on. Any later difference in the hash counts as a
// change; its content is not judged automatically.

/** The pinned tools, and the names of those that cannot be offered. */
export interface Pins {
  readonly tools: ReadonlyArray<PinnedTool>
  readonly leftOut: ReadonlyArray<string>
}

/** Pins every listed tool that can be stored and called. */
export const pinTools = (server: string, listed: ReadonlyArray<Tool>): Pins => {
  const tools = new Map<string, PinnedTool>()
  const leftOut: Array<string> = []
  for (const tool of listed) {
    const pinned = pinOf(server, tool)
    const fault =
      typeof pinned === "string"
        ? pinned
        : tools.size >= externalLimits.tools
          ? `a server has at most ${externalLimits.tools} tools`
          : tools.has(tool.name)
            ? "it is listed twice"
            : undefined
    if (fault === undefined && typeof pinned !== "string") tools.set(tool.name, pinned)
    else
      leftOut.push(
        leftOutFor(beginningOf(lineOf(tool.name), externalLimits.leftOutNameMaxChars), String(fault))
      )
  }
  return { tools: [...tools.values()], leftOut }
}

/** Returns a tool's pin, or why it cannot be offered. */
const pinOf = (server: string, tool: Tool): PinnedTool | string => {
  const said = saidOf(tool)
  if (typeof said === "string") return said
  const misfit = whyUncallable(tool, said.inputSchema)
  if (misfit !== undefined) return misfit
  return {
    ...said,
    offeredName: offeredNameOf(server, tool.name),
    hash: hashOf(wholeOf(said, tool)),
    changedAt: null
  }
}

type Said = Pick<PinnedTool, "name" | "description" | "inputSchema" | "isReadOnly" | "isIdempotent">

/** Returns the stored texts of a tool, or why they cannot be stored. */
const saidOf = (tool: Tool): Said | string => {
  const description = tool.description ?? null
  const inputSchema: unknown = JSON.parse(JSON.stringify(tool.inputSchema))
  if (!/^[^\0\s]{1,200}$/.test(tool.name)) return "its name is empty, too long or has spaces"
  if (description !== null && description.length > externalLimits.descriptionMaxChars)
    return `its description is longer than ${externalLimits.descriptionMaxChars} characters`
  const fault = findFault([tool.name, description, inputSchema])
  if (fault !== undefined) return `it cannot be kept: ${lineOf(fault.message)}`
  if (!isJsonObject(inputSchema)) return "its inputSchema is no object"
  const said = {
    name: tool.name,
    description,
    inputSchema,
    isReadOnly: tool.annotations?.readOnlyHint === true,
    isIdempotent: tool.annotations?.idempotentHint === true
  }
  return keptChars(said) > externalLimits.schemaMaxChars
    ? `it is described in more than ${externalLimits.schemaMaxChars} characters`
    : said
}

/** Everything that a pin's hash covers; the output schema is not stored, and null when there is none. */
const wholeOf = (said: Said, tool: Tool): unknown => {
  const { outputSchema = null }: { readonly outputSchema?: unknown } = tool
  // Schemas nested deeper than JSON may be here are compared as text.
  const isPlain = findFault(outputSchema) === undefined
  return { ...said, outputSchema: isPlain ? outputSchema : JSON.stringify(outputSchema) }
}

const hashOf = (words: unknown): string =>
  createHash("sha256").update(canonicalJson(words), "utf8").digest("hex")

/** Returns why a tool cannot be called or its arguments not be validated. */
const whyUncallable = (tool: Tool, inputSchema: JsonSchema): string | undefined => {
  if (isTaskOnly(tool))
    return "it is called as a task of the revision 2025-11-25 only, which nobody does here"
  const lost = findLostRef(inputSchema)
  if (lost !== undefined)
    return `its inputSchema refers to ${shortenedAtWord(lineOf(lost), 100)}, which is not in it`
  return whyUnjudgeable(inputSchema)
}

const isTaskOnly = ({ execution }: Tool): boolean => execution?.taskSupport === "required"

/** Returns the pinned tools that the server now lists differently. */
export const changedTools = (
  pinned: ReadonlyArray<PinnedTool>,
  listed: ReadonlyArray<Tool>
): ReadonlyArray<string> => {
  const byName = new Map(listed.map((tool) => [tool.name, tool]))
  return pinned.flatMap((tool) => {
    const now = byName.get(tool.name)
    if (tool.changedAt !== null || now === undefined) return []
    const said = saidOf(now)
    const isSame =
      typeof said !== "string" &&
      !isTaskOnly(now) &&
      (tool.hash === hashOf(wholeOf(said, now)) || tool.hash === hashOf(said))
    return isSame ? [] : [tool.name]
  })
}

/**
 * Returns the listed tool whose output schema applies to a pinned tool's answers: the current one, when it equals the pin.
 *
 * **Gotchas** A pin from before `outputSchema` was pinned has a hash without it, which is still compared. Its output schema is
 * not used before an admin refreshes.
 */
export const answeringTool = (pinned: PinnedTool, listed: ReadonlyArray<Tool>): Tool | undefined => {
  const now = listed.find(({ name }) => name === pinned.name)
  const said = now === undefined ? undefined : saidOf(now)
  return now !== undefined && typeof said === "object" && hashOf(wholeOf(said, now)) === pinned.hash
    ? now
    : undefined
}
