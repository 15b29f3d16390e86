/**
 * Whether a request comes from one of our own pages.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A browser sends its cookie with whatever any page makes it send, so what a
 * cookie lets in may change something only if the browser says that a page of
 * this server asked for it. A request that does not say is refused, too: every
 * browser says one of the two.
 */
import { ForeignPage } from "@tropism/api/problems"
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { originOf } from "./origins.ts"

/** Whether the browser says that a page of this server sent the request. */
export const isFromOwnPage = (request: HttpServerRequest.HttpServerRequest): boolean => {
  const site = request.headers["sec-fetch-site"]
  // A page cannot write this header. It holds also behind a proxy that calls us by another name.
  if (site !== undefined) return site === "same-origin"
  const page = URL.parse(request.headers["origin"] ?? "")
  const own = URL.parse(originOf(request))
  // A proxy that does not say so may have been reached by https, and never the other way round.
  return page !== null && own !== null && (page.origin === own.origin || page.origin === asHttps(own))
}

const asHttps = ({ host }: URL): string | undefined => URL.parse(`https://${host}`)?.origin

const changes = (method: string): boolean => method !== "GET" && method !== "HEAD"

/** Refuses a request that would change something and that none of our pages sent. */
export const judgePage = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (changes(request.method) && !isFromOwnPage(request))
    return yield* new ForeignPage({
      detail:
        "A signed-in browser may change things only from this server's own pages; a program sends a token: Authorization: Bearer …"
    })
})
