/**
 * Reads what servers send that speak OpenAI's wire nearly right, as OpenAI's own clients understand it.
 *
 * The provider packages refuse an answer for one field of another type. What is unambiguous is put right before they read it:
 * counts as text, arguments as an object, `choices` that is null, an end without a reason, JSON where a stream was asked for.
 * Errors of any form get the one form that the packages read, so that people see the provider's words.
 */
import { Option, Schema } from "effect"
import type { Response as AnswerPart } from "effect/ai"
import { modelLimits } from "../limits.ts"

type Fetch = typeof globalThis.fetch
type Fields = Readonly<Record<string, unknown>>

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))
const parse = (text: string): unknown => Option.getOrUndefined(decodeJson(text))

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const textIn = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== "" ? value : undefined

/** The provider's own words in the body of a refusal, wherever it puts them. */
export const errorMessageIn = (body: unknown): string | undefined => {
  const value = Array.isArray(body) ? body[0] : body
  if (!isFields(value)) return textIn(value)
  const { Message, detail, error, errors, message = Message, msg } = value
  if (error !== undefined && error !== null && error !== "") return errorMessageIn(error)
  return (
    textIn(message) ??
    textIn(msg) ??
    (detail === undefined ? undefined : errorMessageIn(detail)) ??
    (errors === undefined ? undefined : errorMessageIn(errors))
  )
}

/** The words of a body that is no JSON: a text as it is, of a page its title. */
const plainMessageIn = (text: string): string | undefined => {
  const title = /<title>([^<]*)<\/title>/i.exec(text)?.[1]
  return textIn((title ?? (/^\s*</.test(text) ? "" : text)).replace(/\s+/g, " ").trim().slice(0, 600))
}

const messageIn = (text: string, body: unknown): string | undefined =>
  errorMessageIn(body) ?? (body === undefined ? plainMessageIn(text) : undefined)

/** Codes by which providers name a rate limit, whatever the HTTP status: OpenAI, Groq, Azure, Google, AWS. */
const rateLimitCode =
  /^(?:(?:user|account|org|global)?ratelimit(?:ed|exceeded|reached|reachederror|error|ing)?|resourceexhausted|capacityexceeded|toomanyrequests(?:error|exception)?|(?:request)?throttl(?:ed|ing)(?:error|exception)?|requestlimitexceeded|tokenlimitexceeded)$/

/** Whether an error's own code, type, status or reason is that of a rate limit. */
export const namesRateLimit = (body: unknown, depth = 5): boolean => {
  if (depth === 0) return false
  if (Array.isArray(body)) return body.slice(0, 10).some((each) => namesRateLimit(each, depth - 1))
  if (!isFields(body)) return false
  const { __type, code, reason, status, type } = body
  return (
    [code, type, status, reason, typeof __type === "string" ? __type.split("#").at(-1) : undefined].some(
      (name) => typeof name === "string" && rateLimitCode.test(name.toLowerCase().replace(/[^a-z]/g, ""))
    ) || [body["error"], body["errors"], body["details"]].some((inner) => namesRateLimit(inner, depth - 1))
  )
}

/** A header that says of a refusal that it names a rate limit; what the packages read has lost that. */
export const rateLimitHeader = "x-tropism-rate-limit"

/** The form in which one package reads a refusal. */
type ErrorForm = (message: string) => Fields

/** AWS puts the message at the top; a `type` would be shown before it. */
export const bedrockError: ErrorForm = (message) => ({ message })

export const mistralError: ErrorForm = (message) => ({
  object: "error",
  message,
  type: "error",
  param: null,
  code: null
})

/** Rewrites error bodies to the form that provider packages read, with the provider's own message. */
export const withReadableErrors = (fetch: Fetch, form?: ErrorForm): Fetch =>
  reading(fetch, (response) =>
    response.ok
      ? response
      : response.text().then(
          (text) =>
            new Response(form === undefined ? readable(text) : formed(text, form), {
              status: response.status,
              statusText: response.statusText,
              headers: refusalHeaders(response, text)
            })
        )
  )

