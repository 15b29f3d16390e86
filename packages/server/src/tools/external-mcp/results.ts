/**
 * What a foreign tool answered, as a model reads it and the database keeps it.
 *
 * Text and structures pass within a bound, and pictures within theirs; what a model cannot read here (sound, files) is
 * named and not carried.
 */
import { createHash } from "node:crypto"
import {
  type CallToolResult,
  type Tool,
  type Client,
  type JSONRPCMessage,
  specTypeSchemas,
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
  const told = () => cutResult(clean(scrub(content.map(textOf).join("\n"))))
  if (structuredContent === undefined) return told()
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

/** The pictures of an answer that a model may be shown: the first ones of a known kind that are not too large. */
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

const cutResult = (text: string): string =>
  text.length <= externalLimits.resultMaxChars
    ? text
    : beginningTold(text, externalLimits.resultMaxChars).toWellFormed()

// What a server wants to know in the middle of a call, told to the model that made it.
//
// Nobody sits beside a run who could fill a form in, and no foreign server is lent
// our model or shown our folders. So it is refused at once, and the model is told
// what was asked: it may know, or ask a person itself.

/** One thing that a server asks for, as it was sent. */
export interface Wanted {
  readonly method: string
  readonly params: unknown
}

/** The requests of an answer that asks for input. */
export const wantedIn = (inputRequests: unknown): ReadonlyArray<Wanted> =>
  isJsonObject(inputRequests)
    ? Object.values(inputRequests).flatMap((request) =>
        isJsonObject(request) && typeof request["method"] === "string"
          ? [{ method: request["method"], params: request["params"] }]
          : []
      )
    : []

/** What is told of it, and what a model can do about it. */
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

// Calls that a server answers with a task: it works on, and is looked at until it has ended.
//
// A task is waited for within the time of its call. Whoever gives the call up
// cancels the task, so no work goes on of which nobody hears.

/** What a client declares that waits for tasks. */
export const taskCapabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } }

const taskKey = "tropism/taskId"

/** Lets an answer through that is a task: the SDK knows no result of this type. */
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

/** The task that an answer stands for. */
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

/** Looks at a task until it has ended; interrupted, it is cancelled. */
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
    // Whatever is wrong with a look, the work had begun.
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

/** The server says how soon to look again, within bounds. */
const pauseOf = (wanted: unknown): number =>
  Math.min(
    externalLimits.taskPollMaxMs,
    Math.max(externalLimits.taskPollMinMs, typeof wanted === "number" ? wanted : externalLimits.taskPollMinMs)
  )

const readAnswer = (result: unknown): Effect.Effect<CallToolResult, ExternalFault> =>
  Effect.promise(() => Promise.resolve(specTypeSchemas.CallToolResult["~standard"].validate(result))).pipe(
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
