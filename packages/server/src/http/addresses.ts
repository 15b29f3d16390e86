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

/** An address without doubled slashes and without one at its end; what is asked of it stays as it is. */
export const oneForm = (url: string): string => {
  const [path = ""] = url.split(/[?#]/, 1)
  if (!path.includes("//") && (path === "/" || !path.endsWith("/"))) return url
  const written = path.replace(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "")
  return `${written}${url.slice(path.length)}`
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
