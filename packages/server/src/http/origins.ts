/**
 * Which names and pages may stand at the doors for programs: a browser is not to be used against its own machine.
 *
 * A page elsewhere can give its own name the address of this server (DNS
 * rebinding) and then speak to it as to itself. So the name by which the door is
 * called must be one that we know to be ours, and a page that calls must be ours,
 * of this machine, or named by the operator in `TROPISM_ALLOWED_ORIGINS`.
 */
import { Api } from "@tropism/api/api"
import { ForeignPage } from "@tropism/api/problems"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Context, Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApi } from "effect/http-api"

/** What the operator says of where this server stands. */
export class Standing extends Context.Service<
  Standing,
  {
    /** The address at which the server listens. */
    readonly host: string
    /** Origins of pages that may call, such as `https://tropism.example`; their hosts are names of ours, too. */
    readonly allowedOrigins: ReadonlyArray<string>
  }
>()("@tropism/server/http/Standing") {}

/** Why a request may not come in by its Host and Origin; undefined when it may. */
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
      // A name can be made to mean another address; an address cannot. Whoever listens everywhere has many.
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

/** The origins of a comma-separated list, or the first entry that is none. */
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

/** As a URL writes it: an address of version 6 in brackets. */
const hostOf = (host: string): string => (host.includes(":") ? `[${host}]` : host.toLowerCase())

/** Whether a name or an address means the machine on which it is said. */
export const isLocal = (host: string): boolean =>
  host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host)

const isAddress = (host: string): boolean => host.startsWith("[") || /^\d+\.\d+\.\d+\.\d+$/.test(host)

const told = (text: string | undefined): string => beginningOf(text ?? "nobody", 200)

/** Whether a client reached this server by https, as the proxy before it says; the first of a chain counts. */
export const isByHttps = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  /^\s*https\s*(?:,|$)/i.test(headers["x-forwarded-proto"] ?? "")

/** The address of this server as the client wrote it. */
export const originOf = (request: HttpServerRequest.HttpServerRequest): string =>
  `${isByHttps(request) ? "https" : "http"}://${request.headers["host"]}`

// What browsers ask of a server before they let a page of another origin call it.
//
// Only for pages that `origins.ts` lets in, at doors that no cookie opens.

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

// Whether a request comes from one of our own pages.
//
// A browser sends its cookie with whatever any page makes it send, so what a
// cookie lets in may change something only if the browser says that a page of
// this server asked for it. A request that does not say is refused, too: every
// browser says one of the two.

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

// The addresses that there are: how each is written, and what may be asked of it.
//
// Everything behind the edge sees an address in one form, so what is judged by
// its address cannot be gone around by another way to write it.

/**
 * An address without its host and its fragment, without doubled slashes and one at its end, and with nothing encoded that need not be.
 *
 * **Details** The router decodes before it looks for a route, ends a path at a semicolon and takes addresses with their host; by
 * RFC 3986 § 6.2.2 a letter that is encoded is that letter. What is asked of the address stays as it is.
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

/** An encoded byte as it is written: by itself where it means nothing else. */
const inOneForm = (encoded: string): string => {
  const letter = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
  return /^[\w.~-]$/.test(letter) ? letter : encoded.toUpperCase()
}

/** What may be asked of the address of a request, where it is one of the API's or one of those given. */
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
