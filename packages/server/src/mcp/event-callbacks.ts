/**
 * Posts signed events to subscribers' addresses (Standard Webhooks).
 *
 * **Invariant**: the target address is checked when it is called, so a name that resolves into this network is refused; redirects are not
 * followed. A subscriber sees only a category of its address's answer, never the text: otherwise subscriptions could read what only this
 * server can reach.
 */
import { randomBytes, timingSafeEqual } from "node:crypto"
import type { IncomingMessage } from "node:http"
import type { ProjectId } from "@tropism/domain/ids"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { type Network, OutsideNetwork, send } from "../agents/outside-network.ts"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { keyIdOf, Sealing } from "../database/sealing.ts"
import { signatureOf } from "../reactions/webhooks.ts"
import { LocalMcpServers } from "../tools/external-mcp/faults.ts"
import { eventLimits } from "./events.ts"

/** Why a delivery failed, in the extension's categories. */
export const CallbackFault = Schema.Literals([
  "connection_refused",
  "timeout",
  "tls_error",
  "http_4xx",
  "http_5xx",
  "challenge_failed"
])
export type CallbackFault = typeof CallbackFault.Type

/** A delivery failed; `status` is the HTTP status, if there was one. */
export class CallbackFailed extends Schema.TaggedError<CallbackFailed>()("CallbackFailed", {
  fault: CallbackFault,
  status: Schema.NullOr(Schema.Int)
}) {}

/** The address, its owner, and the signing secrets. */
export interface Callback {
  readonly url: string
  readonly handle: string
  /** As subscribers supply them: `whsec_…`; newest first. */
  readonly secrets: ReadonlyArray<string>
}

/** The transport of callbacks. Simulations replace it with their own subscribers. */
export class Posting extends Context.Reference<
  ((callback: Callback, id: string, message: object) => Effect.Effect<void, CallbackFailed>) | undefined
>("@tropism/server/mcp/Posting", { defaultValue: () => undefined }) {}

export class Callbacks extends Context.Service<
  Callbacks,
  {
    /** Whether an address is allowed: https, or local where the operator allows that for such a token. */
    readonly mayCall: (url: URL, isServerToken: boolean) => boolean
    /** Posts a message under an id; succeeds when it was accepted. */
    readonly post: (callback: Callback, id: string, message: object) => Effect.Effect<void, CallbackFailed>
    /** Asks an address to confirm that it wants deliveries. */
    readonly challenge: (callback: Callback) => Effect.Effect<void, CallbackFailed>
  }
>()("@tropism/server/mcp/Callbacks") {
  static readonly layer = Layer.effect(
    Callbacks,
    Effect.gen(function* () {
      const permit = yield* LocalMcpServers
      const outside = yield* OutsideNetwork
      const posting = yield* Posting
      const everywhere: Network = { ...outside, mayReach: () => true }
      /** A name that resolves to this machine is not allowed like a literal local address, unless the operator allows it. */
      const networkOf = (url: URL) =>
        permit === "admins" || (permit === "serverTokens" && isLoopback(url)) ? everywhere : outside

      const sent = Effect.fnUntraced(function* (callback: Callback, id: string, message: object) {
        const [url, body] = [new URL(callback.url), JSON.stringify(message)]
        const timestamp = String(Math.floor((yield* Clock.currentTimeMillis) / 1_000))
        const signed = { id, timestamp, body: new TextEncoder().encode(body) }
        const signatures = callback.secrets.map(
          (secret) => `v1,${signatureOf(signed, keyOf(secret).toString("hex")).toString("base64")}`
        )
        const headers = {
          "content-type": "application/json",
          "content-length": String(signed.body.byteLength),
          "user-agent": "tropism",
          "webhook-id": id,
          "webhook-timestamp": timestamp,
          "webhook-signature": signatures.join(" "),
          "x-mcp-subscription-id": callback.handle
        }
        return yield* Effect.timeoutOrElse(exchange(url, networkOf(url), headers, body), {
          duration: eventLimits.deliveryTimeoutMs,
          orElse: () => Effect.fail(failed("timeout"))
        })
      })

      const challenge = Effect.fn("Callbacks.challenge")(function* (callback: Callback) {
        const nonce = yield* Effect.sync(() => randomBytes(24).toString("base64url"))
        const answer = yield* sent(callback, `msg_verification_${nonce.slice(0, 12)}`, {
          type: "verification",
          challenge: nonce
        })
        if (!isEcho(answer, nonce)) return yield* failed("challenge_failed")
      })

      return Callbacks.of({
        mayCall: (url, isServerToken) => {
          const mayBeLocal = permit === "admins" || (permit === "serverTokens" && isServerToken)
          return isLoopback(url) ? mayBeLocal && /^https?:$/.test(url.protocol) : url.protocol === "https:"
        },
        post: Effect.fn("Callbacks.post")((callback: Callback, id: string, message: object) =>
          posting ? posting(callback, id, message) : Effect.asVoid(sent(callback, id, message))
        ),
        challenge
      })
    })
  )
}

/** The bytes of a secret. */
export const keyOf = (secret: string): Buffer => Buffer.from(secret.slice("whsec_".length), "base64")

