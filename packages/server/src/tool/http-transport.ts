/**
 * A server at an address, over Streamable HTTP.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * An answer is read no further than its bound. Where this server may not speak to
 * its own network, each request is judged where it connects, as a file's is that is
 * fetched: a name that leads outside now may lead inside a moment later.
 */
import type { IncomingMessage } from "node:http"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { Effect, type Scope } from "effect"
import { ClosedAddress, type Network, OutsideNetwork, send } from "../agent/outside-network.ts"
import { foreignLimits } from "../limits.ts"

export interface AddressToReach {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Whether the address may lead into this machine or its network. */
  readonly isLocalAllowed: boolean
}

/** Speaks to a server; at the end of the scope its session is ended where it has one. */
export const httpTransport = Effect.fnUntraced(function* ({ headers, isLocalAllowed, url }: AddressToReach) {
  const network = yield* OutsideNetwork
  const fetch = fetchThrough(isLocalAllowed ? { ...network, mayReach: () => true } : network)
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    fetch: (address, init) =>
      fetch(address, init).then((response) => (init?.method === "POST" ? bounded(response) : response))
  })
  yield* Effect.addFinalizer(() =>
    Effect.tryPromise(() => transport.terminateSession()).pipe(
      Effect.timeoutOption(foreignLimits.endGraceMs),
      Effect.ignore
    )
  )
  return transport
}) satisfies (address: AddressToReach) => Effect.Effect<StreamableHTTPClientTransport, never, Scope.Scope>

/** The `fetch` that the SDK asks for, over connections that are judged; it sends on to the same host only, where the headers may go. */
const fetchThrough =
  (network: Network, hops: number = foreignLimits.redirects) =>
  (address: string | URL, init: RequestInit = {}): Promise<Response> =>
    new Promise<Response>((resolve, reject) => {
      const url = new URL(address)
      const { body, method = "GET", signal } = init
      const stop = send(url, network, {
        method,
        headers: Object.fromEntries(new Headers(init.headers)),
        ...(typeof body === "string" ? { body } : {}),
        answered: (message) => {
          const next = hops > 0 ? movedTo(url, message) : undefined
          if (next === undefined) return resolve(responseOf(message))
          message.destroy()
          resolve(fetchThrough(network, hops - 1)(next, init))
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

/** Where the same request belongs on the same host, as the host says. */
const movedTo = (from: URL, { headers: { location = "" }, statusCode }: IncomingMessage): URL | undefined => {
  if ((statusCode !== 307 && statusCode !== 308) || !URL.canParse(location, from.href)) return undefined
  const to = new URL(location, from.href)
  const isSafe = to.protocol === from.protocol || to.protocol === "https:"
  return isSafe && to.hostname === from.hostname ? to : undefined
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

/** The body as a stream of the web, read no faster than it is used. */
const bodyOf = (message: IncomingMessage): ReadableStream<Uint8Array> =>
  new ReadableStream<Uint8Array>({
    start: (controller) => {
      message.on("data", (chunk: Uint8Array) => {
        controller.enqueue(chunk)
        if ((controller.desiredSize ?? 0) <= 0) message.pause()
      })
      message.on("end", () => controller.close())
      message.on("error", (error) => controller.error(error))
      message.on("aborted", () => controller.error(new Error("The server broke its answer off")))
    },
    pull: () => void message.resume(),
    cancel: () => void message.destroy()
  })

/** The same answer, which breaks off where it is longer than any may be. */
const bounded = (response: Response): Response => {
  if (response.body === null) return response
  let bytes = 0
  const body = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        bytes += chunk.byteLength
        if (bytes > foreignLimits.messageMaxBytes)
          controller.error(new Error(`The answer is longer than ${foreignLimits.messageMaxBytes} bytes`))
        else controller.enqueue(chunk)
      }
    })
  )
  return new Response(body, response)
}
