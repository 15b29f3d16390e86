/**
 * Connections to the other servers: one websocket each, closed when no answer comes.
 *
 * A frozen peer closes nothing. So each connection is pinged at the heartbeat interval, and requests to a peer that is silent for the
 * allowed time fail and are routed again.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import { Effect, Layer, Option, Redacted } from "effect"
import { Runners } from "effect/cluster"
import {
  FetchHttpClient,
  HttpClient,
  type HttpClientResponse,
  HttpRouter,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { RpcClient, RpcSerialization } from "effect/rpc"
import { Socket } from "effect/socket"
import { connect, type PostgresAccess } from "../database/postgres-access.ts"
import type { SealingKey } from "../database/sealing.ts"
import { clusterLimits } from "./limits.ts"

export const calling = Layer.effect(
  Runners.RpcClientProtocol,
  Effect.gen(function* () {
    const serialization = yield* RpcSerialization.RpcSerialization
    const constructor = yield* Socket.WebSocketConstructor
    return Runners.RpcClientProtocol.of({
      codecFor: serialization.codecFor,
      make: Effect.fnUntraced(function* (address) {
        const socket = yield* Effect.provideService(
          Socket.makeWebSocket(urlOf(address)),
          Socket.WebSocketConstructor,
          constructor
        )
        return yield* RpcClient.makeProtocolSocket({
          pingInterval: clusterLimits.heartbeatMs,
          pingTimeout: clusterLimits.silenceMs
        }).pipe(
          Effect.provideService(Socket.Socket, socket),
          Effect.provideService(RpcSerialization.RpcSerialization, serialization)
        )
      })
    })
  })
)

// Authenticates the servers of a cluster to each other, and reports where that fails.
//
// The proof derives from the first sealing key, and any server that has this key accepts it. Two servers talk only if each accepts the
// other's proof: a start beside an incompatible server fails, and a later mismatch is logged once on both sides.

/** The header with the address of the calling server. */
const callerHeader = "tropism-server"

/** The path at which a server names its key to an authenticated peer. */
const keyPath = "/key"

/** The proof that a server presents. */
const proofOf = ({ bytes }: SealingKey): string =>
  `Bearer ${createHmac("sha256", Redacted.value(bytes)).update("tropism cluster\n").digest("base64url")}`

/** The headers that authenticate a server with its address. */
export const proofHeaders = ([key]: ReadonlyArray<SealingKey>, address: string): Record<string, string> => ({
  [callerHeader]: address,
  ...(key === undefined ? {} : { authorization: proofOf(key) })
})

/** The first running server on this database that is incompatible with this one; undefined where there is none. */
export const findStranger = Effect.fn("findStranger")(function* (
  { ownerUrl }: PostgresAccess,
  address: string,
  keys: ReadonlyArray<SealingKey>
) {
  const others = yield* Effect.orDie(Effect.scoped(atWork(ownerUrl)))
  const strangers = yield* Effect.filter(
    others,
    (other) =>
      Effect.map(askKey(other, address, keys), (answer) =>
        Option.exists(answer, ({ keyId, status }) =>
          status === 401 ? true : status === 200 && !keys.some(({ id }) => id === keyId)
        )
      ),
    { concurrency: clusterLimits.askKeysTogether }
  )
  return strangers[0]
})

/** The addresses of servers with a recent heartbeat; none where the database does not have the table yet. */
const atWork = Effect.fnUntraced(function* (url: Redacted.Redacted<string>) {
  const connection = yield* connect(url)
  const tables = yield* connection.queryValues(
    "select 1 where to_regclass('kb_cluster.tropism_runners') is not null"
  )
  if (tables.length === 0) return []
  const rows = yield* connection.queryValues(
    "select address from kb_cluster.tropism_runners where last_heartbeat > now() - make_interval(secs => $1)",
    [clusterLimits.silenceMs / 1_000]
  )
  return rows.map(([other]) => String(other))
})

/** Asks a server for the name of its key; nothing where it is unreachable. */
const askKey = (other: string, address: string, keys: ReadonlyArray<SealingKey>) =>
  Effect.gen(function* () {
    const host = other.slice(0, other.lastIndexOf(":"))
    const at = `${host.includes(":") ? `[${host}]` : host}${other.slice(host.length)}`
    const headers = proofHeaders(keys, address)
    const answer: HttpClientResponse.HttpClientResponse = yield* HttpClient.get(`http://${at}${keyPath}`, {
      headers
    })
    return { status: answer.status, keyId: yield* answer.text }
  }).pipe(
    Effect.timeout(clusterLimits.askKeyMs),
    Effect.option,
    Effect.provide(FetchHttpClient.layer),
    Effect.withTracerEnabled(false)
  )

