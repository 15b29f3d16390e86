/**
 * Validates a raw request before it is decoded: can it be stored as sent?
 *
 * A body is checked as text first, because decoding would already round its numbers, repair its bytes and drop one of two equal keys.
 * Whether it matches the contract is decided later.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { attachmentMaxBytes } from "@tropism/api/attachments-api"
import { RequestJudgement, RequestProblems } from "@tropism/api/authorization"
import { dumpMaxBytes } from "@tropism/api/dumps-api"
import {
  BodyTooLarge,
  InvalidInput,
  MalformedRequest,
  NotFound,
  ServerFault,
  Unavailable
} from "@tropism/api/problems"
import { importMaxBytes, lockfileMaxBytes } from "@tropism/api/transfer-api"
import { mimeTypeOf, MimeType } from "@tropism/domain/attachment"
import { textFault } from "@tropism/domain/json"
import { hasExponent, scanJson } from "@tropism/domain/json-text"
import { keptBytes } from "@tropism/domain/kept-size"
import { ByteSize, Effect, Fiber, Layer, Cause } from "effect"
import { HttpEffect, HttpIncomingMessage, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { passingFault } from "../database/connection-errors.ts"
import { httpLimits } from "../limits.ts"
import { IdempotencyKeys } from "../tenancy/idempotency-keys.ts"
import { CurrentKey, readSaidKey } from "./idempotency.ts"
import { saysText } from "./optional-body.ts"
import { invalidBody, invalidParameters } from "./problems.ts"

export const layerRequestJudgement = Layer.effect(
  RequestJudgement,
  Effect.map(IdempotencyKeys, (keys) =>
    RequestJudgement.of((httpEffect, { endpoint }) =>
      judgeQuery.pipe(
        Effect.andThen(judgeEncoding),
        Effect.andThen(judgeOf(endpoint.identifier)),
        Effect.andThen(
          Effect.provideService(readSaidKey(endpoint.identifier in fileJudges), IdempotencyKeys, keys)
        ),
        Effect.flatMap((said) => Effect.provideService(httpEffect, CurrentKey, said))
      )
    )
  )
)

/** The refusal of a request whose body is not JSON. */
const sendJson = new MalformedRequest({
  detail: "Send the body as JSON, with the header content-type: application/json"
})

const sendJsonOrText = new MalformedRequest({
  detail: "Send the body as JSON or as text, with the header content-type: application/json or text/plain"
})

/** Refuses text that PostgreSQL cannot compare, and repeated parameters, whose intended value is unknown. */
const judgeQuery = Effect.gen(function* () {
  const { url } = yield* HttpServerRequest.HttpServerRequest
  const start = url.indexOf("?")
  if (start === -1) return
  const given = new Set<string>()
  for (const [name, value] of new URLSearchParams(url.slice(start))) {
    const message = textFault(name) ?? textFault(value) ?? (given.has(name) ? giveOnce(name) : undefined)
    given.add(name)
    if (message !== undefined)
      return yield* new InvalidInput({
        detail: `${name}: ${message}`,
        errors: [{ pointer: name, message }]
      })
  }
})

const giveOnce = (name: string) => `Give ${name} once: it stands several times in the address`

export const judgeEncoding = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const encoding = headers["content-encoding"] ?? "identity"
  if (encoding.toLowerCase() !== "identity")
    return yield* new MalformedRequest({
      detail: `Send the body as it is: content-encoding ${encoding} is not taken here`
    })
})

/** Whether a header says that the body is plain bytes. */
export const saysBytes = (contentType: string): boolean =>
  /^application\/octet-stream\s*(?:;|$)/i.test(contentType)

const judgeFile = Effect.fnUntraced(function* (
  maxBytesOf: (url: string) => number,
  isTaken: (contentType: string) => boolean = saysBytes,
  header = "content-type: application/octet-stream"
) {
  const { headers, url } = yield* HttpServerRequest.HttpServerRequest
  if (!isTaken(headers["content-type"] ?? ""))
    return yield* new MalformedRequest({ detail: `Send the file as the body, with the header ${header}` })
  const maxBytes = maxBytesOf(url)
  if (Number(headers["content-length"] ?? 0) > maxBytes)
    return yield* Effect.andThen(dropBody, tooLarge(maxBytes))
})

