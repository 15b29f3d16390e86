/**
 * Connections to addresses that somebody named, judged at the moment of connecting.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * Whoever names an address must not reach with it what only this server can. The
 * connection itself looks the name up, and goes to exactly what was judged: a name
 * that leads elsewhere a moment later gains nothing. No redirect is followed here.
 */
import { lookup as systemLookup } from "node:dns"
import { type IncomingMessage, request as httpRequest } from "node:http"
import { request as httpsRequest } from "node:https"
import { isIP, type LookupFunction } from "node:net"
import { Context } from "effect"
import { isPublicAddress } from "./addresses.ts"

/** How names become addresses, and which addresses may be reached. */
export interface Network {
  readonly lookup: LookupFunction
  readonly mayReach: (address: string) => boolean
}

export class OutsideNetwork extends Context.Reference<Network>("@tropism/server/agent/OutsideNetwork", {
  defaultValue: () => ({ lookup: systemLookup as LookupFunction, mayReach: isPublicAddress })
}) {}

/** The address may not be reached; nothing was sent. */
export class ClosedAddress extends Error {}

export interface Sending {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly answered: (response: IncomingMessage) => void
  /** Told of a `ClosedAddress`, or of what broke the connection before there was an answer. */
  readonly failed: (error: Error) => void
}

/** Sends one request over a connection of its own; what it answers ends both. */
export const send = (
  url: URL,
  { lookup, mayReach }: Network,
  { answered, body, failed, headers, method }: Sending
): (() => void) => {
  const host = url.hostname.replace(/^\[|\]$/g, "")
  if (isIP(host) !== 0 && !mayReach(host)) {
    failed(new ClosedAddress(`${host} may not be reached`))
    return () => {}
  }
  let answer: IncomingMessage | undefined
  const begin = url.protocol === "https:" ? httpsRequest : httpRequest
  const request = begin(
    url,
    { method, headers, lookup: judging(lookup, mayReach), agent: false },
    (response) => {
      answer = response
      answered(response)
    }
  )
  request.on("error", failed)
  request.end(body)
  return () => {
    request.destroy()
    answer?.destroy()
  }
}

/** Looks a name up and answers only what may be reached: the connection knows no other address. */
const judging =
  (lookup: LookupFunction, mayReach: (address: string) => boolean): LookupFunction =>
  (name, options, callback) =>
    lookup(name, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, "", 4)
      const all = Array.isArray(found) ? found : []
      const [first] = all
      if (first === undefined || !all.every(({ address }) => mayReach(address)))
        return callback(new ClosedAddress(`${name} may not be reached`), "", 4)
      return options.all ? callback(null, all) : callback(null, first.address, first.family)
    })
