/**
 * Reads the Idempotency-Key of a request, and runs keyed work once.
 *
 * A key belongs to its caller and one address. It covers the body and the query in canonical form, but not how long a caller waits.
 */
import type { Principal } from "@tropism/api/authorization"
import { replayedHeader, RequestKey } from "@tropism/api/idempotency"
import { Conflict, InvalidInput } from "@tropism/api/problems"
import { Context, Effect, Schema } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import {
  IdempotencyKeys,
  type KeyElsewhere,
  type Kept,
  type KeyedRequest,
  keyLimits,
  KeyRefused
} from "../tenancy/idempotency-keys.ts"
import { CurrentHolder } from "./authentication.ts"
import { saysText } from "./optional-body.ts"

/** The key and the fingerprint of a request, and the place of its stored result. */
export interface SaidKey extends Omit<KeyedRequest, "by"> {
  readonly keys: IdempotencyKeys["Service"]
  readonly request: HttpServerRequest.HttpServerRequest
}

/** The key of the current request; undefined where it has none or the endpoint takes none. */
export class CurrentKey extends Context.Reference<SaidKey | undefined>("@tropism/server/http/CurrentKey", {
  defaultValue: () => undefined
}) {}

const isKey = Schema.is(RequestKey)

/** Reads the header of a request; fails if it is not a valid key. */
export const readKey = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const key = headers["idempotency-key"]
  if (key === undefined || isKey(key)) return key
  return yield* wrongKey("An Idempotency-Key has 1 to 255 visible ASCII characters and no blanks")
})

/** Reads the key of a POST whose body was already validated, or is a file that its handler fingerprints. */
export const readSaidKey = Effect.fnUntraced(function* (isFile: boolean) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const key = request.method === "POST" ? yield* readKey : undefined
  if (key === undefined) return undefined
  const [path = ""] = request.url.split("?", 1)
  const search = request.url.slice(path.length)
  const query = [...new URLSearchParams(search)].filter(([name]) => name !== "wait")
  const body = isFile ? "" : yield* Effect.orDie(request.text)
  const isText = saysText(request.headers["content-type"] ?? "")
  const asked =
    body !== "" && isText
      ? [query, body, "text"]
      : [query, body === "" ? null : (JSON.parse(body) as Schema.Json)]
  return yield* saidKey({ key, route: `POST ${path}`, asked })
})

/** A key together with the place of its request's stored result. */
export const saidKey = Effect.fnUntraced(function* (said: Pick<SaidKey, "key" | "route" | "asked">) {
  const whole: SaidKey = {
    ...said,
    holder: yield* CurrentHolder,
    keys: yield* IdempotencyKeys,
    request: yield* HttpServerRequest.HttpServerRequest
  }
  return whole
})

/** Sets the fingerprint of a keyed request where the body itself is not it. */
export const asking = <A, E, R>(asked: Schema.Json, effect: Effect.Effect<A, E, R>) =>
  changing({ asked }, effect)

