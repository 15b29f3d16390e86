/**
 * Converts a foreign tool's answer for the model and the database.
 *
 * Text, structures and pictures pass within their limits; content that a model cannot read here (sound, files) is only
 * named.
 */
import { createHash } from "node:crypto"
import {
  type CallToolResult,
  specTypeSchemas,
  type Tool,
  type Client,
  type JSONRPCMessage,
  type Transport
} from "@modelcontextprotocol/client"
import {
  type Digest,
  findFileFault,
  type MimeType,
  mimeTypeOf,
  type Picture
} from "@tropism/domain/attachment"
import { findFault, isJsonObject } from "@tropism/domain/json"
import { keptChars } from "@tropism/domain/kept-size"
import { beginningTold, beginningOf } from "@tropism/domain/text-beginning"
import { Result, Schema, Effect } from "effect"
import { toolLimits } from "../../limits.ts"
import { placesOf } from "../arguments.ts"
import { judge } from "../json-schemas.ts"
import { lineOf, ExternalFault, toFault } from "./faults.ts"
import { externalLimits } from "./limits.ts"

/** Whether a result is the answer of a call; a list has none of these keys. */
export const isCallAnswer = (result: Readonly<Record<string, unknown>>): boolean =>
  ["content", "isError", "structuredContent"].some((key) => result[key] !== undefined)

/**
 * Returns a call's answer in the form that the SDK accepts.
 *
 * **Details** The call was made, so an answer that nearly fits is accepted; otherwise its outcome would be unknown. Parts of
 * unknown form become their JSON as text.
 */
export const fitAnswer = (answer: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  const { content, isError, structuredContent, ...more } = answer
  const parts = content === undefined ? [] : [content].flat().map(fitPart)
  const isStructure = isJsonObject(structuredContent)
  // A structure that is not an object becomes text, unless the text parts already contain it.
  const asText =
    structuredContent === undefined || isStructure || parts.length > 0 ? [] : [textPart(structuredContent)]
  return {
    ...more,
    ...(isError === undefined ? {} : { isError: isError === true || isError === "true" || isError === 1 }),
    ...(isStructure ? { structuredContent } : {}),
    content: [...parts, ...asText]
  }
}

const textPart = (value: unknown) => ({
  type: "text",
  text: beginningTold(
    typeof value === "string" ? value : JSON.stringify(value),
    externalLimits.resultMaxChars
  )
})

const isPart = (part: unknown): boolean => {
  const judged = specTypeSchemas.ContentBlock["~standard"].validate(part)
  return !(judged instanceof Promise) && judged.issues === undefined
}

/** Returns a part without mere annotations, completed where something is missing, or as text. */
const fitPart = (part: unknown): unknown => {
  if (isPart(part)) return part
  if (!isJsonObject(part)) return textPart(part)
  const { _meta, annotations: _annotations, icons: _icons, ...plain } = part
  const { resource, type, uri } = plain
  const completed = {
    ...(type === "resource_link" ? { name: uri } : {}),
    ...(type === "image" || type === "audio" ? { mimeType: unknownKind } : {}),
    ...plain,
    ...(type === "resource" && isJsonObject(resource) ? { resource: { uri: "", ...resource } } : {})
  }
  return [plain, completed].find(isPart) ?? textPart(plain)
}

const unknownKind = "of an unknown kind"

/**
 * Returns the answer as storable JSON.
 *
 * **Details** A structure replaces the text that repeats it; other parts are kept beside it. A structure that violates the
 * tool's output schema becomes text, with the faults.
 */
export const readResult = (
  { content = [], isError, structuredContent }: CallToolResult,
  scrub: (text: string) => string,
  tool?: Pick<Tool, "outputSchema">
): Schema.Json => {
  const shown = isError === true ? noPictures : picturesOf(content)
  const textOf = (part: Part) => partText(part, shown)
  const told = () => cutResult(clean(scrub(content.map(textOf).join("\n"))))
  if (structuredContent === undefined) {
    const text = told()
    return isError === true && text.trim() === "" ? "The tool says that it failed, and gives no reason" : text
  }
  const structure = scrubAll(structuredContent, scrub)
  const json = JSON.stringify(structure)
  const others = content.filter(({ type }) => type !== "text").map(textOf)
  const fault = isError === true || tool === undefined ? undefined : misfit(tool, structure, json)
  if (fault === undefined && others.length === 0 && isKeepable(structure)) return structure
  const lines = [...(fault === undefined ? [] : [fault]), json, ...others.map(scrub)]
  return cutResult(clean(lines.join("\n")))
}