/** Sockets whose first request carries the proof; a peer that refuses it is logged once. */
export const signedSockets = (address: string, keys: ReadonlyArray<SealingKey>) =>
  Layer.effect(
    Socket.WebSocketConstructor,
    Effect.gen(function* () {
      const open = yield* Socket.WebSocketConstructor
      const run = Effect.runForkWith(yield* Effect.context())
      const { isTold, tell } = yield* tellOnce(
        "proofNotTaken",
        (other) => `The server at ${other} does not take the proof of this one, and hears nothing of it`
      )
      const look = Effect.fnUntraced(function* (other: string) {
        if (isTold(other)) return
        const answer = yield* askKey(other, address, keys)
        if (Option.exists(answer, ({ status }) => status === 401)) yield* tell(other)
      })
      return (url: string, options?: Socket.WebSocketConstructorOptions) => {
        const socket = open(url, {
          protocols: typeof options === "string" || Array.isArray(options) ? options : options?.protocols,
          headers: proofHeaders(keys, address)
        })
        // The refusal has no reason, so ask for it.
        socket.addEventListener("error", () => void run(look(new URL(url).host)), { once: true })
        return socket
      }
    })
  ).pipe(Layer.provide(NodeSocket.layerWebSocketConstructor))

/** Admits only peers that know one of the keys; one with another proof is logged once. */
export const onlyServers = (keys: ReadonlyArray<SealingKey>) => {
  const proofs = keys.map((key) => Buffer.from(proofOf(key)))
  const isServer = (shown: string | undefined) => {
    const bytes = Buffer.from(shown ?? "")
    return proofs.some((proof) => proof.length === bytes.length && timingSafeEqual(proof, bytes))
  }
  return HttpRouter.middleware(
    Effect.gen(function* () {
      const { tell } = yield* tellOnce(
        "proofRefused",
        (other) => `A server at ${other} does not prove that it is one of this cluster, and is not let in`
      )
      return (answering) =>
        Effect.gen(function* () {
          const { headers, remoteAddress, url } = yield* HttpServerRequest.HttpServerRequest
          const shown = headers["authorization"]
          if (isServer(shown))
            return url === keyPath ? HttpServerResponse.text(keys[0]?.id ?? "") : yield* answering
          const caller = headers[callerHeader] ?? ""
          if (shown !== undefined)
            yield* tell(
              readClusterAddress(caller) === undefined
                ? Option.getOrElse(remoteAddress, () => "an unknown address")
                : caller
            )
          return HttpServerResponse.empty({ status: 401 })
        })
    }),
    { global: true }
  )
}

/** Warns about each server once, and about a bounded number, because an impostor may use any name. */
const tellOnce = (code: string, sentence: (other: string) => string) =>
  Effect.sync(() => {
    const told = new Set<string>()
    const isTold = (other: string) => told.has(other) || told.size >= clusterLimits.strangersTold
    const tell = (other: string) =>
      Effect.suspend(() => {
        if (isTold(other)) return Effect.void
        told.add(other)
        return Effect.logWarning(`${sentence(other)}: give every server the same TROPISM_ENCRYPTION_KEY.`, {
          code
        })
      })
    return { isTold, tell }
  })

// The address at which the other servers of a cluster reach this one.

export interface ClusterAddress {
  readonly host: string
  readonly port: number
}

/** Parses `host:port`, with IPv6 hosts in brackets; undefined if it is invalid. */
export const readClusterAddress = (text: string): ClusterAddress | undefined => {
  const { host, port } = /^(?<host>[a-z0-9._-]+|\[[0-9a-f:.]+\]):(?<port>\d{1,5})$/i.exec(text)?.groups ?? {}
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535) return undefined
  // A wildcard address is not reachable by peers.
  if (/^(0\.0\.0\.0|\[[0:]+\])$/.test(host)) return undefined
  return { host: host.replace(/^\[|\]$/g, ""), port: Number(port) }
}

/** The default cluster address on the same machine, next to the HTTP port; undefined where that is no valid port. */
export const besideDoors = (doors: ClusterAddress): ClusterAddress | undefined => {
  const port = doors.port + clusterLimits.portDistance
  return isLoopback(doors.host) && doors.port > 0 && port <= 65_535 ? { host: doors.host, port } : undefined
}

/** The address as peers and the database know it. */
export const nameOf = ({ host, port }: ClusterAddress): string => `${host}:${port}`

/** The URL for peers. */
const urlOf = ({ host, port }: ClusterAddress): string =>
  `ws://${host.includes(":") ? `[${host}]` : host}:${port}/`

/** The listening address, which may differ from the address that peers use. */
export const listensAt = ({
  host,
  port
}: ClusterAddress): { readonly host?: string | undefined; readonly port: number } =>
  isLoopback(host) ? { host, port } : { port }

export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || host.startsWith("127.")
