/**
 * Bodies that may be left out, or that are the input of a run.
 *
 * Each was judged before: it is text, or JSON, or empty.
 */
import { TriggerOptions } from "@tropism/api/agents-api"
import { isJsonObject } from "@tropism/domain/json"
import { Effect, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { invalidBody } from "./problems.ts"

/** Whether a header says that the body is text, and no more than that. */
export const saysText = (contentType: string): boolean => /^text\/plain\s*(?:;|$)/i.test(contentType)

const decode = <S extends Schema.Codec<unknown, unknown>>(schema: S, body: unknown) =>
  Effect.mapError(
    Schema.decodeUnknownEffect(schema, { onExcessProperty: "error", errors: "all" })(body),
    ({ issue }) => invalidBody(issue)
  )

/** Reads the body; an empty one is one without any field. */
export const optionalBody = <S extends Schema.Codec<unknown, unknown>>(schema: S) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const text = yield* Effect.orDie(request.text)
    return yield* decode(schema, text === "" ? {} : JSON.parse(text))
  })

/** The body as the input of a run; undefined where it is empty. */
export const inputBody = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  const text = yield* Effect.orDie(request.text)
  if (text === "") return undefined
  return saysText(request.headers["content-type"] ?? "") ? text : (JSON.parse(text) as Schema.Json)
})

/** The input that a trigger brings: the body, or what it calls its input where it has no member that is no option. */
export const triggerInput = Effect.gen(function* () {
  const body = yield* inputBody
  const isOptions =
    isJsonObject(body) && Object.keys(body).every((key) => Object.hasOwn(TriggerOptions.fields, key))
  return isOptions ? (yield* decode(TriggerOptions, body)).input : body
})
