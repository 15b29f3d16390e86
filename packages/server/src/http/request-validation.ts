/**
 * Judges a request before anything of it is decoded: can it be kept as it was sent?
 *
 * A body is judged as text first, because decoding it would already round its
 * numbers, mend its bytes and drop the first of two equal keys. Whether it fits
 * the contract is not asked here.
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

/** What a request without JSON is told. */
const sendJson = new MalformedRequest({
  detail: "Send the body as JSON, with the header content-type: application/json"
})

const sendJsonOrText = new MalformedRequest({
  detail: "Send the body as JSON or as text, with the header content-type: application/json or text/plain"
})

/** PostgreSQL cannot compare with a text that it cannot keep, and of two values of one parameter none is the one that was meant. */
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

/** Whether a header says that the body is bytes, and no more than that. */
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

/** Refuses a key where the file has an id instead: whoever sends one takes the request for safe to repeat. */
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

/** The requests whose body is a file, by their names in the contract. */
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

/** The bytes of a body of a size, once they are here; whoever asks again gets the same. */
export const readBody = Effect.fnUntraced(function* (maxBytes: number) {
  const { arrayBuffer } = yield* HttpServerRequest.HttpServerRequest
  // Reading that is interrupted tears the request down, and its answer with it: it ends with the connection instead.
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

/** Judges a body of a size; the contract decodes the same bytes afterwards. */
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

/** Reads a body as large as a door takes that says nothing else. */
export const judgeBody = judgeBodyUpTo(httpLimits.bodyMaxBytes)

/** The same of a body that is the input of a run, which may be text. */
export const judgeInput = judgeBodyUpTo(httpLimits.bodyMaxBytes, true)

const judgeOf = (endpoint: string) =>
  fileJudges[endpoint] ?? (endpoint === "trigger" ? judgeInput : judgeBody)

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** The text of bytes; fails where another decoder would put a replacement character. */
export const readText = (bytes: ArrayBuffer | Uint8Array) =>
  Effect.try({ try: () => utf8.decode(bytes), catch: () => "notUtf8" as const })

/** Refuses a body that is not read to its end: its connection ends with the answer, for what comes over it is still the body. */
export const refuseRest = <E>(problem: E): Effect.Effect<never, E, HttpServerRequest.HttpServerRequest> =>
  Effect.andThen(HttpEffect.appendPreResponseHandler(closing), Effect.fail(problem))

const closing: HttpEffect.PreResponseHandler = (_request, response) =>
  Effect.succeed(HttpServerResponse.setHeader(response, "connection", "close"))

/** Refuses a body that comes too slowly. */
export const tooSlow = (timeoutMs: number) =>
  refuseRest(
    new MalformedRequest({
      detail: `The body did not come within ${timeoutMs / 1_000} seconds: send the request again`
    })
  )

/** Refuses a body that has more bytes than may be. */
export const tooLarge = (maxBytes: number) =>
  refuseRest(new BodyTooLarge({ detail: `A body may have ${maxBytes} bytes here` }))

// Reads the rest of a body that is refused, and keeps nothing of it.
//
// A connection that ends while its client still sends is reset, and the answer
// with it: most clients then tell of a broken connection. So a bounded part is
// waited for. Whoever sends more, or more slowly, is cut off.

/** Waits until a body of which nobody has read anything is here, is too much, or comes no more. */
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

// Answers whatever goes wrong around a handler with a problem document.
//
// A request that does not fit the contract is told where, an ill-formed id in a
// path is answered like a missing thing, and an address that nothing answers
// like one. What the server itself got wrong is logged and never shown.

export const layerRequestProblems = Layer.succeed(RequestProblems, (httpEffect) =>
  httpEffect.pipe(
    // The framework itself answers a content type that it does not know, with bare text.
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

/** A fault of the request in the contract's words; what is none of these stays what it is. */
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
