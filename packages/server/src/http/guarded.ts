/**
 * What every answer tells a browser not to do with it.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * An answer that says so by itself is left as it is. What the API answers is
 * nobody's page and is kept nowhere; a page of ours runs its own scripts alone,
 * speaks to its own server alone and stands in no frame.
 */
import { HttpServerResponse } from "effect/http"

/** Of the console. Its components set styles by themselves, hence 'unsafe-inline' for these. */
export const consolePolicy =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/** Of pages that are whole in themselves. */
const plainPolicy =
  "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

/** Of `/docs`, whose page has its script in it. */
const docsPolicy =
  "default-src 'self'; script-src 'unsafe-inline'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/** Of what is no page: a browser that opens it shows it and does nothing else. */
const dataPolicy = "default-src 'none'; sandbox; frame-ancestors 'none'"

/** The answer to a request for an address, with what it does not say by itself. */
export const guarded =
  (url: string) =>
  (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse => {
    const wanted = {
      "x-content-type-options": "nosniff",
      "referrer-policy": "same-origin",
      "x-frame-options": "DENY",
      // That a kept page is still right says no type: the browser goes on with the policy that came with the page.
      ...(response.status === 304
        ? {}
        : { "content-security-policy": policyOf(url, response.headers["content-type"] ?? "") }),
      ...(isOfApi(url) ? { "cache-control": "no-store" } : {})
    }
    return HttpServerResponse.setHeaders(response, { ...wanted, ...response.headers })
  }

const isOfApi = (url: string): boolean => /^\/(?:api|v1|mcp|metrics|health|ready)(?:[/?#]|$)/i.test(url)

const policyOf = (url: string, contentType: string): string => {
  if (isOfApi(url)) return dataPolicy
  if (/^\/docs(?:[?#]|$)/i.test(url)) return docsPolicy
  return /^\/problems(?:[/?#]|$)/i.test(url) || !contentType.startsWith("text/html")
    ? plainPolicy
    : consolePolicy
}
