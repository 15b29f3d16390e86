/**
 * How servers of a cluster prove themselves to each other, and how it is told where one cannot.
 *
 * Flow: everything on the stairs below **cluster**
 *
 * The proof follows from the first of the keys with which secrets are sealed, and
 * whoever has that key among its own takes it. Two servers hear each other only
 * where each takes the other's proof: a start beside a server with which that is
 * not so ends, and whatever is found later is said once in the logs of both.
 */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import { Effect, Layer, Option, Redacted } from "effect"
import {
  FetchHttpClient,
  HttpClient,
  type HttpClientResponse,
  HttpRouter,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { Socket } from "effect/socket"
import { createHmac, timingSafeEqual } from "node:crypto"
import { connect, type PostgresAccess } from "../database/postgres-access.ts"
import type { SealingKey } from "../database/sealed-text.ts"
import { readClusterAddress } from "./cluster-address.ts"
import { clusterLimits } from "./cluster-limits.ts"

/** Under which header a server says where it is reached. */
const callerHeader = "tropism-server"

/** Where a server says which key it proves itself by, to who has proved itself. */
const keyPath = "/key"

/** What a server shows to another one. */
const proofOf = ({ bytes }: SealingKey): string =>
  `Bearer ${createHmac("sha256", Redacted.value(bytes)).update("tropism cluster\n").digest("base64url")}`

/** The headers by which a server that is reached at an address proves itself. */
export const proofHeaders = ([key]: ReadonlyArray<SealingKey>, address: string): Record<string, string> => ({
  [callerHeader]: address,
  ...(key === undefined ? {} : { authorization: proofOf(key) })
})

/** The first server at work on this database with which this one would not get on; undefined where there is none. */
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

/** The addresses of servers that gave a sign of life; none where the database has no table for them yet. */
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

/** Asks a server which key it proves itself by; nothing where it cannot be reached. */
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

/** Sockets whose first request carries the proof; who does not take it is named in the log, once. */
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
        // It does not say why it was not let in: that is asked for.
        socket.addEventListener("error", () => void run(look(new URL(url).host)), { once: true })
        return socket
      }
    })
  ).pipe(Layer.provide(NodeSocket.layerWebSocketConstructor))

/** Lets nobody in who does not know one of the keys; who shows the proof of another one is named in the log, once. */
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

/** Warns of each server once, and of a bounded number: whoever is no server may call itself anything. */
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
