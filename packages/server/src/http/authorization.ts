/**
 * Reads the credential of a request and puts its principal before the handler.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A cookie is believed only from our own pages: a browser's request that changes
 * something and names another origin is refused, so no other site can act for a
 * person who is signed in.
 */
import { Authorization, CurrentPrincipal } from "@tropism/api/authorization"
import { Unauthorized } from "@tropism/api/problems"
import { Context, Effect, Layer, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { Tokens } from "./tokens.ts"

/** The secret that let a request in, for what goes on after the request was judged. */
export class CurrentCredential extends Context.Reference<Redacted.Redacted>(
  "@tropism/server/http/CurrentCredential",
  { defaultValue: () => Redacted.make("") }
) {}

export const layerAuthorization = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const tokens = yield* Tokens
    const principalOf = Effect.fnUntraced(function* (secret: Redacted.Redacted) {
      const principal = Redacted.value(secret) === "" ? undefined : yield* tokens.find(secret)
      return (
        principal ??
        (yield* new Unauthorized({
          detail: "Send a valid token: Authorization: Bearer …, or open the login link that the server prints"
        }))
      )
    })
    const letIn = <A, E, R>(httpEffect: Effect.Effect<A, E, R>, credential: Redacted.Redacted) =>
      Effect.flatMap(principalOf(credential), (principal) =>
        Effect.provideService(
          Effect.provideService(httpEffect, CurrentPrincipal, principal),
          CurrentCredential,
          credential
        )
      )
    return Authorization.of({
      bearer: (httpEffect, { credential }) => letIn(httpEffect, credential),
      cookie: (httpEffect, { credential }) => Effect.andThen(fromOwnPage, letIn(httpEffect, credential))
    })
  })
)

const fromOwnPage = Effect.gen(function* () {
  const { headers, method } = yield* HttpServerRequest.HttpServerRequest
  const origin = headers["origin"]
  if (method === "GET" || method === "HEAD" || origin === undefined) return
  if (URL.parse(origin)?.host !== headers["host"]) {
    return yield* new Unauthorized({
      detail: "A signed-in browser may change things only from this server's own pages"
    })
  }
})

/** The token after `Authorization: Bearer`; empty without one. */
export const bearerOf = ({ headers }: HttpServerRequest.HttpServerRequest): Redacted.Redacted => {
  const [scheme, token] = (headers["authorization"] ?? "").split(" ", 2)
  return Redacted.make(scheme?.toLowerCase() === "bearer" ? (token ?? "") : "")
}
