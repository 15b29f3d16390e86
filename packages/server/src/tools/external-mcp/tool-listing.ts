/**
 * Reads a server's list of tools, page by page, as far as it can be read.
 *
 * One fault costs what has it and no more: a tool that is not described as MCP requires is left out with the reason, an
 * `outputSchema` that MCP does not allow is passed over, and a page that does not come leaves the pages before it. The SDK
 * refuses a whole list for one fault in it, so each page is repaired before the SDK reads it. Nulls for what is absent are taken
 * out of every answer.
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
import { beginningOf } from "@tropism/domain/text-beginning"
import { Clock, Effect, Option, Schema } from "effect"
import { whyUnjudgeable } from "../arguments.ts"
import { findLostRef, type JsonSchema } from "../json-schemas.ts"
import { answered, faultLike, type ExternalFault, lineOf } from "./faults.ts"
import type { Fetch } from "./fetch.ts"
import { externalLimits } from "./limits.ts"

/** Where a list goes on, as the server gave it: some count their pages. */
export type Cursor = string | number

/** What a server lists. */
export interface Listed {
  /** Each name once. */
  readonly tools: ReadonlyArray<Tool>
  /** The tools that are left out, each with the reason. */
  readonly unfit: ReadonlyArray<string>
  /** Why there may be more tools; undefined where the list is whole. */
  readonly missing: ExternalFault | undefined
}

/** What a repaired page brings beside its tools: the SDK knows text alone as a cursor. */
interface Aside {
  readonly nextCursor: unknown
  readonly unfit: ReadonlyArray<string>
}

const asideKey = "tropism/page"

/** Listens to what comes in before the SDK does, and repairs the pages of lists. */
export const repairPages = (wire: Transport, isNewRevision: () => boolean): void => {
  // The SDK calls a listener that was there before its own, with the same message.
  const { onmessage: before } = wire
  const onmessage = (message: JSONRPCMessage) => {
    before?.(message)
    if (!("result" in message) || !isJsonObject(message.result)) return
    const { content, nextCursor, resultType, tools } = message.result
    // What a call answers has a content and may have whatever else.
    if (content !== undefined || !Array.isArray(tools)) return
    const fit: Array<unknown> = []
    const unfit: Array<string> = []
    for (const listed of tools) {
      const tool = repaired(listed, isNewRevision())
      const fault = faultOf(tool)
      if (fault === undefined) fit.push(tool)
      else unfit.push(`${nameOf(tool)} (${fault})`)
    }
    const aside: Aside = { nextCursor, unfit }
    const result = {
      ...(resultType === undefined ? {} : { resultType }),
      // Nothing is kept by these here, and the newer revision requires them.
      ttlMs: 0,
      cacheScope: "private",
      tools: fit,
      _meta: { [asideKey]: aside }
    }
    Object.assign(message, { result })
  }
  Object.assign(wire, { onmessage })
}

/** A tool without what stands for nothing, and without an outputSchema that the revision does not allow. */
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

/** A schema without `properties` or `required` that are null, and without the `required: true` of draft 3: they say nothing of it. */
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
 * The same `fetch`, which repairs the text of answers before the SDK reads it as messages.
 *
 * **Details** The SDK takes no message whose result has `_meta: null`, and no content with nulls in it. A line is as long as a
 * message at most, which `fetch` bounds.
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

/** A body of JSON is one message, in as many lines as it likes. */
const repairedText = (isWhole: boolean) => {
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  let rest = ""
  return new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      rest += decoder.decode(chunk, { stream: true })
      const end = isWhole ? 0 : rest.lastIndexOf("\n") + 1
      if (end === 0) return
      controller.enqueue(encoder.encode(withoutNullsInLines(rest.slice(0, end))))
      rest = rest.slice(end)
    },
    flush: (controller) => {
      const last = rest + decoder.decode()
      controller.enqueue(encoder.encode(isWhole ? withoutNullsIn(last) : withoutNullsInLines(last)))
    }
  })
}

/** Lines of messages in JSON, with or without the name of an event's field. */
export const withoutNullsInLines = (lines: string): string =>
  mayHaveNulls.test(lines)
    ? lines.replace(/^(data: ?)?(\{.*\})(\r?)$/gm, (_line, field = "", message: string, end: string) =>
        [field, withoutNullsIn(message), end].join("")
      )
    : lines

