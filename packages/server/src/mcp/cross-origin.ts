/**
 * What browsers ask of a server before they let a page of another origin call it.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * Only pages that `origins.ts` lets in come as far as here. No cookie opens this
 * door, so none is ever asked for.
 */
import { HttpServerResponse } from "effect/http"

const exposed = "mcp-session-id, mcp-protocol-version, www-authenticate"

/** The answer as a page of this origin may read it. */
export const readableBy =
  (origin: string | undefined) =>
  (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse =>
    origin === undefined
      ? response
      : HttpServerResponse.setHeaders(response, {
          "access-control-allow-origin": origin,
          "access-control-expose-headers": exposed,
          vary: "origin"
        })

/** The answer to a preflight: any header, since which ones a tool wants is the protocol's affair. */
export const preflight = (askedHeaders: string | undefined) =>
  HttpServerResponse.empty({
    status: 204,
    headers: {
      "access-control-allow-methods": "GET, POST, DELETE",
      "access-control-allow-headers": askedHeaders ?? "authorization, content-type",
      "access-control-max-age": "600"
    }
  })