const refusalHeaders = (response: Response, text: string): Headers => {
  const headers = headersOf(response, "application/json")
  const isRateLimit =
    namesRateLimit(parse(text)) || namesRateLimit({ type: headers.get("x-amzn-errortype")?.split(":")[0] })
  if (isRateLimit) headers.set(rateLimitHeader, "1")
  return headers
}

const readable = (text: string): string => {
  const body = parse(text)
  const message = messageIn(text, body)
  const first = Array.isArray(body) ? body[0] : body
  const error = isFields(first) && isFields(first["error"]) ? first["error"] : {}
  const isRead = message === undefined || (first === body && textIn(error["message"]) !== undefined)
  return isRead ? text : JSON.stringify({ error: { ...error, message } })
}

const formed = (text: string, form: ErrorForm): string => {
  const message = messageIn(text, parse(text))
  return message === undefined ? text : JSON.stringify(form(message))
}

/** A fetch whose responses are read and written again. */
const reading = (
  fetch: Fetch,
  read: (response: Response, init: RequestInit | undefined) => Response | Promise<Response>
): Fetch =>
  Object.assign(
    (input: Parameters<Fetch>[0], init?: RequestInit) =>
      fetch(input, init).then((response) => read(response, init)),
    { preconnect: fetch.preconnect }
  )

/** The headers of a response whose body was read and written again. */
const headersOf = ({ headers }: Response, contentType: string): Headers => {
  const kept = new Headers(headers)
  for (const name of ["content-length", "content-encoding", "transfer-encoding"]) kept.delete(name)
  kept.set("content-type", contentType)
  return kept
}

/**
 * Answers of chat completions, put right as they come.
 *
 * **Details** `breaksWithoutEnd` is for a package that takes a stream without an end for a whole answer (OpenRouter's): a
 * call whose arguments were cut would be made.
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

/** A whole answer as the stream that was asked for. */
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

/** Calls of a whole message have no place; those of a stream need one. */
const withPlaces = (message: unknown): unknown =>
  isFields(message) && Array.isArray(message["tool_calls"])
    ? {
        ...message,
        tool_calls: message["tool_calls"].map((call: unknown, index) => ({ index, ...Object(call) }))
      }
    : message

/** Puts right the lines of a stream of events; a last line without its end is taken as whole. */
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

/** The connection broke within this line; what its package drops as unfinished is not an answer that its API does not allow. */
const isHalfLine = (line: string): boolean =>
  line.startsWith("data:") && line.slice(5).trim() !== "[DONE]" && parse(line.slice(5)) === undefined

/** Reads one line after another of one answer. */
const makeReader = () => {
  let hasAnswered = false
  let hasCalled = false
  let isFinished = false
  let isError = false
  const read = (line: string): string => {
    if (line.startsWith("event:")) isError = line.slice(6).trim() === "error"
    if (!line.startsWith("data:")) return line
    const data = line.slice(5).trim()
    if (data === "[DONE]") {
      // [DONE] ends the answer even if no finish_reason came.
      if (isFinished || !hasAnswered) return line
      isFinished = true
      const choice = { index: 0, delta: {}, finish_reason: hasCalled ? "tool_calls" : "stop" }
      return `data: ${JSON.stringify({ choices: [choice] })}\n\n${line}`
    }
    const chunk = parse(data)
    if (!isFields(chunk)) return line
    const fault = isError || chunk["object"] === "error" || textIn(chunk["error"]) !== undefined
    if (fault || isFields(chunk["error"])) {
      const message = errorMessageIn(chunk) ?? data
      const error = isFields(chunk["error"]) ? chunk["error"] : { code: chunk["code"] ?? chunk["status"] }
      return `data: ${JSON.stringify({ error: { ...error, message } })}`
    }
    // Not a chat completion: leave it to the package, which reports it.
    if (!("choices" in chunk) && !("usage" in chunk)) return line
    const given = chunk["choices"] ?? []
    if (!Array.isArray(given)) return line
    const choices: ReadonlyArray<unknown> = given.map(toChoice)
    hasAnswered ||= choices.some((choice) => isFields(choice) && isFields(choice["delta"]))
    hasCalled ||= choices.some(callsIn)
    isFinished ||= choices.some((choice) => isFields(choice) && textIn(choice["finish_reason"]) !== undefined)
    const usage = isFields(chunk["usage"]) ? { usage: toCounts(chunk["usage"]) } : {}
    // Mistral's package reads the first choice without asking whether there is one.
    const read = choices.length === 0 ? [{ index: 0, delta: {} }] : choices
    return `data: ${JSON.stringify({ ...chunk, choices: read, ...usage })}`
  }
  /** Whether an answer has begun and not ended. */
  const isOpen = () => hasAnswered && !isFinished
  return Object.assign(read, { isOpen })
}

