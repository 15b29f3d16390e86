/**
 * Fetches a file from an address that somebody named.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * Each request is judged where it connects (`outside-network.ts`), and so is every
 * redirect anew. Size and time are bounded.
 */
import type { IncomingMessage } from "node:http"
import { mimeTypeOf, type MimeType } from "@tropism/domain/attachment"
import { Effect, Schema } from "effect"
import { agentLimits } from "../limits.ts"
import { ClosedAddress, type Network, OutsideNetwork, send } from "./outside-network.ts"

/** Why a file was not fetched, in a sentence. */
export class FileNotFetched extends Schema.TaggedError<FileNotFetched>()("FileNotFetched", {
  detail: Schema.String
}) {}

/** A file as its server gave it. */
export interface RemoteFile {
  readonly bytes: Uint8Array
  readonly mimeType: MimeType
}

/** Fetches a file of a kind that an agent can be shown. */
export const fetchFile = (address: string): Effect.Effect<RemoteFile, FileNotFetched> =>
  Effect.timeoutOrElse(Effect.scoped(follow(address)), {
    duration: agentLimits.fileFetchTimeoutMs,
    orElse: () => refuse(`${address} did not answer within ${agentLimits.fileFetchTimeoutMs / 1_000} seconds`)
  })

/** Asks, and asks again where it is sent on, a bounded number of times. */
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

/** One request; its connection ends with the answer, or when nobody waits any more. */
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
