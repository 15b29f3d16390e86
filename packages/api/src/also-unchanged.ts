/**
 * Says in the OpenAPI document that whoever has read something is told that it is still the same.
 *
 * The answer's ETag stands for all of it: a reader who names it gets no body again.
 */
import { OpenApi } from "effect/http-api"

/** Annotates an endpoint whose answer has an ETag and is 304 for whoever names that in If-None-Match. */
export const alsoUnchanged = OpenApi.annotations({
  transform: (operation) => ({
    ...operation,
    parameters: [...(operation["parameters"] ?? []), ifNoneMatch],
    responses: { ...operation["responses"], 304: { description: "It is what the caller has" } }
  })
})

const ifNoneMatch = {
  name: "if-none-match",
  in: "header",
  required: false,
  description:
    "ETags of answers that the caller has: where it is one of them still, the answer is 304 without a body.",
  schema: { type: "string" }
}