/** Whether this is a secret of Standard Webhooks. */
export const isSecret = (secret: string): boolean =>
  /^whsec_[A-Za-z0-9+/]+={0,2}$/.test(secret) &&
  keyOf(secret).length >= eventLimits.secretMinBytes &&
  keyOf(secret).length <= eventLimits.secretMaxBytes

const isLoopback = ({ hostname }: URL): boolean =>
  hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname)

const failed = (fault: CallbackFault, status: number | null = null) => new CallbackFailed({ fault, status })

/** One request and the beginning of its answer; any status but 2xx is a failure. */
const exchange = (
  url: URL,
  network: Network,
  headers: Record<string, string>,
  body: string
): Effect.Effect<string, CallbackFailed> =>
  Effect.callback((resume) => {
    const stop = send(url, network, {
      method: "POST",
      headers,
      body,
      answered: (response) => {
        const { statusCode = 0 } = response
        if (statusCode >= 200 && statusCode < 300) return readBeginning(response, resume)
        response.destroy()
        resume(Effect.fail(failed(statusCode >= 500 ? "http_5xx" : "http_4xx", statusCode)))
      },
      failed: (error) => resume(Effect.fail(failed(faultOf(error))))
    })
    return Effect.sync(stop)
  })

const readBeginning = (
  response: IncomingMessage,
  resume: (text: Effect.Effect<string, CallbackFailed>) => void
): void => {
  const chunks: Array<Uint8Array> = []
  let size = 0
  const end = () => resume(Effect.succeed(Buffer.concat(chunks).toString("utf8")))
  response.on("data", (chunk: Uint8Array) => {
    size += chunk.byteLength
    if (size <= eventLimits.answerMaxBytes) chunks.push(chunk)
    else {
      end()
      response.destroy()
    }
  })
  response.on("end", end)
  response.on("error", (error) => resume(Effect.fail(failed(faultOf(error)))))
}

/** A blocked address gives the same fault as a refused connection, so the answer does not reveal our network. */
const faultOf = (error: Error): CallbackFault => {
  const code = "code" in error ? String(error.code) : ""
  if (/TIMEDOUT/.test(code)) return "timeout"
  return /TLS|CERT|SSL|SELF_SIGNED|UNABLE_TO|ALTNAME/.test(code) ? "tls_error" : "connection_refused"
}

const Echo = Schema.fromJsonString(Schema.Struct({ challenge: Schema.String }))
const readEcho = Schema.decodeUnknownOption(Echo)

const isEcho = (answer: string, nonce: string): boolean => {
  const echo = readEcho(answer)
  if (echo._tag === "None") return false
  const [given, wanted] = [Buffer.from(echo.value.challenge), Buffer.from(nonce)]
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}

// Encrypts the secrets of event subscribers in the database.
//
// A secret is sealed for its subscription and does not open in another row. Plain secrets of older versions, and those under a replaced
// key, are sealed again when a server starts that can open them.

interface SecretRow {
  readonly id: string
  readonly handle: string
  readonly secret: string
  readonly previousSecret: string | null
}

const placeOf = (projectId: ProjectId, handle: string): string => `event subscription ${projectId} ${handle}`

/** Seals and opens the secrets of subscriptions. */
export const makeEventSecrets = Effect.map(Sealing, ({ keyIds, open, seal }) => ({
  keyIds,
  seal: (handle: string, secret: string) =>
    Effect.flatMap(ProjectTransaction, ({ projectId }) => seal(placeOf(projectId, handle), secret)),
  /** Undefined where it was sealed for another subscription or with a key that this server does not have. */
  open: (projectId: ProjectId, handle: string, kept: string): string | undefined =>
    keyIdOf(kept) === undefined ? kept : open(placeOf(projectId, handle), kept)
}))

/** Seals secrets that the current key does not protect yet; called at the start. */
export const sealEventSecrets = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database
  const sealing = yield* Sealing
  const secrets = yield* makeEventSecrets

  const sealBatch = Effect.fnUntraced(function* (after: string) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<SecretRow>`
      select id, handle, secret, previous_secret from kb.event_subscriptions
      where project_id = ${projectId} and id > ${after}::uuid
      order by id limit ${eventLimits.sealedTogether} for no key update`
    const sealed: Array<object> = []
    for (const { handle, id, previousSecret, secret } of rows) {
      const again = (kept: string | null) => {
        const text = kept === null ? undefined : secrets.open(projectId, handle, kept)
        return text === undefined ? Effect.succeed(kept) : secrets.seal(handle, text)
      }
      sealed.push({ id, secret: yield* again(secret), previous: yield* again(previousSecret) })
    }
    yield* sql`
      update kb.event_subscriptions kept set secret = row.secret, previous_secret = row.previous
      from jsonb_to_recordset(${JSON.stringify(sealed)}::text::jsonb) as row(id uuid, secret text, previous text)
      where kept.project_id = ${projectId} and kept.id = row.id`
    return rows.length < eventLimits.sealedTogether ? undefined : rows.at(-1)?.id
  }, orDie)

  for (const projectId of yield* sealing.unsealed) {
    let after: string | undefined = "00000000-0000-0000-0000-000000000000"
    while (after !== undefined) after = yield* database.inProject(projectId, sealBatch(after))
  }
})