const callsIn = (choice: unknown): boolean =>
  isFields(choice) &&
  isFields(choice["delta"]) &&
  Array.isArray(choice["delta"]["tool_calls"]) &&
  choice["delta"]["tool_calls"].length > 0

const toChoice = (choice: unknown): unknown => {
  if (!isFields(choice) || !isFields(choice["delta"]) || !Array.isArray(choice["delta"]["tool_calls"]))
    return choice
  const tool_calls = choice["delta"]["tool_calls"].map((call: unknown) => {
    if (!isFields(call) || !isFields(call["function"]) || !isFields(call["function"]["arguments"]))
      return call
    return {
      ...call,
      function: { ...call["function"], arguments: JSON.stringify(call["function"]["arguments"]) }
    }
  })
  return { ...choice, delta: { ...choice["delta"], tool_calls } }
}

/** Counts that came as text. */
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

// Reads what a model thinks aloud as reasoning: text in `<think>` tags at the beginning of an answer.
//
// Local servers send it so where they have no parser for the model (llama.cpp, Ollama, vLLM without a reasoning parser). Some
// chat templates hold the opening tag themselves, so an answer has the closing one alone. The first such answer of a model
// has gone on as text before that is clear: `spokenThinking` marks where its thinking ended. Later ones are held back. A tag that
// neither begins nor ends a line, or is in a block of code, is spoken of and ends nothing.

const open = "<think>"
const close = "</think>"
const id = "think"

/** The id of a `reasoning-end` after which all text so far counts as reasoning. */
export const spokenThinking = "think-spoken"

/** What is known of a model's thinking before it answers. */
export interface ThinkTagHabits {
  /** Whether a closing tag without an opening one ends its thinking; hosted models speak of tags without thinking in them. */
  readonly mayCloseAlone: boolean
  /** Whether its answers are known to begin inside the thinking. */
  readonly opensSilently: boolean
  /** Called at the first closing tag without an opening one. */
  readonly closedAlone: () => void
}

