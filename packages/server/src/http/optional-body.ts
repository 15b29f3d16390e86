/**
 * A body that may be left out.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 */
import { Effect, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { unfitBody } from "./input-faults.ts"

/** Reads the body; an empty one is one without any field. */
export const optionalBody = <S extends Schema.Codec<unknown, unknown>>(schema: S) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const text = yield* Effect.orDie(request.text)
    const body: unknown = text === "" ? {} : JSON.parse(text)
    return yield* Effect.mapError(
      Schema.decodeUnknownEffect(schema, { onExcessProperty: "error", errors: "all" })(body),
      ({ issue }) => unfitBody(issue)
    )
  })