/** Refuses a key where the file has an id instead: its sender would assume that the request is safe to repeat. */
const refuseKey = (instead: string) =>
  Effect.gen(function* () {
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    if (headers["idempotency-key"] === undefined) return
    const message = `No Idempotency-Key is taken here: ${instead}`
    const refusal = new MalformedRequest({
      detail: message,
      errors: [{ pointer: "idempotency-key", message }]
    })
    return yield* Effect.andThen(dropBody, refuseRest(refusal))
  })

/** The requests whose body is a file, by their operation in the contract. */
const fileJudges: Readonly<Record<string, ReturnType<typeof judgeFile>>> = {
  import: Effect.andThen(
    refuseKey(
      "give the import an id of your own with ?id=, and send the file again with ?resume= and that id, which makes nothing twice; a lockfile may be sent again as it is"
    ),
    judgeFile((url) => (/[?&]format=package-lock(?:&|$)/.test(url) ? lockfileMaxBytes : importMaxBytes))
  ),
  restoreDump: Effect.andThen(
    refuseKey("give the new project an id of your own with ?id=, which is made once"),
    judgeFile(() => dumpMaxBytes)
  ),
  attach: judgeFile(
    () => attachmentMaxBytes,
    (contentType) => saysBytes(contentType) || mimeTypeOf(contentType) !== undefined,
    `content-type: ${MimeType.literals.join(", ")}`
  )
}

/** The bytes of a body up to a size, once complete; a second call returns the same bytes. */
export const readBody = Effect.fnUntraced(function* (maxBytes: number) {
  const { arrayBuffer } = yield* HttpServerRequest.HttpServerRequest
  // Interrupting the read would destroy the request and its answer, so the read ends with the connection.
  const reading = yield* arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBytes)),
    Effect.forkDetach
  )
  return yield* Fiber.join(reading).pipe(
    Effect.catch(() => tooLarge(maxBytes)),
    Effect.timeoutOrElse({
      duration: httpLimits.bodyTimeoutMs,
      orElse: () => tooSlow(httpLimits.bodyTimeoutMs)
    })
  )
})

/** Validates a body up to a size; the contract decodes the same bytes afterwards. */
export const judgeBodyUpTo = Effect.fnUntraced(function* (maxBytes: number, takesText = false) {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (request.method === "GET" || request.method === "HEAD" || request.method === "DELETE") return
  if (Number(request.headers["content-length"] ?? 0) > maxBytes)
    return yield* Effect.andThen(dropBody, tooLarge(maxBytes))
  const bytes = yield* readBody(maxBytes)
  if (bytes.byteLength === 0) return
  const contentType = request.headers["content-type"] ?? ""
  const isText = takesText && saysText(contentType)
  if (!isText && !/^application\/json\s*(?:;|$)/i.test(contentType))
    return yield* takesText ? sendJsonOrText : sendJson
  const text = yield* Effect.mapError(
    readText(bytes),
    () => new MalformedRequest({ detail: "The body is not UTF-8: send it in UTF-8" })
  )
  if (isText) {
    const message = textFault(text)
    return message === undefined
      ? undefined
      : yield* new InvalidInput({ detail: message, errors: [{ pointer: "", message }] })
  }
  const fault = scanJson(text)
  if (fault) return yield* new InvalidInput({ detail: fault.message, errors: [fault] })
  const value = yield* Effect.try({
    try: () => JSON.parse(text) as unknown,
    catch: (error) =>
      new MalformedRequest({
        detail: `The body is no JSON: ${error instanceof Error ? error.message : "it cannot be read"}`
      })
  })
  const keptSize = hasExponent(text) ? keptBytes(value) : 0
  if (keptSize > maxBytes) {
    const message = `With all digits of its numbers, as they are kept, the body has ${keptSize} bytes, and it may have ${maxBytes}: send such numbers as text`
    return yield* new InvalidInput({ detail: message, errors: [{ pointer: "", message }] })
  }
})

/** Validates a body up to the default size. */
export const judgeBody = judgeBodyUpTo(httpLimits.bodyMaxBytes)

/** The same for a run's input, which may be text. */
export const judgeInput = judgeBodyUpTo(httpLimits.bodyMaxBytes, true)

const judgeOf = (endpoint: string) =>
  fileJudges[endpoint] ?? (endpoint === "trigger" ? judgeInput : judgeBody)

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** Decodes text; fails where another decoder would insert a replacement character. */
export const readText = (bytes: ArrayBuffer | Uint8Array) =>
  Effect.try({ try: () => utf8.decode(bytes), catch: () => "notUtf8" as const })