/** Runs a part of a request's work, which has its own row under the request's key. */
export const inPart = <A, E, R>(part: string, effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(CurrentKey, (said) => changing(said ? { route: `${said.route}#${part}` } : {}, effect))

const changing = <A, E, R>(
  change: Partial<Pick<SaidKey, "route" | "asked">>,
  effect: Effect.Effect<A, E, R>
) =>
  Effect.flatMap(CurrentKey, (said) =>
    Effect.provideService(effect, CurrentKey, said && { ...said, ...change })
  )

/** Runs a project's work in its transaction, once per Idempotency-Key where the request has one. */
export const once = Effect.fn("http.once")(function* <A, E, R>(
  { userId: by }: Principal,
  work: Effect.Effect<A, E, R>
) {
  const said = yield* CurrentKey
  return said === undefined ? yield* work : yield* told(said, said.keys.once({ ...said, by }, work))
})

/** Stores an answer that was made after the request's transaction. One that is too large is still sent, because its parts are stored. */
export const keeping = Effect.fn("http.keeping")(function* <A>({ userId: by }: Principal, made: A) {
  const said = yield* CurrentKey
  if (said === undefined) return made
  const unkept: Kept<A> = { outcome: made, isRepeat: false }
  const kept = Effect.catchIf(
    said.keys.once({ ...said, by }, Effect.succeed(made)),
    (error) => error._tag === "KeyRefused" && error.reason === "tooLarge",
    () => Effect.succeed(unkept)
  )
  return yield* told(said, kept)
})

/** Waits, without holding a connection, until no other request runs under the same key. */
export const inTurn = <A, E, R>(
  work: Effect.Effect<A, E, R>
): Effect.Effect<A, Exclude<Exclude<E, KeyElsewhere>, KeyRefused> | Conflict | InvalidInput, R> =>
  Effect.flatMap(CurrentKey, (said) =>
    said === undefined
      ? (work as Effect.Effect<A, Exclude<Exclude<E, KeyElsewhere>, KeyRefused>, R>)
      : saying(said, said.keys.inTurn(said, work))
  )

/** Like `once`, for work outside any project. */
export const onceOnServer = Effect.fn("http.onceOnServer")(function* <A, E, R>(
  { userId: by }: Principal,
  work: Effect.Effect<A, E, R>
) {
  const said = yield* CurrentKey
  return said === undefined
    ? yield* work
    : yield* told(said, said.keys.inTurn(said, said.keys.onceOnServer({ ...said, by }, work)))
})

/** The stored result of an earlier request; undefined while there is none. */
export const recalled = Effect.fn("http.recalled")(function* ({ userId: by }: Principal) {
  const said = yield* CurrentKey
  if (said === undefined) return undefined
  return yield* told(
    said,
    Effect.map(said.keys.recall({ ...said, by }), (outcome) => ({
      outcome,
      isRepeat: outcome !== undefined
    }))
  )
})

/** The result of a request, with a header on the answer that marks a replay. */
const told = <A, E, R>(said: SaidKey, kept: Effect.Effect<Kept<A>, E | KeyRefused, R>) =>
  Effect.flatMap(saying(said, kept), ({ isRepeat, outcome }) =>
    Effect.as(isRepeat ? tellHeader(said, replayedHeader, "true") : Effect.void, outcome)
  )

/** Maps a refused key to a problem. */
const saying = <A, E, R>(said: SaidKey, kept: Effect.Effect<A, E | KeyRefused, R>) =>
  Effect.catchIf(
    kept,
    (error): error is (E | KeyRefused) & KeyRefused => error instanceof KeyRefused,
    ({ reason }) => refuse(said, reason)
  ) as Effect.Effect<A, Exclude<E, KeyRefused> | Conflict | InvalidInput, R>

const refuse = (
  said: SaidKey,
  reason: KeyRefused["reason"]
): Effect.Effect<never, Conflict | InvalidInput> => {
  switch (reason) {
    case "reused":
      return wrongKey(
        "Another request has come under this Idempotency-Key: repeat that one word for word, or choose a new key"
      )
    case "tooLarge":
      return wrongKey("What comes of this request is too much to be kept under a key: send it without one")
    case "unreadable":
      return Effect.fail(
        new Conflict({
          reason: "keyUnreadable",
          detail:
            "This was done under this Idempotency-Key, and what came of it cannot be told again: look at how things stand"
        })
      )
    case "busy":
      return Effect.andThen(
        tellHeader(said, "retry-after", String(keyLimits.retryAfterSeconds)),
        Effect.fail(
          new Conflict({
            reason: "keyBusy",
            detail: "The first request under this Idempotency-Key is still at work: send it again in a moment"
          })
        )
      )
  }
}

const wrongKey = (message: string) =>
  Effect.fail(new InvalidInput({ detail: message, errors: [{ pointer: "idempotency-key", message }] }))

const tellHeader = ({ request }: SaidKey, name: string, value: string) =>
  Effect.provideService(
    HttpEffect.appendPreResponseHandler((_request, response) =>
      Effect.succeed(HttpServerResponse.setHeader(response, name, value))
    ),
    HttpServerRequest.HttpServerRequest,
    request
  )