const isKeepable = (structure: Schema.Json): boolean =>
  keptChars(structure) <= externalLimits.resultMaxChars && findFault(structure) === undefined

/** Returns the structure with every text scrubbed, and every number that is a secret. */
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

/** Returns the faults; undefined when a structure is too long to be stored or a schema cannot validate. */
const misfit = ({ outputSchema }: Pick<Tool, "outputSchema">, structure: Schema.Json, json: string) => {
  if (outputSchema === undefined || json.length > externalLimits.resultMaxChars) return undefined
  if (isTooLarge(outputSchema)) return undefined
  const judged = judge(outputSchema, structure)
  if (Result.isFailure(judged) || judged.success === undefined) return undefined
  const faults = placesOf(judged.success)
    .map(({ message, pointer }) => `${pointer === "" ? "it" : pointer}: ${message}`)
    .join("; ")
  return `(The tool was called; its answer does not fit what it says of its answers. ${faults})`
}

const isTooLarge = (schema: object): boolean =>
  findFault(schema) !== undefined || JSON.stringify(schema).length > externalLimits.schemaMaxChars

type Part = CallToolResult["content"][number]

/** A picture with its bytes. */
export interface FoundPicture extends Picture {
  readonly bytes: Uint8Array
}

const noPictures: ReadonlyMap<Part, FoundPicture> = new Map()

/** Returns an answer's pictures for a model: the first ones of a known kind within the size limit. */
export const picturesOf = (content: ReadonlyArray<Part> = []): ReadonlyMap<Part, FoundPicture> => {
  const found = new Map<Part, FoundPicture>()
  for (const part of content) {
    if (found.size >= externalLimits.pictures) break
    const picture = pictureOf(part)
    if (picture !== undefined) found.set(part, picture)
  }
  return found
}

const pictureOf = (part: Part): FoundPicture | undefined => {
  const encoded = encodedPicture(part)
  if (encoded === undefined || encoded.data.length > (externalLimits.pictureMaxBytes * 4) / 3 + 4)
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
      const { mimeType = unknownKind, uri } = part.resource
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

/** Removes what PostgreSQL cannot store. */
const clean = (text: string): string => text.replaceAll("\0", "").toWellFormed()

const cutResult = (text: string): string =>
  text.length <= externalLimits.resultMaxChars
    ? text
    : beginningTold(text, externalLimits.resultMaxChars).toWellFormed()

// Reports a server's requests for input during a call to the model that made it.
//
// No person is present to fill in a form, and no foreign server may use our model or see our folders. So the request is refused
// at once and quoted to the model, which may know the answer or ask a person.

/** One input request, as it was sent. */
export interface Wanted {
  readonly method: string
  readonly params: unknown
}

/** Returns the input requests of an answer. */
export const wantedIn = (inputRequests: unknown): ReadonlyArray<Wanted> =>
  isJsonObject(inputRequests)
    ? Object.values(inputRequests).flatMap((request) =>
        isJsonObject(request) && typeof request["method"] === "string"
          ? [{ method: request["method"], params: request["params"] }]
          : []
      )
    : []

/** The message about them, with what a model can do. */
export const wantsWords = (wanted: ReadonlyArray<Wanted>): string => {
  const all = wanted.slice(0, externalLimits.wantedTold).map(wordsOf)
  return `The server asks in the middle of the call ${all.length === 0 ? "for something" : `for ${all.join(", and for ")}`}. Nobody answers that during a run: call again with arguments that say it, or ask a person first`
}

const wordsOf = ({ method, params }: Wanted): string => {
  if (method === "sampling/createMessage") return "an answer of a model (sampling)"
  if (method === "roots/list") return "folders (roots)"
  if (method !== "elicitation/create") return cutLine(method)
  const said = isJsonObject(params) ? params : {}
  const message = typeof said["message"] === "string" ? `: "${cutLine(said["message"])}"` : ""
  const schema = isJsonObject(said["requestedSchema"]) ? said["requestedSchema"] : {}
  const fields = isJsonObject(schema["properties"]) ? Object.keys(schema["properties"]) : []
  return `a person's input${message}${fields.length === 0 ? "" : ` (${cutLine(fields.join(", "))})`}`
}

const cutLine = (text: string): string => beginningOf(lineOf(text), externalLimits.wantedMaxChars)

// Calls answered with a task, which is polled until it ends.
//
// The wait is part of the call's time limit. Aborting the call cancels the task, so no work continues unobserved.

/** The client capability for tasks. */
export const taskCapabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } }

