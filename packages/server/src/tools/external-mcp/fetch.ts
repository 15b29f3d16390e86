/**
 * The `fetch` for the SDK; checks every request when it connects.
 *
 * DNS can change between check and use, so the check is at connect time, by the egress rules of file downloads.
 * Redirects stay within the origin, because the headers hold secrets. Answers are read up to a limit and not
 * decompressed, so none exceeds it.
 */
import type { IncomingMessage } from "node:http"
import { ClosedAddress, type Network, send } from "../../agents/outside-network.ts"
import { tooLongText } from "./faults.ts"
import { externalLimits } from "./limits.ts"

export type Fetch = (address: string | URL, init?: RequestInit) => Promise<Response>

/** Sends requests over checked connections and reads bounded answers. */
export const judgedFetch =
  (
    network: Network,
    { maxBytes = externalLimits.messageMaxBytes, redirects = externalLimits.redirects }: Bounds = {}
  ): Fetch =>
  (address, init = {}) =>
    through(network, redirects)(address, init).then((response) => bounded(response, maxBytes))

interface Bounds {
  /** Limit of one answer, or of one event of a stream. */
  readonly maxBytes?: number
  /** Number of redirects to follow; 0 for none. */
  readonly redirects?: number
}

const through =
  (network: Network, hops: number): Fetch =>
  (address, init = {}) =>
    new Promise<Response>((resolve, reject) => {
      const url = new URL(address)
      const { body, method = "GET", signal } = init
      const stop = send(url, network, {
        method,
        headers: { ...Object.fromEntries(new Headers(init.headers)), "accept-encoding": "identity" },
        ...(typeof body === "string" ? { body } : {}),
        answered: (message) => {
          const next = hops > 0 ? movedTo(url, message) : undefined
          if (next === undefined) return resolve(responseOf(message))
          message.destroy()
          resolve(through(network, hops - 1)(next, init))
        },
        failed: (error) => reject(error instanceof ClosedAddress ? closed(url) : error)
      })
      const abort = () => {
        stop()
        reject(new DOMException("The request was aborted", "AbortError"))
      }
      if (signal?.aborted === true) abort()
      else signal?.addEventListener("abort", abort, { once: true })
    })

const closed = ({ hostname }: URL): ClosedAddress =>
  new ClosedAddress(
    `${hostname} leads into this server's own network, where it calls no MCP server: the operator allows that with TROPISM_LOCAL_MCP_SERVERS=true`
  )

/** Returns the redirect target within the same origin, or on the same host with TLS. */
const movedTo = (from: URL, { headers: { location = "" }, statusCode }: IncomingMessage): URL | undefined => {
  if ((statusCode !== 307 && statusCode !== 308) || !URL.canParse(location, from.href)) return undefined
  const to = new URL(location, from.href)
  const isSecured = from.protocol === "http:" && to.protocol === "https:" && to.hostname === from.hostname
  return to.origin === from.origin || (isSecured && from.port === "" && to.port === "") ? to : undefined
}

const responseOf = (message: IncomingMessage): Response => {
  const { rawHeaders, statusCode: status = 502 } = message
  const headers = new Headers()
  for (let index = 0; index + 1 < rawHeaders.length; index += 2)
    headers.append(rawHeaders[index] ?? "", rawHeaders[index + 1] ?? "")
  const hasBody = ![204, 205, 304].includes(status)
  if (!hasBody) message.resume()
  return new Response(hasBody ? bodyOf(message) : null, { status, headers })
}

/** The body as a web stream with backpressure; bytes after its end or cancellation are discarded. */
const bodyOf = (message: IncomingMessage): ReadableStream<Uint8Array> => {
  let isOver = false
  const once = (end: () => void) => {
    if (!isOver) end()
    isOver = true
  }
  return new ReadableStream<Uint8Array>({
    start: (controller) => {
      message.on("data", (chunk: Uint8Array) => {
        if (isOver) return
        controller.enqueue(chunk)
        if ((controller.desiredSize ?? 0) <= 0) message.pause()
      })
      message.on("end", () => once(() => controller.close()))
      message.on("error", (error) => once(() => controller.error(error)))
      message.on("aborted", () => once(() => controller.error(new Error("The server broke its answer off"))))
    },
    pull: () => void message.resume(),
    cancel: () => {
      isOver = true
      message.destroy()
    }
  })
}

/** Breaks the answer off when a message in it exceeds the limit. */
const bounded = (response: Response, maxBytes: number): Response => {
  if (response.body === null) return response
  const isStream = /^\s*text\/event-stream\s*(?:;|$)/i.test(response.headers.get("content-type") ?? "")
  const count = isStream ? eventBytes() : allBytes()
  const body = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        if (count(chunk) > maxBytes) controller.error(new Error(tooLongText(maxBytes)))
        else controller.enqueue(chunk)
      }
    })
  )
  return new Response(body, response)
}

type Counter = (chunk: Uint8Array) => number

const allBytes = (): Counter => {
  let bytes = 0
  return ({ byteLength }) => (bytes += byteLength)
}

/** Counts the bytes since the last empty line, or of the longest event that ends in a chunk. */
const eventBytes = (): Counter => {
  let bytes = 0
  let isLineEmpty = true
  return (chunk) => {
    let most = 0
    for (const byte of chunk) {
      bytes += 1
      if (byte === lineFeed && isLineEmpty) {
        most = Math.max(most, bytes)
        bytes = 0
      }
      if (byte !== carriageReturn) isLineEmpty = byte === lineFeed
    }
    return Math.max(most, bytes)
  }
}

const lineFeed = 10
const carriageReturn = 13
