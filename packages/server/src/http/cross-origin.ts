/**
 * What browsers ask of a server before they let a page of another origin call it.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * Only for pages that `origins.ts` lets in, at doors that no cookie opens.
 */
import { HttpServerResponse } from "effect/http"

/** The answer as a page of this origin may read it, with the headers that it is shown. */
export const readableBy =
  (origin: string | undefined, exposed: string) =>
  (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse =>
    origin === undefined
      ? response
      : HttpServerResponse.setHeaders(response, {
          "access-control-allow-origin": origin,
          "access-control-expose-headers": exposed,
          vary: "origin"
        })

/** The answer to a preflight: any header, since which ones a client wants is the protocol's affair. */
export const preflight = (methods: string, askedHeaders: string | undefined) =>
  HttpServerResponse.empty({
    status: 204,
    headers: {
      "access-control-allow-methods": methods,
      "access-control-allow-headers": askedHeaders ?? "authorization, content-type",
      "access-control-max-age": "600"
    }
  })
