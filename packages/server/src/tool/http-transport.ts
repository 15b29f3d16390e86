/**
 * A server at an address, over Streamable HTTP.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * An answer is read no further than its bound. Where this server may not speak to
 * its own network, each request looks up where its address leads before it is
 * sent: a name that leads outside today may lead inside tomorrow.
 */
import { lookup } from "node:dns/promises"
import { isIP } from "node:net"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { Effect, type Scope } from "effect"
import { FetchHttpClient } from "effect/http"
import { isPublicAddress } from "../agent/addresses.ts"
import { foreignLimits } from "../limits.ts"

export interface AddressToReach {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Whether the address may lead into this machine or its network. */
  readonly isLocalAllowed: boolean
}

/** Speaks to a server; at the end of the scope its session is ended where it has one. */
export const httpTransport = Effect.fnUntraced(function* ({ headers, isLocalAllowed, url }: AddressToReach) {
  const fetch = yield* FetchHttpClient.Fetch
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    fetch: (address, init) =>
      (isLocalAllowed ? Promise.resolve() : refuseLocal(new URL(address))).then(() =>
        fetch(address, init).then((response) => (init?.method === "POST" ? bounded(response) : response))
      )
  })
  yield* Effect.addFinalizer(() =>
    Effect.tryPromise(() => transport.terminateSession()).pipe(
      Effect.timeoutOption(foreignLimits.endGraceMs),
      Effect.ignore
    )
  )
  return transport
}) satisfies (address: AddressToReach) => Effect.Effect<StreamableHTTPClientTransport, never, Scope.Scope>

/** The address leads into a network in which this server may not speak. */
export class LocalAddress extends Error {}

const refuseLocal = ({ hostname }: URL): Promise<void> => {
  const host = hostname.replace(/^\[|\]$/g, "")
  const found = isIP(host) ? Promise.resolve([{ address: host }]) : lookup(host, { all: true })
  return found.then((addresses) => {
    if (!addresses.every(({ address }) => isPublicAddress(address)))
      throw new LocalAddress(
        `${hostname} leads into this server's own network, where it calls no MCP server: the operator allows that with TROPISM_LOCAL_MCP_SERVERS=true`
      )
  })
}

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
