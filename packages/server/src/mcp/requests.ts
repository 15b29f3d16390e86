/**
 * Judges an HTTP request at the MCP door before anything of its message is understood.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * In this order, so that nothing is read of whoever may not be here: by which
 * name the door is called and from which page, who calls, which project, how
 * large the body is and whether it could be kept as it was sent. A cookie opens
 * this door to nobody.
 */
import { isJsonContentType } from "@modelcontextprotocol/server"
import { OriginNotAllowed } from "@tropism/api/problems"
import { findFault } from "@tropism/domain/json"
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { judgeBody, judgeEncoding } from "../http/request-judgement.ts"
import { findStranger, originOf, type Standing } from "../http/origins.ts"
import { rpcFault } from "./answers.ts"

/** Refuses names and pages that have no business here. */
export const judgeStranger = Effect.fnUntraced(function* (standing: Standing["Service"]) {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const detail = findStranger(standing, { host: headers["host"], origin: headers["origin"] })
  if (detail !== undefined) return yield* new OriginNotAllowed({ detail })
})

/** A message, or the JSON-RPC error that says why there is none. */
export type Message = { readonly body: unknown } | { readonly refusal: Response }

/** Reads the message of a POST, once; other methods have none. */
export const readMessage = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (request.method !== "POST") return { body: undefined }
  if (!isJsonContentType(request.headers["content-type"]))
    return {
      refusal: rpcFault(415, -32_000, "Unsupported Media Type: Content-Type must be application/json")
    }
  yield* judgeEncoding
  yield* judgeBody
  const body: unknown = JSON.parse(yield* Effect.orDie(request.text))
  const found = findFault(body)
  if (found !== undefined)
    return { refusal: rpcFault(400, -32_600, `Invalid Request: ${found.message}`, [found]) }
  return { body }
}).pipe(
  Effect.catchTag("MalformedRequest", ({ detail }) =>
    Effect.succeed({ refusal: rpcFault(400, -32_700, `Parse error: ${detail}`) })
  ),
  Effect.catchTag("InvalidInput", ({ detail, errors }) =>
    Effect.succeed({ refusal: rpcFault(400, -32_600, `Invalid Request: ${detail}`, errors) })
  ),
  Effect.catchDefect((defect) =>
    defect instanceof SyntaxError
      ? Effect.succeed({ refusal: rpcFault(400, -32_700, "Parse error: the request has no JSON body") })
      : Effect.die(defect)
  ),
  Effect.map((message): Message => message)
)

/** The request as the SDK wants it, without the body, which was read. */
export const webRequest = (request: HttpServerRequest.HttpServerRequest): Request =>
  new Request(new URL(request.url, originOf(request)), {
    method: request.method,
    headers: { ...request.headers }
  })
