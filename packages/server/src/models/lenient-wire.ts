/**
 * Repairs answers of servers that implement OpenAI's API imprecisely, as OpenAI's own clients tolerate them.
 *
 * The provider packages reject an answer for one field of a wrong type. Unambiguous deviations are repaired before they read it: counts as
 * text, arguments as an object, null `choices`, a missing finish reason, JSON instead of a stream. Errors of any form are mapped to the
 * form that the packages read, so that people see the provider's message.
 */
import { Option, Schema } from "effect"
import { modelLimits } from "../limits.ts"
import {
  type Fields,
  isFields,
  kindOfName,
  kindOfRefusal,
  type RefusalKind,
  statusOfKind
} from "./provider-codes.ts"

type Fetch = typeof globalThis.fetch

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))
const parse = (text: string): unknown => Option.getOrUndefined(decodeJson(text))

const textIn = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== "" ? value : undefined

/** The provider's message in a refusal's body, in any of its known places. */
export const errorMessageIn = (body: unknown): string | undefined => {
  const value = Array.isArray(body) ? body[0] : body
  if (!isFields(value)) return textIn(value)
  const {
    Message,
    base_resp,
    detail,
    error,
    error_msg,
    errors,
    loc,
    message = Message,
    msg,
    status_msg,
    title
  } = value
  if (error !== undefined && error !== null && error !== "") return errorMessageIn(error)
  return (
    textIn(message) ??
    placed(textIn(msg), loc) ??
    textIn(error_msg) ??
    textIn(status_msg) ??
    (isFields(base_resp) ? errorMessageIn(base_resp) : undefined) ??
    (detail === undefined ? undefined : errorMessageIn(detail)) ??
    (errors === undefined ? undefined : errorMessageIn(errors)) ??
    textIn(title)
  )
}

/** A FastAPI message about one field names it only in its location. */
const placed = (message: string | undefined, loc: unknown): string | undefined => {
  const names = Array.isArray(loc) ? loc.filter((name) => name !== "body") : []
  return message === undefined || names.length === 0 ? message : `${names.join(".")}: ${message}`
}

/** The message of a body that is not JSON: plain text as it is, the title of an HTML page. */
const plainMessageIn = (text: string): string | undefined =>
  textIn((titleIn(text) ?? (isPage(text) ? "" : text)).replace(/\s+/g, " ").trim().slice(0, 600))

const titleIn = (text: string): string | undefined => /<title[^>]*>([^<]*)<\/title>/i.exec(text)?.[1]

const isPage = (text: string): boolean => /^[\s\uFEFF]*</.test(text)

const messageIn = (text: string, body: unknown): string | undefined =>
  errorMessageIn(body) ?? (body === undefined ? plainMessageIn(text) : undefined)

/** The kind of a refusal by its codes, which the packages have no field for; `page` is the answer of another program. */
export const refusalHeader = "x-tropism-refusal"

/** The kind that was detected when the response was read. */
export const kindInHeaders = (
  headers: Readonly<Record<string, string>> = {}
): RefusalKind | "page" | undefined => headers[refusalHeader] as RefusalKind | "page" | undefined

/** The form in which a package reads errors. */
type ErrorForm = (message: string) => Fields

/** AWS has the message at the top level; a `type` would be shown before it. */
export const bedrockError: ErrorForm = (message) => ({ message })

export const mistralError: ErrorForm = (message) => ({
  object: "error",
  message,
  type: "error",
  param: null,
  code: null
})

/** Rewrites error bodies to the form that packages read, with the provider's message. */
export const withReadableErrors = (fetch: Fetch, form: ErrorForm = openaiError): Fetch => {
  /** The addresses and models that streamed an answer: a page from them is an outage. */
  const answered = new Set<string>()
  return reading(fetch, (response, init, input) => {
    const asked = `${input instanceof Request ? input.url : input} ${modelIn(init?.body)}`
    const isKnown = answered.has(asked)
    if (!response.ok) return response.text().then((text) => readRefusal(response, text, form, isKnown))
    const type = response.headers.get("content-type") ?? ""
    if (/\bx?html\b/i.test(type))
      return response.text().then((text) => pageRefusal(response, text, form, isKnown))
    if (/event-?stream/i.test(type) && answered.size < modelLimits.answeredMaxAddresses) answered.add(asked)
    return type === "" || /^text\/plain\b/i.test(type) ? sniffed(response, form, isKnown) : response
  })
}

