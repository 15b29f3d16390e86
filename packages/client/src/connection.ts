/**
 * Where a server is and as whom to speak to it.
 */
import { Redacted } from "effect"
import { HttpClientRequest } from "effect/http"

export interface Connection {
  /** The server's address without a path: `http://127.0.0.1:4400`. */
  readonly url: string
  /** A bearer token; a page that the server itself served has its cookie and needs none. */
  readonly token?: Redacted.Redacted<string> | undefined
}

/** Why nothing can be asked as this: an address or a token that no request could carry. Undefined where it can. */
export const connectionFault = ({ token, url }: Connection): string | undefined => {
  // A page may name its own server by a path, or by nothing.
  const address = URL.parse(url, globalThis.location?.href)
  if (address === null || !/^https?:$/.test(address.protocol))
    return `The server's address must be one such as http://127.0.0.1:4400, not ${JSON.stringify(url)}.`
  if (token !== undefined && /[^\x20-\x7e]/.test(Redacted.value(token)))
    return "The token has a line break or another character that no token has: give the token alone."
  return undefined
}

/** Adds the token to a request, if there is one. */
export const withCredential =
  (connection: Connection) =>
  (request: HttpClientRequest.HttpClientRequest): HttpClientRequest.HttpClientRequest =>
    connection.token ? HttpClientRequest.bearerToken(request, connection.token) : request