const taskKey = "tropism/taskId"

/** Passes a task answer through the SDK, which knows no result of this type. */
export const admitTasks = (wire: Transport): void => {
  const { onmessage: before } = wire
  const onmessage = (message: JSONRPCMessage) => {
    before?.(message)
    if (!("result" in message) || !isJsonObject(message.result)) return
    const { resultType, taskId } = message.result
    if (resultType !== "task" || typeof taskId !== "string") return
    Object.assign(message, { result: { resultType: "complete", content: [], _meta: { [taskKey]: taskId } } })
  }
  Object.assign(wire, { onmessage })
}

/** Returns the task that an answer refers to. */
export const taskIn = ({ _meta }: CallToolResult): string | undefined => {
  const taskId = _meta?.[taskKey]
  return typeof taskId === "string" ? taskId : undefined
}

const Task = Schema.Struct({
  status: Schema.String,
  statusMessage: Schema.optional(Schema.Unknown),
  pollIntervalMs: Schema.optional(Schema.Unknown),
  inputRequests: Schema.optional(Schema.Unknown),
  result: Schema.optional(Schema.Unknown),
  error: Schema.optional(Schema.Unknown)
})
const readTask = Schema.toStandardSchemaV1(Task)
const anything = Schema.toStandardSchemaV1(Schema.Unknown)

/** Polls a task until it ends; cancels it on interruption. */
export const awaitTask = (client: Client, taskId: string): Effect.Effect<CallToolResult, ExternalFault> =>
  Effect.gen(function* () {
    for (;;) {
      const task = yield* look(client, taskId)
      switch (task.status) {
        case "completed":
          return yield* readAnswer(task.result)
        case "failed":
          return yield* answered(`The task failed: ${sentenceOf(task)}`)
        case "cancelled":
          return yield* answered(`The server cancelled the task: ${sentenceOf(task)}`)
        case "input_required":
          yield* Effect.forkDetach(cancel(client, taskId))
          return yield* answered(wantsWords(wantedIn(task.inputRequests)))
      }
      yield* Effect.sleep(pauseOf(task.pollIntervalMs))
    }
  }).pipe(Effect.onInterrupt(() => Effect.forkDetach(cancel(client, taskId))))

const look = (client: Client, taskId: string) =>
  Effect.tryPromise({
    try: (signal) =>
      client.request({ method: "tasks/get", params: { taskId } }, readTask, {
        timeout: toolLimits.sdkTimeoutMs,
        signal
      }),
    // Whatever the fault of a poll, the work had begun.
    catch: (error) => {
      const { isBroken, message } = toFault(error)
      return new ExternalFault({
        outcome: "unknown",
        message: `The task is not told of: ${message}`,
        isBroken
      })
    }
  })

const cancel = (client: Client, taskId: string) =>
  Effect.tryPromise((signal) =>
    client.request({ method: "tasks/cancel", params: { taskId } }, anything, {
      timeout: toolLimits.sdkTimeoutMs,
      signal
    })
  ).pipe(Effect.timeoutOption(externalLimits.endGraceMs), Effect.ignore)

/** The poll interval that the server requests, within bounds. */
const pauseOf = (wanted: unknown): number =>
  Math.min(
    externalLimits.taskPollMaxMs,
    Math.max(externalLimits.taskPollMinMs, typeof wanted === "number" ? wanted : externalLimits.taskPollMinMs)
  )

const readAnswer = (result: unknown): Effect.Effect<CallToolResult, ExternalFault> =>
  Effect.promise(() =>
    Promise.resolve(
      specTypeSchemas.CallToolResult["~standard"].validate(isJsonObject(result) ? fitAnswer(result) : result)
    )
  ).pipe(
    Effect.flatMap((judged) =>
      judged.issues === undefined
        ? Effect.succeed(judged.value as CallToolResult)
        : Effect.fail(
            new ExternalFault({
              outcome: "unknown",
              message: "The task was completed, and its result is none of a tool",
              isBroken: false
            })
          )
    )
  )

const answered = (message: string) =>
  Effect.fail(new ExternalFault({ outcome: "answered", message: lineOf(message), isBroken: false }))

const sentenceOf = ({ error, statusMessage }: typeof Task.Type): string => {
  const said = isJsonObject(error) ? error["message"] : statusMessage
  return typeof said === "string" && said !== "" ? said : "it does not say why"
}
