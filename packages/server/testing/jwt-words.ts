/**
 * The words in which stories play an identity provider: keys made by jose, told over real HTTP, JWTs signed with them.
 */
import { createServer, type ServerResponse } from "node:http"
import { ConfigProvider, Effect, type Scope } from "effect"
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { type Doors, type Json, startServer, storyIn } from "./platform.ts"

export const issuer = "https://id.example"
export const audience = "tropism"

/** A key of the provider, and what the world may know of it. */
export interface ProviderKey {
  readonly kid: string
  readonly alg: string
  readonly secret: CryptoKey
  readonly open: CryptoKey
  readonly told: JWK
}

export const newKey = (kid: string, alg = "ES256"): Effect.Effect<ProviderKey> =>
  Effect.promise(() => generateKeyPair(alg, { extractable: true })).pipe(
    Effect.flatMap(({ privateKey, publicKey }) =>
      Effect.map(
        Effect.promise(() => exportJWK(publicKey)),
        (jwk) => ({ kid, alg, secret: privateKey, open: publicKey, told: { ...jwk, kid, alg, use: "sig" } })
      )
    )
  )

export interface Provider {
  readonly url: string
  /** What it answers from now on; the keys that it tells, unless a story takes the answer into its own hands. */
  readonly tell: (answer: ReadonlyArray<ProviderKey> | ((response: ServerResponse) => void)) => void
  /** How often it was asked. */
  readonly asked: () => number
}

/** Starts a provider that tells these keys, until the scope ends. */
export const startProvider = Effect.fn("startProvider")(function* (
  ...keys: ReadonlyArray<ProviderKey>
): Effect.fn.Return<Provider, never, Scope.Scope> {
  const telling =
    (told: ReadonlyArray<ProviderKey>): ((response: ServerResponse) => void) =>
    (response) =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ keys: told.map((key) => key.told) }))
  const state = { asked: 0, answer: telling(keys) }
  const server = createServer((_, response) => {
    state.asked += 1
    state.answer(response)
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}/keys`,
    tell: (answer) => void (state.answer = typeof answer === "function" ? answer : telling(answer)),
    asked: () => state.asked
  }
})

const nowSeconds = () => Math.floor(Date.now() / 1_000)

/** A JWT as the provider gives it to somebody; a claim that is undefined is left out. */
export const jwtOf = (
  key: Pick<ProviderKey, "kid" | "alg"> & { readonly secret: CryptoKey | Uint8Array },
  sub: string | undefined,
  claims: Record<string, unknown> = {}
): Effect.Effect<string> =>
  Effect.promise(() =>
    new SignJWT({
      iss: issuer,
      aud: audience,
      sub,
      iat: nowSeconds(),
      exp: nowSeconds() + 3_600,
      ...claims
    } as JWTPayload)
      .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: "JWT" })
      .sign(key.secret)
  )

/** A server that trusts an issuer, as its environment says. */
export const trusting = (access: PostgresAccess, env: Record<string, string>, keys?: string) =>
  startServer(access, [], undefined, undefined, keys).pipe(
    Effect.provide(
      ConfigProvider.layer(
        ConfigProvider.fromEnv({
          env: { TROPISM_JWT_ISSUER: issuer, TROPISM_JWT_AUDIENCE: audience, ...env }
        })
      )
    )
  )

/** The same doors with another credential. */
export const shown = (doors: Doors, jwt: string): Doors => ({
  ...doors,
  token: jwt,
  send: (method, path, body, headers = {}) =>
    doors.send(method, path, body, { authorization: `Bearer ${jwt}`, ...headers })
})

/** A project through the doors of whoever a JWT is of. */
export const storyOf = (doors: Doors, access: PostgresAccess, projectId: string, jwt: string) =>
  storyIn(shown(doors, jwt), access, projectId)

/** A call of an MCP door, without a session. */
export const initialize = (doors: Doors, path: string): Effect.Effect<Json> =>
  doors.send(
    "POST",
    path,
    {
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: {
        protocolVersion: "2025-11-25",
        capabilities: {},
        clientInfo: { name: "story", version: "1" }
      }
    },
    { accept: "application/json, text/event-stream" }
  )
