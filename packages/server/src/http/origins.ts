/**
 * Checks the Host and Origin of requests at the endpoints for programs.
 *
 * A page can point its own name at this server (DNS rebinding) and then call it as its own origin. So the Host must be a name that we know
 * as ours, and a calling page must be ours, of this machine, or listed in `TROPISM_ALLOWED_ORIGINS`.
 */
import { Api } from "@tropism/api/api"
import { ForeignPage } from "@tropism/api/problems"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Context, Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApi } from "effect/http-api"

/** The operator's settings for the server's names and origins. */
export class Standing extends Context.Service<
  Standing,
  {
    /** The address that the server listens on. */
    readonly host: string
    /** Origins of pages that may call, such as `https://tropism.example`; their hosts count as our names, too. */
    readonly allowedOrigins: ReadonlyArray<string>
  }
>()("@tropism/server/http/Standing") {}

/** Why Host and Origin do not admit a request; undefined when they do. */
export const findStranger = (
  { allowedOrigins, host }: Standing["Service"],
  headers: { readonly host?: string | undefined; readonly origin?: string | undefined }
): string | undefined => {
  const called = URL.parse(`http://${headers.host ?? ""}`)?.hostname
  const isKnown =
    called !== undefined &&
    (isLocal(called) ||
      called === hostOf(host) ||
      allowedOrigins.some((origin) => URL.parse(origin)?.hostname === called) ||
      // DNS can point a name at us, but not an address. A server that listens on all interfaces has many addresses.
      (!isLocal(hostOf(host)) && isAddress(called)))
  if (!isKnown)
    return `This server does not know itself as ${told(headers.host)}: add the address to TROPISM_ALLOWED_ORIGINS`
  const { origin } = headers
  if (origin === undefined) return undefined
  const page = URL.parse(origin)
  const isOurs = page !== null && (page.host === headers.host?.toLowerCase() || isLocal(page.hostname))
  return isOurs || (page !== null && allowedOrigins.includes(page.origin))
    ? undefined
    : `Pages of ${told(origin)} may not call this server: add it to TROPISM_ALLOWED_ORIGINS`
}

/** The origins of a comma-separated list, or its first invalid entry. */
export const readOrigins = (
  text: string
): { readonly origins: ReadonlyArray<string> } | { readonly unfit: string } => {
  const entries = text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
  const unfit = entries.find((entry) => {
    const url = URL.parse(entry)
    return (
      url === null || !/^https?:$/.test(url.protocol) || url.pathname !== "/" || url.search + url.hash !== ""
    )
  })
  return unfit === undefined ? { origins: entries.map((entry) => new URL(entry).origin) } : { unfit }
}

/** The host in URL form: IPv6 in brackets. */
const hostOf = (host: string): string => (host.includes(":") ? `[${host}]` : host.toLowerCase())

/** Whether a name or an address means the local machine. */
export const isLocal = (host: string): boolean =>
  host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host)

const isAddress = (host: string): boolean => host.startsWith("[") || /^\d+\.\d+\.\d+\.\d+$/.test(host)

const told = (text: string | undefined): string => beginningOf(text ?? "nobody", 200)

/** Whether the client reached this server by https, according to the proxy before it; the first of a chain counts. */
export const isByHttps = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  /^\s*https\s*(?:,|$)/i.test(headers["x-forwarded-proto"] ?? "")

/** The server's address as the client used it. */
export const originOf = (request: HttpServerRequest.HttpServerRequest): string =>
  `${isByHttps(request) ? "https" : "http"}://${request.headers["host"]}`

// CORS, for pages that `origins.ts` admits and only at endpoints without cookies.

/** Adds the CORS headers for an origin to an answer, with the headers that its page may read. */
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

/** The answer to a preflight. It allows any header: each protocol has its own. */
export const preflight = (methods: string, askedHeaders: string | undefined) =>
  HttpServerResponse.empty({
    status: 204,
    headers: {
      "access-control-allow-methods": methods,
      "access-control-allow-headers": askedHeaders ?? "authorization, content-type",
      "access-control-max-age": "600"
    }
  })

// Cross-site request forgery: whether a request comes from our own pages.
//
// A browser sends its cookie with requests of any page, so a cookie authorizes a change only if the browser states that a page of this
// server sent it. A request without that statement is refused, too: every browser sends one of the two headers.

/** Whether the browser states that a page of this server sent the request. */
export const isFromOwnPage = (request: HttpServerRequest.HttpServerRequest): boolean => {
  const site = request.headers["sec-fetch-site"]
  // A page cannot set this header. It also works behind a proxy that changes the Host.
  if (site !== undefined) return site === "same-origin"
  const page = URL.parse(request.headers["origin"] ?? "")
  const own = URL.parse(originOf(request))
  // Behind a proxy that does not report https, the page may be https while we see http; the reverse cannot happen.
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

// Canonical URLs and the methods of each address.
//
// **Invariant**: everything after the edge sees one form of a URL, so no check of a URL can be bypassed by another spelling.

/**
 * A URL without host and fragment, without doubled and trailing slashes, and without needless percent-encoding.
 *
 * The router decodes before it matches, ends a path at a semicolon and accepts URLs with a host; by RFC 3986 § 6.2.2 an encoded unreserved
 * character equals the plain one. The query keeps its meaning.
 */
export const oneForm = (url: string): string => {
  const target = url.replace(/^https?:\/\/[^/?#]*/i, "").replace(/#.*$/s, "")
  const [path = ""] = target.split("?", 1)
  const written = path
    .replace(/%[0-9a-f]{2}/gi, inOneForm)
    .replaceAll(";", "%3B")
    .replace(/\/{2,}/g, "/")
    .replace(/(?<=.)\/$/, "")
  return `${written === "" ? "/" : written}${target.slice(path.length)}`
}

/** A percent-encoded byte in canonical form: decoded where it means nothing else. */
const inOneForm = (encoded: string): string => {
  const letter = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
  return /^[\w.~-]$/.test(letter) ? letter : encoded.toUpperCase()
}

/** Returns the allowed methods of a URL of the API or of the given addresses. */
export const makeMethodsAt = (others: Readonly<Record<string, ReadonlyArray<string>>>) => {
  const known = new Map<string, Set<string>>(
    Object.entries(others).map(([path, methods]) => [path, new Set(methods)])
  )
  HttpApi.reflect(Api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint: { method, path } }) => {
      known.set(path, (known.get(path) ?? new Set()).add(method))
    }
  })
  const patterns = [...known].map(([path, methods]) => ({
    pattern: new RegExp(`^${path.replaceAll(".", "\\.").replace(/:[^/]+/g, "[^/]+")}$`),
    methods: [...methods, ...(methods.has("GET") ? ["HEAD"] : []), "OPTIONS"].toSorted()
  }))
  return (url: string): ReadonlyArray<string> => {
    const [path = ""] = url.split(/[?#]/, 1)
    const all = patterns.flatMap(({ methods, pattern }) => (pattern.test(path) ? methods : []))
    return [...new Set(all)]
  }
}