/** Refuses a body that is not read to its end: the connection closes with the answer, because the rest of the body follows on it. */
export const refuseRest = <E>(problem: E): Effect.Effect<never, E, HttpServerRequest.HttpServerRequest> =>
  Effect.andThen(HttpEffect.appendPreResponseHandler(closing), Effect.fail(problem))

const closing: HttpEffect.PreResponseHandler = (_request, response) =>
  Effect.succeed(HttpServerResponse.setHeader(response, "connection", "close"))

/** The refusal of a body that comes too slowly. */
export const tooSlow = (timeoutMs: number) =>
  refuseRest(
    new MalformedRequest({
      detail: `The body did not come within ${timeoutMs / 1_000} seconds: send the request again`
    })
  )

/** The refusal of a body that is too large. */
export const tooLarge = (maxBytes: number) =>
  refuseRest(new BodyTooLarge({ detail: `A body may have ${maxBytes} bytes here` }))

// Reads the rest of a refused body and discards it.
//
// Closing a connection while the client still sends resets it, and the answer is lost: most clients then report a broken connection. So a
// bounded part is read. A client that sends more, or more slowly, is cut off.

/** Waits until an unread body is complete, too large or stalled. */
const dropBody = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (Number(request.headers["content-length"] ?? 0) > httpLimits.dropMaxBytes) return
  const source = NodeHttpServerRequest.toIncomingMessage(request)
  let bytes = 0
  const ended = Effect.callback<void>((resume) => {
    const end = () => resume(Effect.void)
    source.on("data", (part: Uint8Array) => {
      bytes += part.byteLength
      if (bytes > httpLimits.dropMaxBytes) end()
    })
    for (const event of ["end", "close", "error"]) source.once(event, end)
  })
  const quiet = Effect.gen(function* () {
    let before = -1
    while (bytes > before) {
      before = bytes
      yield* Effect.sleep(httpLimits.dropQuietMs)
    }
  })
  yield* Effect.raceFirst(ended, quiet).pipe(Effect.timeoutOption(httpLimits.dropTimeoutMs))
})

// Answers every failure around a handler with a problem document.
//
// A contract violation lists its places; an ill-formed id in a path and an unknown address answer 404. Server faults are logged and never
// shown.

export const layerRequestProblems = Layer.succeed(RequestProblems, (httpEffect) =>
  httpEffect.pipe(
    // The framework answers an unsupported content type with bare text.
    Effect.filterOrFail(
      (response) => response.status !== 415,
      () => sendJson
    ),
    Effect.catch((error) => problemFor(error)),
    Effect.catchDefect(
      (defect): Effect.Effect<never, ServerFault | Unavailable, HttpServerRequest.HttpServerRequest> => {
        const detail = passingFault(defect)
        return detail === undefined
          ? Effect.andThen(Effect.logError("A request failed", defect), serverFault)
          : Effect.andThen(tellWhen, Effect.fail(new Unavailable({ detail })))
      }
    )
  )
)

const tellWhen = HttpEffect.appendPreResponseHandler((_, response) =>
  Effect.succeed(HttpServerResponse.setHeader(response, "retry-after", "1"))
)

const serverFault = Effect.fail(new ServerFault({ detail: "The server failed; its log says why" }))

type Problem = NotFound | InvalidInput | ServerFault | BodyTooLarge | MalformedRequest

/** Maps a framework error of the request to the contract's problems; others stay as they are. */
const problemFor = <E>(error: E): Effect.Effect<never, Problem | E> => {
  if (HttpApiError.HttpApiSchemaError.is(error)) return problemOf(error)
  if (HttpApiError.HttpApiPayloadTooLarge.is(error))
    return Effect.fail(new BodyTooLarge({ detail: "The file is larger than this door takes" }))
  return Effect.fail(error)
}

const problemOf = (error: HttpApiError.HttpApiSchemaError): Effect.Effect<never, Problem> => {
  const { issue } = error.cause
  switch (error.kind) {
    case "Body":
    case "ResponseHeaders":
      return Effect.andThen(
        Effect.logError("An answer does not fit the contract", Cause.fail(error.cause)),
        serverFault
      )
    case "Params":
      return Effect.fail(new NotFound({ detail: "There is nothing at this address" }))
    case "Payload":
      return Effect.fail(invalidBody(issue))
    default:
      return Effect.fail(invalidParameters(issue))
  }
}
