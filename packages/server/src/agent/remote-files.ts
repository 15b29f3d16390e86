/**
 * Fetches a file from an address that somebody named.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * Whoever names the address must not reach with it what only this server can, so
 * an address is judged at the moment of connecting and the connection goes to
 * exactly what was judged: a name that leads elsewhere a moment later gains
 * nothing. Every redirect is judged anew. Size and time are bounded.
 */
import { lookup as systemLookup } from "node:dns"
import { type IncomingMessage, request as httpRequest } from "node:http"
import { request as httpsRequest } from "node:https"
import { isIP, type LookupFunction } from "node:net"
import { mimeTypeOf, type MimeType } from "@tropism/domain/attachment"
import { Context, Effect, Schema } from "effect"
import { agentLimits } from "../limits.ts"
import { isPublicAddress } from "./addresses.ts"

/** Why a file was not fetched, in a sentence. */
export class FileNotFetched extends Schema.TaggedError<FileNotFetched>()("FileNotFetched", {
  detail: Schema.String
}) {}

/** A file as its server gave it. */
export interface RemoteFile {
  readonly bytes: Uint8Array
  readonly mimeType: MimeType
}

/** How names become addresses, and which addresses may be reached. */
export class FileNetwork extends Context.Reference<{
  readonly lookup: LookupFunction
  readonly mayReach: (address: string) => boolean
}>("@tropism/server/agent/FileNetwork", {
  defaultValue: () => ({ lookup: systemLookup as LookupFunction, mayReach: isPublicAddress })
}) {}

type Network = Context.Service.Shape<typeof FileNetwork>

/** Fetches a file of a kind that an agent can be shown. */
export const fetchFile = (address: string): Effect.Effect<RemoteFile, FileNotFetched> =>
  Effect.timeoutOrElse(Effect.scoped(follow(address)), {
    duration: agentLimits.fileFetchTimeoutMs,
    orElse: () => refuse(`${address} did not answer within ${agentLimits.fileFetchTimeoutMs / 1_000} seconds`)
  })

/** Asks, and asks again where it is sent on, a bounded number of times. */
const follow = Effect.fn("fetchFile")(function* (address: string) {
  const network = yield* FileNetwork
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

/** One request; its connection ends with the answer, or when nobody waits any more. */
const get = Effect.fnUntraced(function* (url: URL, { lookup, mayReach }: Network) {
  const host = url.hostname.replace(/^\[|\]$/g, "")
  if (isIP(host) !== 0 && !mayReach(host)) return yield* closed(url.host)
  const response = yield* Effect.callback<IncomingMessage, FileNotFetched>((resume) => {
    const send = url.protocol === "https:" ? httpsRequest : httpRequest
    const request = send(
      url,
      {
        lookup: judging(lookup, mayReach),
        headers: { accept: "*/*", "user-agent": "tropism" },
        agent: false
      },
      (answer) => resume(Effect.succeed(answer))
    )
    request.on("error", (error) =>
      resume(
        error instanceof ClosedAddress
          ? closed(url.host)
          : refuse(`${url.host} could not be reached: ${error.message}`)
      )
    )
    request.end()
    return Effect.sync(() => request.destroy())
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => response.destroy()))
  return yield* answerOf(url, response)
})

const closed = (host: string) =>
  refuse(`${host} leads to an address that is not of the public network: nothing is fetched from there`)

class ClosedAddress extends Error {}

/** Looks a name up and answers only what may be reached: the connection knows no other address. */
const judging =
  (lookup: LookupFunction, mayReach: (address: string) => boolean): LookupFunction =>
  (name, options, callback) =>
    lookup(name, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, "", 4)
      const all = Array.isArray(found) ? found : []
      const [first] = all
      if (first === undefined || !all.every(({ address }) => mayReach(address)))
        return callback(new ClosedAddress(`${name} is not of the public network`), "", 4)
      return options.all ? callback(null, all) : callback(null, first.address, first.family)
    })

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

/** Reads the body to its end, and no further than a file may be long. */
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
