/**
 * Reads the credential of a request and puts its principal before the handler.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A cookie is believed only from our own pages (`own-pages.ts`), so no other site
 * can act for a person who is signed in.
 */
import { Authorization, CurrentPrincipal } from "@tropism/api/authorization"
import { Unauthorized } from "@tropism/api/problems"
import { Context, Effect, Layer, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import type { KeyHolder } from "../database/idempotency-keys.ts"
import { judgePage } from "./own-pages.ts"
import { principalAt } from "./principal-at.ts"
import { sessionOf } from "./session-cookie.ts"
import { Tokens } from "./tokens.ts"

/** The secret that let a request in, for what goes on after the request was judged. */
export class CurrentCredential extends Context.Reference<Redacted.Redacted>(
  "@tropism/server/http/CurrentCredential",
  { defaultValue: () => Redacted.make("") }
) {}

/** Whose keys a request's are, by the credential that let it in. */
export class CurrentHolder extends Context.Reference<KeyHolder>("@tropism/server/http/CurrentHolder", {
  defaultValue: () => ({ id: "", secret: Redacted.make(""), isRenewed: false })
}) {}

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
    const letIn = Effect.fnUntraced(function* <A, E, R>(
      httpEffect: Effect.Effect<A, E, R>,
      credential: Redacted.Redacted,
      judge: typeof judgePage | Effect.Effect<void> = Effect.void
    ) {
      const { url } = yield* HttpServerRequest.HttpServerRequest
      // Whoever watches the server is told how it fares also while nobody can ask the database who that is.
      const own = isScrape(url) ? yield* tokens.findOwn(credential) : undefined
      const principal = own ?? (yield* principalOf(credential))
      yield* judge
      return yield* httpEffect.pipe(
        Effect.provideService(CurrentPrincipal, principalAt(principal, url)),
        Effect.provideService(CurrentCredential, credential),
        Effect.provideService(CurrentHolder, tokens.holderOf(credential))
      )
    })
    return Authorization.of({
      bearer: (httpEffect, { credential }) => letIn(httpEffect, credential),
      // Who sends a token asks as its holder: a session beside one that is not good lets nobody in.
      cookie: (httpEffect) =>
        Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
          letIn(
            httpEffect,
            Redacted.value(bearerOf(request)) === "" ? sessionOf(request) : Redacted.make(""),
            judgePage
          )
        )
    })
  })
)

const isScrape = (url: string): boolean => /^\/metrics(?:[?#]|$)/.test(url)

/** The token after `Authorization: Bearer`; empty without one. */
export const bearerOf = ({ headers }: HttpServerRequest.HttpServerRequest): Redacted.Redacted => {
  const [scheme, token] = (headers["authorization"] ?? "").split(" ", 2)
  return Redacted.make(scheme?.toLowerCase() === "bearer" ? (token ?? "") : "")
}