/** The model in a request's body; Google's and Bedrock's APIs have it in the address. */
const modelIn = (body: unknown): string => /"model":"([^"]{1,200})"/.exec(String(body))?.[1] ?? ""

/** OpenAI's form, plus the fields that Anthropic's and Google's packages require. */
const openaiErrorOf = (error: Fields, message: string): Fields => ({
  type: "error",
  error: { type: "error", code: null, status: "", ...error, message }
})

const openaiError: ErrorForm = (message) => openaiErrorOf({}, message)

const readRefusal = (response: Response, text: string, form: ErrorForm, isKnown: boolean): Response => {
  const { status, statusText } = response
  const body = parse(text)
  const isOutage = isKnown && status === 404 && body === undefined && text.trim() !== ""
  if (isOutage || (isPage(text) && misdirected.has(status))) return pageRefusal(response, text, form, isKnown)
  const kind =
    kindOfRefusal(body) ??
    kindOfName(response.headers.get("x-amzn-errortype")?.split(":")[0]) ??
    (status === 403 && saysBlocked.test(text) ? "rateLimit" : undefined)
  const headers = headersOf(response, "application/json")
  if (kind !== undefined) headers.set(refusalHeader, kind)
  const written = form === openaiError ? readable(text) : formed(text, form)
  return new Response(written, { status, statusText, headers })
}

/** Cloudflare's page or text for a rate limit of the site; its title does not contain the reason. */
const saysBlocked = /\b(?:rate[- ]limited|error(?: code)?:? 1015)\b/i

/** With these a web server reports an unknown address; other pages may be a proxy's during an outage. */
const misdirected: ReadonlySet<number> = new Set([404, 405, 501])

/**
 * The answer is not the API's: there is no model at this address, and a retry does not help.
 *
 * If the model answered there before, the page is a proxy's during a deployment or maintenance, and passes.
 */
const pageRefusal = (response: Response, text: string, form: ErrorForm, isKnown: boolean): Response => {
  const title = plainMessageIn(text)
  const what = isPage(text) ? "a web page" : "a text"
  const shown = title === undefined ? "" : `: ${title.slice(0, 100)}`
  const headers = headersOf(response, "application/json")
  headers.set(refusalHeader, isKnown ? "away" : "page")
  const message = `answered with ${what} (HTTP ${response.status}${shown}) instead of JSON`
  return new Response(JSON.stringify(form(message)), { status: isKnown ? 503 : 421, headers })
}

