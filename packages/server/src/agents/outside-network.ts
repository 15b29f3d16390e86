/**
 * Connects to addresses that a caller named, and checks each address when it connects.
 *
 * A caller must not reach through this server what only this server can reach. The connection itself resolves the name and uses exactly the
 * address that was checked, so DNS rebinding gains nothing. No redirect is followed here.
 */
import { lookup as systemLookup } from "node:dns"
import { type IncomingMessage, request as httpRequest } from "node:http"
import { request as httpsRequest } from "node:https"
import { isIP, type LookupFunction, BlockList } from "node:net"
import { mimeTypeOf, type MimeType } from "@tropism/domain/attachment"
import { Context, Effect, Schema } from "effect"
import { agentLimits } from "../limits.ts"

/** How names are resolved, and which addresses may be reached. */
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
  /** Called with a `ClosedAddress`, or with the error that broke the connection before the response. */
  readonly failed: (error: Error) => void
}

/** Sends one request over its own connection; the returned function ends both. */
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

/** Resolves a name to permitted addresses only: the connection knows no others. */
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

// Decides which network addresses are public.
//
// A file is fetched on behalf of anyone who may write to an agent; they must not reach what only this machine or its network can. An
// address that is not plainly public counts as private.

/** Ranges that no fetch reaches: the special-purpose registries of IANA (RFC 6890 and its successors). */
const closed4 = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4]
] as const

const blocked4 = new BlockList()
for (const [network, bits] of closed4) blocked4.addSubnet(network, bits, "ipv4")

/** The allocated unicast addresses, and the ranges in them that are not public. */
const open6 = new BlockList()
open6.addSubnet("2000::", 3, "ipv6")
const blocked6 = new BlockList()
for (const [network, bits] of [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20]
] as const)
  blocked6.addSubnet(network, bits, "ipv6")

/** Whether a numeric address is publicly reachable. */
export const isPublicAddress = (address: string): boolean => {
  switch (isIP(address)) {
    case 4:
      return !blocked4.check(address, "ipv4")
    // IPv4-mapped IPv6 addresses and NAT64 are outside 2000::/3.
    case 6:
      return open6.check(address, "ipv6") && !blocked6.check(address, "ipv6")
    default:
      return false
  }
}

// Fetches a file from an address that a caller named.
//
// Each request, and each redirect again, is checked when it connects. Size and time are limited.

/** Why a file was not fetched, in a sentence. */
export class FileNotFetched extends Schema.TaggedError<FileNotFetched>()("FileNotFetched", {
  detail: Schema.String
}) {}

/** A file as its server returned it. */
export interface RemoteFile {
  readonly bytes: Uint8Array
  readonly mimeType: MimeType
}

/** Fetches a file of a type that an agent can be shown. */
export const fetchFile = (address: string): Effect.Effect<RemoteFile, FileNotFetched> =>
  Effect.timeoutOrElse(Effect.scoped(follow(address)), {
    duration: agentLimits.fileFetchTimeoutMs,
    orElse: () => refuse(`${address} did not answer within ${agentLimits.fileFetchTimeoutMs / 1_000} seconds`)
  })

/** Sends the request and follows a limited number of redirects. */
const follow = Effect.fn("fetchFile")(function* (address: string) {
  const network = yield* OutsideNetwork
  let url = yield* readUrl(address, undefined)
  for (let hops = 0; hops <= agentLimits.fileMaxRedirects; hops++) {
    const answer: Answer = yield* get(url, network)
    if (answer.type === "file") return answer.file
    url = yield* readUrl(answer.location, url)
  }
  return yield* refuse(`${address} redirects more than ${agentLimits.fileMaxRedirects} times`)
})

const refuse = (detail: string) => Effect.fail(new FileNotFetched({ detail }))

const readUrl = (address: string, from: URL | undefined) => {
  const url = URL.canParse(address, from?.href) ? new URL(address, from?.href) : undefined
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:"))
    return refuse(`${address} is no address of the web: it begins with https:// or http://`)
  return url.username === "" && url.password === ""
    ? Effect.succeed(url)
    : refuse(`The address of a file holds no user name and no password`)
}

type Answer =
  | { readonly type: "file"; readonly file: RemoteFile }
  | { readonly type: "moved"; readonly location: string }

/** Sends one request; its connection ends with the response, or when the caller is interrupted. */
const get = Effect.fnUntraced(function* (url: URL, network: Network) {
  const response = yield* Effect.acquireRelease(
    Effect.callback<IncomingMessage, FileNotFetched>((resume) => {
      const stop = send(url, network, {
        method: "GET",
        headers: { accept: "*/*", "user-agent": "tropism" },
        answered: (answer) => resume(Effect.succeed(answer)),
        failed: (error) =>
          resume(
            error instanceof ClosedAddress
              ? closed(url.host)
              : refuse(`${url.host} could not be reached: ${error.message}`)
          )
      })
      return Effect.sync(stop)
    }),
    (answer) => Effect.sync(() => answer.destroy()),
    { interruptible: true }
  )
  return yield* answerOf(url, response)
})

const closed = (host: string) =>
  refuse(`${host} leads to an address that is not of the public network: nothing is fetched from there`)

const answerOf = Effect.fnUntraced(function* (url: URL, response: IncomingMessage) {
  const { headers, statusCode = 0 } = response
  const isMoved = [301, 302, 303, 307, 308].includes(statusCode)
  if (isMoved && headers.location !== undefined) {
    const moved: Answer = { type: "moved", location: headers.location }
    return moved
  }
  if (statusCode !== 200) return yield* refuse(`${url.host} answered ${statusCode} instead of a file`)
  const mimeType = mimeTypeOf(headers["content-type"] ?? "")
  if (mimeType === undefined)
    return yield* refuse(
      `${url.host} says the file is ${headers["content-type"] ?? "of no type"}, which no agent is shown`
    )
  if ((headers["content-encoding"] ?? "identity") !== "identity")
    return yield* refuse(`${url.host} sent the file encoded as ${headers["content-encoding"]}`)
  const file: RemoteFile = { bytes: yield* readBytes(url, response), mimeType }
  const found: Answer = { type: "file", file }
  return found
})

/** Reads the whole body, up to the maximum file size. */
const readBytes = (url: URL, response: IncomingMessage) =>
  Effect.callback<Uint8Array, FileNotFetched>((resume) => {
    const chunks: Array<Uint8Array> = []
    let size = 0
    response.on("data", (chunk: Uint8Array) => {
      size += chunk.byteLength
      if (size <= agentLimits.fileMaxBytes) {
        chunks.push(chunk)
        return
      }
      resume(refuse(`The file has more than ${agentLimits.fileMaxBytes} bytes`))
      response.destroy()
    })
    response.on("end", () => resume(Effect.succeed(new Uint8Array(Buffer.concat(chunks)))))
    response.on("error", (error) => resume(refuse(`${url.host} broke off: ${error.message}`)))
    response.on("aborted", () => resume(refuse(`${url.host} broke off`)))
  })
