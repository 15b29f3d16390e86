/**
 * Where a server is and as whom to speak to it.
 */
import type { Redacted } from "effect"
import { HttpClientRequest } from "effect/http"

export interface Connection {
  /** The server's address without a path: `http://127.0.0.1:4400`. */
  readonly url: string
  /** A bearer token; a page that the server itself served has its cookie and needs none. */
  readonly token?: Redacted.Redacted<string> | undefined
}

/** Adds the token to a request, if there is one. */
export const withCredential =
  (connection: Connection) =>
  (request: HttpClientRequest.HttpClientRequest): HttpClientRequest.HttpClientRequest =>
    connection.token ? HttpClientRequest.bearerToken(request, connection.token) : request