/** Makes a reader for one answer; a part that is no text ends what is held back. */
export const makeThinkingReader = ({ closedAlone, mayCloseAlone, opensSilently }: ThinkTagHabits) => {
  let state: "start" | "silent" | "thinking" | "speaking" | "closed" | "after" = "start"
  let held = ""
  let textId = ""
  /** What has gone on as text so far. */
  let soFar = ""
  const text = (delta: string): ReadonlyArray<AnswerPart.StreamPartEncoded> =>
    delta === "" ? [] : [{ type: "text-delta", id: textId, delta }]
  const thought = (delta: string): ReadonlyArray<AnswerPart.StreamPartEncoded> =>
    delta === "" ? [] : [{ type: "reasoning-delta", id, delta }]

  const start = (): ReadonlyArray<AnswerPart.StreamPartEncoded> => {
    const said = held.trimStart()
    if (said.startsWith(open)) {
      state = "thinking"
      held = said.slice(open.length)
      return [{ type: "reasoning-start", id }, ...think()]
    }
    if (open.startsWith(said)) return []
    if (!mayCloseAlone) {
      state = "after"
      return text(held)
    }
    state = opensSilently ? "silent" : "speaking"
    return opensSilently ? silent() : speak()
  }

  /** Holds the answer back until its thinking ends; an answer that never ends it is text. */
  const silent = (): ReadonlyArray<AnswerPart.StreamPartEncoded> => {
    const end = held.indexOf(close)
    if (end >= 0) {
      const before = held.slice(0, end)
      return [
        { type: "reasoning-start", id },
        ...thought(before),
        { type: "reasoning-end", id },
        ...closeAt(end)
      ]
    }
    if (held.length <= modelLimits.answerPartsMaxChars) return [{ type: "reasoning-delta", id, delta: "" }]
    state = "after"
    return text(held)
  }

  const speak = (): ReadonlyArray<AnswerPart.StreamPartEncoded> => {
    const end = held.indexOf(close)
    if (end < 0) {
      const sure = held.length - openEnd(held)
      const delta = held.slice(0, sure)
      // An answer that opens the tag itself, in its midst, speaks of tags.
      if (delta.includes(open)) {
        state = "after"
        return text(held)
      }
      held = held.slice(sure)
      soFar += delta
      return text(delta)
    }
    const before = held.slice(0, end)
    const after = held.slice(end + close.length)
    const isAtLineStart = /(?:^|\n)[ \t]*$/.test(soFar + before)
    if (!isAtLineStart && /^[ \t]*$/.test(after)) {
      held = held.slice(end)
      soFar += before
      return text(before)
    }
    const isOnLine = isAtLineStart || /^[ \t]*\r?\n/.test(after)
    if (!isOnLine || isFenced(soFar + before) || before.includes(open)) {
      state = "after"
      return text(held)
    }
    closedAlone()
    return [...text(before), { type: "reasoning-end", id: spokenThinking }, ...closeAt(end)]
  }

  const think = (): ReadonlyArray<AnswerPart.StreamPartEncoded> => {
    const end = held.indexOf(close)
    if (end < 0) {
      // The end of a piece may be the beginning of the closing tag.
      const sure = Math.max(0, held.length - close.length + 1)
      const delta = held.slice(0, sure)
      held = held.slice(sure)
      return thought(delta)
    }
    return [...thought(held.slice(0, end)), { type: "reasoning-end", id }, ...closeAt(end)]
  }

  const closeAt = (end: number): ReadonlyArray<AnswerPart.StreamPartEncoded> => {
    state = "closed"
    held = held.slice(end + close.length)
    return closed()
  }

  /** The line breaks before the answer belong to the tag, in whatever pieces they come. */
  const closed = (): ReadonlyArray<AnswerPart.StreamPartEncoded> => {
    held = held.trimStart()
    if (held === "") return []
    state = "after"
    return text(held)
  }

  const flush = (): ReadonlyArray<AnswerPart.StreamPartEncoded> => {
    const rest = held
    const before = state
    held = ""
    state = "after"
    if (before === "after") return []
    return before === "thinking" ? [...thought(rest), { type: "reasoning-end", id }] : text(rest)
  }

  const take = { start, silent, speaking: speak, thinking: think, closed }

  return (part: AnswerPart.StreamPartEncoded): ReadonlyArray<AnswerPart.StreamPartEncoded> => {
    if (state === "after") return [part]
    if (part.type === "text-delta") {
      textId = part.id
      held += part.delta
      return take[state]()
    }
    return part.type === "tool-call" || part.type === "finish" ? [...flush(), part] : [part]
  }
}

/** Whether a text ends inside a block of code. */
const isFenced = (text: string): boolean => (text.split("```").length - 1) % 2 === 1

/** How many characters at the end of a piece may be the beginning of the closing tag, or of an opening one. */
const openEnd = (piece: string): number => {
  for (let length = Math.min(close.length - 1, piece.length); length > 0; length--) {
    const end = piece.slice(-length)
    if (close.startsWith(end) || open.startsWith(end)) return length
  }
  return 0
}
