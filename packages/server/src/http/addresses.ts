/**
 * The addresses that there are: how each is written, and what may be asked of it.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * Everything behind the edge sees an address in one form, so what is judged by
 * its address cannot be gone around by another way to write it.
 */
import { Api } from "@tropism/api/api"
import { HttpApi } from "effect/http-api"

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