const mayHaveNulls = /:\s*null\b/

const decodeMessage = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/** A message without the nulls that stand for what is absent; what is no message of JSON stays as it is. */
const withoutNullsIn = (text: string): string => {
  if (!mayHaveNulls.test(text)) return text
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
    ...(error === undefined || error === null ? {} : { error }),
    // Who answers null where an object belongs has nothing to say.
    ...(result === undefined || (result === null && error) ? {} : { result: repairedResult(result ?? {}) })
  }
}

/** What may be absent of a result; other keys are the tool's own, or mean something as null. */
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

/** Asks for page after page, until the list ends, goes round or breaks off; fails where not even the first page comes. */
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
      // Empty text may also stand for the end: who refuses to go on at it has ended the list.
      if (cursor === "" && !page.failure.isBroken) return listed()
      return listed(notWhole(number, page.failure))
    }
    const aside = asideOf(page.success)
    const isKnown = page.success.tools.every(({ name }) => tools.has(name))
    for (const tool of page.success.tools) if (!tools.has(tool.name)) tools.set(tool.name, tool)
    for (const one of aside.unfit) if (unfit.length < externalLimits.tools) unfit.push(one)
    const { nextCursor: next } = aside
    // Where empty text leads to nothing new, the server has begun from the start.
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

/** Why no further page is asked for. */
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

// What a foreign server lists, kept as it was when a person looked.
//
// The hash covers every word that a model, or this program's rules, go by. A
// server that says something else later has changed, whatever the change is:
// what is compared is the hash, and nobody judges the new words by then.

/** What was listed, and the names of what cannot be offered. */
export interface Pins {
  readonly tools: ReadonlyArray<PinnedTool>
  readonly leftOut: ReadonlyArray<string>
}

/** Pins everything that a server lists and that can be kept and called. */
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
    else leftOut.push(`${beginningOf(lineOf(tool.name), externalLimits.leftOutNameMaxChars)} (${fault})`)
  }
  return { tools: [...tools.values()], leftOut }
}

/** A tool as it is pinned, or why it is none that anybody could offer. */
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

/** What is kept of a tool's words, or why they cannot be kept. */
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

/** Everything that a pin stands for; what a tool says of its answers is not kept, and null where it says nothing. */
const wholeOf = (said: Said, tool: Tool): unknown => {
  const { outputSchema = null }: { readonly outputSchema?: unknown } = tool
  // What is nested deeper than JSON may be here is compared as text.
  const isPlain = findFault(outputSchema) === undefined
  return { ...said, outputSchema: isPlain ? outputSchema : JSON.stringify(outputSchema) }
}

const hashOf = (words: unknown): string =>
  createHash("sha256").update(canonicalJson(words), "utf8").digest("hex")

/** Why no call of a tool could be made, or its arguments not be judged. */
const whyUncallable = (tool: Tool, inputSchema: JsonSchema): string | undefined => {
  if (isTaskOnly(tool))
    return "it is called as a task of the revision 2025-11-25 only, which nobody does here"
  const lost = findLostRef(inputSchema)
  if (lost !== undefined)
    return `its inputSchema refers to ${beginningOf(lineOf(lost), 200)}, which is not in it`
  return whyUnjudgeable(inputSchema)
}

const isTaskOnly = ({ execution }: Tool): boolean => execution?.taskSupport === "required"

/** The pinned tools about which the server says something else now. */
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
 * The tool by whose words the answers of a pinned one are judged: what its server says now, where all of it is pinned.
 *
 * **Gotchas** A pin from before `outputSchema` was pinned has a hash without it, which is still compared. Nobody
 * goes by what such a tool says of its answers until an admin refreshes.
 */
export const answeringTool = (pinned: PinnedTool, listed: ReadonlyArray<Tool>): Tool | undefined => {
  const now = listed.find(({ name }) => name === pinned.name)
  const said = now === undefined ? undefined : saidOf(now)
  return now !== undefined && typeof said === "object" && hashOf(wholeOf(said, now)) === pinned.hash
    ? now
    : undefined
}
