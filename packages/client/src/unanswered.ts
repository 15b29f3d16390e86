/**
 * What became of a request that got no answer: whether it can have reached a server at all.
 *
 * Only where no connection came about is it certain that nothing was done. One
 * that broke, or over which nothing came, may have carried the request.
 */
import { HttpClientError } from "effect/http"

/** What a system says of a connection that never came about. */
const neverMade: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH"
])

/** Whether a request failed on its way, and no answer began. */
export const isUnanswered = (error: unknown): error is HttpClientError.HttpClientError =>
  HttpClientError.isHttpClientError(error) && error.reason._tag === "TransportError"

/** Whether no connection came about: it was refused, or there is no such machine. */
export const isNeverMade = (error: unknown): boolean =>
  isUnanswered(error) && codesOf(error.reason.cause).some((code) => neverMade.has(code))

/** Whether the server may have done what was asked, and nobody was told. */
export const mayBeDone = (error: unknown): boolean =>
  isUnanswered(error) && !isNeverMade(error) && !/^(GET|HEAD)$/.test(error.request.method)

/** The codes of an error and of what caused it: some engines wrap one in another. */
const codesOf = (error: unknown): ReadonlyArray<unknown> =>
  error instanceof Error ? [Reflect.get(error, "code"), ...codesOf(error.cause)] : []
