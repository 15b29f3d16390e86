/**
 * Judges a request before its handler: is its body JSON that can be kept, does
 * it fit the contract, and if not, where is the fault?
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A body is judged as text first, because decoding it would already round its
 * numbers. An ill-formed id in a path is answered like a missing thing. What the
 * server itself got wrong is logged with the request's id and never shown.
 */
import { RequestProblems } from "@tropism/api/authorization"
import { BodyTooLarge, InvalidInput, MalformedRequest, NotFound, ServerFault } from "@tropism/api/problems"
import { scanJson } from "@tropism/domain/json-text"
import { pointerStep } from "@tropism/domain/json"
import { Cause, Effect, Layer, SchemaIssue } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { httpLimits } from "../limits.ts"

export const layerRequestProblems = Layer.succeed(RequestProblems, (httpEffect, { endpoint }) => {
  const isStream = endpoint.identifier === "import"
  const judged = isStream ? httpEffect : Effect.andThen(judgeBody, httpEffect)
  return judged.pipe(
    Effect.catch((error) => problemFor(error)),
    Effect.catchDefect((defect) =>
      Effect.andThen(
        Effect.logError("A request failed", defect),
        Effect.fail(new ServerFault({ detail: "The server failed; its log says why" }))
      )
    )
  )
})

/** A fault of the request in the contract's words; what is none of these stays what it is. */
const problemFor = <E>(error: E): Effect.Effect<never, Problem | E> => {
  if (HttpApiError.HttpApiSchemaError.is(error)) return problemOf(error)
  if (HttpApiError.HttpApiPayloadTooLarge.is(error))
    return Effect.fail(new BodyTooLarge({ detail: "The file is larger than an import takes" }))
  return Effect.fail(error)
}

type Problem = NotFound | InvalidInput | ServerFault | BodyTooLarge | MalformedRequest

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

/** Reads the body once as text; the contract decodes the same text afterwards. */
const judgeBody = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (request.method === "GET" || request.method === "HEAD" || request.method === "DELETE") return
  const declared = Number(request.headers["content-length"] ?? 0)
  if (declared > httpLimits.bodyMaxBytes) return yield* tooLarge
  const text = yield* Effect.mapError(request.text, () => tooLargeProblem)
  if (text === "") return
  if (!/^application\/(?:[\w.+-]+\+)?json\b/i.test(request.headers["content-type"] ?? "")) {
    return yield* new MalformedRequest({
      detail: "Send the body as JSON, with the header content-type: application/json"
    })
  }
  const fault = scanJson(text)
  if (fault) return yield* new InvalidInput({ detail: fault.message, errors: [fault] })
  yield* Effect.try({
    try: () => JSON.parse(text) as unknown,
    catch: (error) =>
      new MalformedRequest({
        detail: `The body is no JSON: ${error instanceof Error ? error.message : "it cannot be read"}`
      })
  })
})

const tooLargeProblem = new BodyTooLarge({ detail: `A body may have ${httpLimits.bodyMaxBytes} bytes` })
const tooLarge = Effect.fail(tooLargeProblem)

const problemOf = (error: HttpApiError.HttpApiSchemaError): Effect.Effect<never, Problem> => {
  if (error.kind === "Body" || error.kind === "ResponseHeaders") {
    return Effect.andThen(
      Effect.logError("An answer does not fit the contract", Cause.fail(error.cause)),
      Effect.fail(new ServerFault({ detail: "The server failed; its log says why" }))
    )
  }
  if (error.kind === "Params")
    return Effect.fail(new NotFound({ detail: "There is nothing at this address" }))
  const errors = formatIssues(error.cause.issue).issues.map((issue) => ({
    pointer:
      error.kind === "Payload"
        ? (issue.path ?? []).map(stepOf).join("")
        : (issue.path ?? []).map((step) => String(keyOf(step))).join("."),
    message: issue.message
  }))
  const [first] = errors
  const detail = first
    ? `${first.pointer === "" ? "The body" : first.pointer}: ${first.message}`
    : "The request does not fit the contract"
  return Effect.fail(new InvalidInput({ detail, errors }))
}

type Step = PropertyKey | { readonly key: PropertyKey }

const keyOf = (step: Step): PropertyKey => (typeof step === "object" ? step.key : step)

const stepOf = (step: Step): string => pointerStep(String(keyOf(step)))