/** Inspects the beginning of a body with an inconclusive type: an HTML page is not an event stream. */
const sniffed = (response: Response, form: ErrorForm, isKnown: boolean): Response | Promise<Response> => {
  if (response.body === null) return response
  const reader = response.body.getReader()
  return reader.read().then((first) => {
    const whole = new Response(streamOf(first, reader), response)
    const beginning = new TextDecoder().decode(first.value).trimStart()
    return beginning === "" || /^(?:[a-z]*:|[[{])/.test(beginning)
      ? whole
      : whole.text().then((text) => pageRefusal(response, text, form, isKnown))
  })
}

type Piece = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>["read"]>>

/** A body whose first chunk was already read. */
const streamOf = (
  first: Piece,
  reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>
): ReadableStream<Uint8Array<ArrayBuffer>> => {
  const give = (
    controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>,
    { done, value }: Piece
  ) => (done ? controller.close() : controller.enqueue(value))
  return new ReadableStream({
    start: (controller) => give(controller, first),
    pull: (controller) => reader.read().then((piece) => give(controller, piece)),
    cancel: (reason) => reader.cancel(reason)
  })
}

const readable = (text: string): string => {
  const body = parse(text)
  const message = messageIn(text, body)
  const first = Array.isArray(body) ? body[0] : body
  const error = isFields(first) && isFields(first["error"]) ? first["error"] : {}
  const isRead = message === undefined || (first === body && textIn(error["message"]) !== undefined)
  return isRead ? text : JSON.stringify(openaiErrorOf(error, message))
}

const formed = (text: string, form: ErrorForm): string => {
  const message = messageIn(text, parse(text))
  return message === undefined ? text : JSON.stringify(form(message))
}

/** Edits of a request body for a model that refuses a part of it, where the package has no setting. */
export interface BodyEdits {
  /** Fields to remove. */
  readonly without: ReadonlyArray<string>
  /** Fields to rename, by the package's name. */
  readonly renamed: Readonly<Record<string, string>>
  /** Whether developer messages are sent as system messages. */
  readonly withoutDeveloper: boolean
}

/** The internal header that carries a request's edits; it is not sent. */
export const editsHeader = "x-tropism-edits"

/** Applies the edits to request bodies. */
export const withBodyEdits = (fetch: Fetch): Fetch =>
  Object.assign(
    (input: Parameters<Fetch>[0], init?: RequestInit) => {
      const headers = new Headers(init?.headers)
      const edits = headers.get(editsHeader)
      if (edits === null || typeof init?.body !== "string") return fetch(input, init)
      headers.delete(editsHeader)
      const body = edited(JSON.parse(init.body), JSON.parse(edits))
      return fetch(input, { ...init, headers, body: JSON.stringify(body) })
    },
    { preconnect: fetch.preconnect }
  )

const edited = (body: Fields, { renamed, without, withoutDeveloper }: BodyEdits): Fields =>
  Object.fromEntries(
    Object.entries(body).flatMap(([name, value]) => {
      if (without.includes(name)) return []
      const isSaid = withoutDeveloper && (name === "messages" || name === "input") && Array.isArray(value)
      return [[renamed[name] ?? name, isSaid ? value.map(bySystem) : value]]
    })
  )

const bySystem = (message: unknown): unknown =>
  isFields(message) && message["role"] === "developer" ? { ...message, role: "system" } : message

/** A fetch that rewrites response bodies. */
const reading = (
  fetch: Fetch,
  read: (
    response: Response,
    init: RequestInit | undefined,
    input: Parameters<Fetch>[0]
  ) => Response | Promise<Response>
): Fetch =>
  Object.assign(
    (input: Parameters<Fetch>[0], init?: RequestInit) =>
      fetch(input, init).then((response) => read(response, init, input)),
    { preconnect: fetch.preconnect }
  )

/** The headers of a rewritten response. */
const headersOf = ({ headers }: Response, contentType: string): Headers => {
  const kept = new Headers(headers)
  for (const name of ["content-length", "content-encoding", "transfer-encoding"]) kept.delete(name)
  kept.set("content-type", contentType)
  return kept
}

/**
 * Repairs chat completions as they stream.
 *
 * `breaksWithoutEnd` is for a package that accepts a stream without an end (OpenRouter's): it would run a call with truncated arguments.
 */
export const withLenientAnswers = (fetch: Fetch, breaksWithoutEnd = false): Fetch =>
  reading(fetch, (response, init) => {
    const { body, headers, ok, status } = response
    if (!ok || body === null || !/"stream":\s*true/.test(String(init?.body))) return response
    const toStream = (text: BodyInit) =>
      new Response(text, { status, headers: headersOf(response, "text/event-stream") })
    return /\bjson\b/.test(headers.get("content-type") ?? "")
      ? response.text().then((text) => toStream(asEvents(text)))
      : toStream(
          body
            .pipeThrough(new TextDecoderStream())
            .pipeThrough(lenientEvents(breaksWithoutEnd))
            .pipeThrough(new TextEncoderStream())
        )
  })

/** A whole answer as the requested stream. */
const asEvents = (text: string): string => {
  const body = parse(text)
  const reader = makeReader()
  const chunk =
    isFields(body) && Array.isArray(body["choices"])
      ? {
          ...body,
          choices: body["choices"].map((choice: unknown) =>
            isFields(choice) ? { ...choice, delta: withPlaces(choice["message"] ?? choice["delta"]) } : choice
          )
        }
      : body
  return chunk === undefined
    ? text
    : `${reader(`data: ${JSON.stringify(chunk)}`)}\n\n${reader("data: [DONE]")}\n\n`
}

/** Calls of a whole message have no index; those of a stream need one. */
const withPlaces = (message: unknown): unknown =>
  isFields(message) && Array.isArray(message["tool_calls"])
    ? {
        ...message,
        tool_calls: message["tool_calls"].map((call: unknown, index) => ({ index, ...Object(call) }))
      }
    : message

/** Repairs the lines of an event stream; a last line without a line break counts as complete. */
const lenientEvents = (breaksWithoutEnd: boolean): TransformStream<string, string> => {
  const reader = makeReader()
  let rest = ""
  return new TransformStream({
    transform: (piece, controller) => {
      const lines = (rest + piece).split("\n")
      rest = lines.pop() ?? ""
      if (lines.length > 0)
        controller.enqueue(lines.map((line) => `${reader(line.replace(/\r$/, ""))}\n`).join(""))
    },
    flush: (controller) => {
      if (rest !== "" && !isHalfLine(rest)) controller.enqueue(`${reader(rest)}\n\n`)
      if (breaksWithoutEnd && reader.isOpen()) controller.error(new TypeError("The answer has no end"))
    }
  })
}

/** The connection broke within this line, so it is not a violation of the API. */
const isHalfLine = (line: string): boolean =>
  line.startsWith("data:") && line.slice(5).trim() !== "[DONE]" && parse(line.slice(5)) === undefined

/** Reads the lines of one answer in order. */
const makeReader = () => {
  let hasAnswered = false
  let hasCalled = false
  let isFinished = false
  let isError = false
  const places = makePlaces()
  const read = (line: string): string => {
    if (line.startsWith("event:")) isError = line.slice(6).trim() === "error"
    if (!line.startsWith("data:")) return line
    const data = line.slice(5).trim()
    if (/^"?\[done\]"?$/i.test(data)) {
      const end = "data: [DONE]"
      // [DONE] ends the answer even without a finish_reason.
      if (isFinished || !hasAnswered) return end
      isFinished = true
      const choice = { index: 0, delta: {}, finish_reason: hasCalled ? "tool_calls" : "stop" }
      return `data: ${JSON.stringify({ choices: [choice] })}\n\n${end}`
    }
    if (data === "") return ""
    const chunk = parse(data)
    if (chunk === null || isPing(chunk)) return ""
    if (!isFields(chunk)) return line
    const isAnswer = "choices" in chunk && !("base_resp" in chunk)
    const kind = isAnswer || "error" in chunk ? undefined : kindOfRefusal(chunk)
    if (kind !== undefined) return refusedLine(kind, chunk)
    const fault = isError || chunk["object"] === "error" || textIn(chunk["error"]) !== undefined
    if (fault || isFields(chunk["error"])) {
      const message = errorMessageIn(chunk) ?? data
      const error = isFields(chunk["error"]) ? chunk["error"] : { code: chunk["code"] ?? chunk["status"] }
      return `data: ${JSON.stringify({ error: { ...error, message } })}`
    }
    // Not a chat completion: the package reports it.
    if (!("choices" in chunk) && !("usage" in chunk)) return isFinished ? "" : line
    const given = chunk["choices"] ?? []
    if (!Array.isArray(given)) return line
    const choices: ReadonlyArray<unknown> = given.map((choice, place) => toChoice(choice, place, places))
    hasAnswered ||= choices.some((choice) => isFields(choice) && isFields(choice["delta"]))
    hasCalled ||= choices.some(callsIn)
    isFinished ||= choices.some((choice) => isFields(choice) && textIn(choice["finish_reason"]) !== undefined)
    const usage = isFields(chunk["usage"]) ? { usage: toCounts(chunk["usage"]) } : {}
    // Mistral's package reads the first choice without checking that there is one.
    const read = choices.length === 0 ? [{ index: 0, delta: {} }] : choices
    return `data: ${JSON.stringify({ ...chunk, ...headOf(chunk), choices: read, ...usage })}`
  }
  /** Whether an answer has begun and not ended. */
  const isOpen = () => hasAnswered && !isFinished
  return Object.assign(read, { isOpen })
}

/** Whether a chunk only keeps the connection open. */
const isPing = (chunk: unknown): boolean =>
  isFields(chunk) &&
  (Object.keys(chunk).length === 0 ||
    (!("choices" in chunk) && [chunk["type"], chunk["object"]].includes("ping")))

/** Maps an error inside a 200 answer to the status that other providers use. */
const refusedLine = (kind: RefusalKind, chunk: Fields): string => {
  const message = errorMessageIn(chunk) ?? JSON.stringify(chunk)
  return `data: ${JSON.stringify({ error: { message, type: kind, code: statusOfKind[kind] } })}`
}

const callsIn = (choice: unknown): boolean =>
  isFields(choice) &&
  isFields(choice["delta"]) &&
  Array.isArray(choice["delta"]["tool_calls"]) &&
  choice["delta"]["tool_calls"].length > 0

/** The head of a chunk, whose ids and times may be numbers or text. */
const headOf = ({ created, id, model }: Fields): Fields => ({
  ...(id === undefined ? {} : { id: toText(id) }),
  ...(created === undefined ? {} : { created: toNumber(created) }),
  ...(model === undefined ? {} : { model: toText(model) })
})

const toText = (value: unknown): string | null =>
  typeof value === "string" ? value : typeof value === "number" ? String(value) : null

const toNumber = (value: unknown): number | null =>
  typeof value === "number" ? value : typeof value === "string" ? toCount(value) : null

/** A choice in stream form; some servers send a `message` in each chunk. */
const toChoice = (choice: unknown, place: number, places: Places): unknown => {
  if (!isFields(choice)) return choice
  const delta = choice["delta"] ?? choice["message"]
  return {
    ...choice,
    index: toNumber(choice["index"]) ?? place,
    ...(isFields(delta) ? { delta: toDelta(delta, places) } : {})
  }
}

const toDelta = ({ role, tool_calls, ...delta }: Fields, places: Places): Fields => ({
  ...(role === undefined || role === "" ? {} : { role: "assistant" }),
  ...delta,
  ...(Array.isArray(tool_calls) ? { tool_calls: tool_calls.map((call) => toCall(call, places)) } : {})
})

/** Assigns an index to call pieces that have none. */
type Places = (id: string | undefined, name: string | undefined) => number

/** A known id continues its call, a name begins one, and a piece with neither belongs to the last call. */
const makePlaces = (): Places => {
  const byId = new Map<string, number>()
  let count = 0
  let last = 0
  return (id, name) => {
    const known = id === undefined ? undefined : byId.get(id)
    last = known ?? (name === undefined && count > 0 ? last : count++)
    if (id !== undefined) byId.set(id, last)
    return last
  }
}

/** A call piece: its id and index may be missing or of another type, its arguments an object or null. */
const toCall = (call: unknown, places: Places): unknown => {
  if (!isFields(call)) return call
  const { function: given, id, index, type: _type, ...rest } = call
  const called = isFields(given) ? given : {}
  const args = called["arguments"]
  const callId = toText(id)
  return {
    ...rest,
    ...(id === undefined ? {} : { id: callId }),
    index: toNumber(index) ?? places(textIn(callId), textIn(called["name"])),
    type: "function",
    function: {
      ...called,
      ...(isFields(args) || Array.isArray(args) ? { arguments: JSON.stringify(args) } : {})
    }
  }
}

/** Parses counts sent as text. */
const toCounts = (usage: Fields): Fields =>
  Object.fromEntries(
    Object.entries(usage).map(([name, value]) => [
      name,
      isFields(value) ? toCounts(value) : typeof value === "string" ? toCount(value) : value
    ])
  )

const toCount = (text: string): number | null => {
  const count = Number(text)
  return text.trim() === "" || Number.isNaN(count) ? null : count
}
