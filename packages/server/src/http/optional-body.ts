/**
 * Reads bodies that may be empty, or that are the input of a run.
 *
 * Each was validated before: it is text, JSON or empty.
 */
import { TriggerOptions } from "@tropism/api/agents-api"
import { isJsonObject } from "@tropism/domain/json"
import { Effect, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { invalidBody } from "./problems.ts"

/** Whether a header says that the body is plain text. */
export const saysText = (contentType: string): boolean => /^text\/plain\s*(?:;|$)/i.test(contentType)

const decode = <S extends Schema.Codec<unknown, unknown>>(schema: S, body: unknown) =>
  Effect.mapError(
    Schema.decodeUnknownEffect(schema, { onExcessProperty: "error", errors: "all" })(body),
    ({ issue }) => invalidBody(issue)
  )

/** Reads the body; an empty one has no fields. */
export const optionalBody = <S extends Schema.Codec<unknown, unknown>>(schema: S) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const text = yield* Effect.orDie(request.text)
    return yield* decode(schema, text === "" ? {} : JSON.parse(text))
  })

/** The body as a run's input; undefined where it is empty. */
export const inputBody = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  const text = yield* Effect.orDie(request.text)
  if (text === "") return undefined
  return saysText(request.headers["content-type"] ?? "") ? text : (JSON.parse(text) as Schema.Json)
})

/** The input of a trigger: the body itself, or its `input` member where all its members are options. */
export const triggerInput = Effect.gen(function* () {
  const body = yield* inputBody
  const isOptions =
    isJsonObject(body) && Object.keys(body).every((key) => Object.hasOwn(TriggerOptions.fields, key))
  return isOptions ? (yield* decode(TriggerOptions, body)).input : body
})
