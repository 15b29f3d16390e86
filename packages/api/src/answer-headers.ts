/**
 * What the contract says of the headers of requests and answers: in one place, so that a new operation has them, too.
 *
 * Which request it was, how often more may come, whether something has changed since it was read.
 */
import { replayedHeader } from "./idempotency.ts"
import { mapOperations, mapValues, type Operation, type Response, type Specification } from "./operations.ts"

/** The operations that answer with an ETag besides those that take one. */
const tagged = new Set([
  "agents.get",
  "agents.create",
  "mcpServers.get",
  "mcpServers.create",
  "mcpServers.refresh",
  "objects.create",
  "relationships.create"
])

/** Nothing is counted of them. */
const uncounted = new Set(["system.health", "system.ready"])

const headers = {
  requestId: {
    description: "The id of the request: the one that it came with, where that is fit, else a new one.",
    schema: { type: "string" }
  },
  rateLimit: {
    description: "What is left of the caller's quota, and in how many seconds all of it is back.",
    schema: { type: "string", examples: ['"token";r=1987;t=1'] }
  },
  rateLimitPolicy: {
    description: "How many requests come back in how many seconds, for a token or for an address.",
    schema: { type: "string", examples: ['"token";q=2000;w=2'] }
  },
  retryAfter: {
    description: "In how many seconds trying again makes sense.",
    schema: { type: "integer" }
  },
  etag: {
    description: "What is told, by its version or its digest: for `If-None-Match` and `If-Match`.",
    schema: { type: "string", examples: ['"3"'] }
  },
  replayed: {
    description: "`true` where the request was done before under this key, and not now.",
    schema: { type: "string", enum: ["true"] }
  }
} as const

const said = (name: keyof typeof headers) => ({ $ref: `#/components/headers/${name}` })

/** Says the headers of every operation of a specification. */
export const sayHeaders = (specification: Specification): Record<string, unknown> => ({
  ...mapOperations(specification, withHeaders),
  components: { ...(specification["components"] as object), headers }
})

const withHeaders = (operation: Operation): Operation => {
  const { operationId = "", parameters = [], responses = {} } = operation
  const takes = (name: string) => parameters.some((parameter) => parameter.name === name)
  const isTagged = tagged.has(operationId) || takes("if-match") || takes("if-none-match")
  const answered = mapValues(responses, (response, status) => {
    const isDone = status.startsWith("2")
    return withThese(response, {
      ...(isDone || status === "500" ? { "x-request-id": said("requestId") } : {}),
      ...((isDone || status === "429") && !uncounted.has(operationId)
        ? { RateLimit: said("rateLimit"), "RateLimit-Policy": said("rateLimitPolicy") }
        : {}),
      ...(status === "429" || (status === "409" && takes("idempotency-key"))
        ? { "Retry-After": said("retryAfter") }
        : {}),
      ...((isDone && status !== "204" && isTagged) || status === "304" ? { ETag: said("etag") } : {}),
      ...(isDone && takes("idempotency-key") ? { [replayedHeader]: said("replayed") } : {})
    })
  })
  return { ...operation, responses: answered }
}

const withThese = (response: Response, more: Readonly<Record<string, object>>): Response =>
  Object.keys(more).length === 0 ? response : { ...response, headers: { ...response.headers, ...more } }
