/**
 * Requests that are made again, and those that must not be, by a scripted server and a test clock.
 */
import { describe, expect, it } from "@effect/vitest"
import { Api } from "@tropism/api/api"
import { ownNames } from "@tropism/api/idempotency"
import { Effect, type Layer, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { HttpApi } from "effect/http-api"
import { TestClock } from "effect/testing"
import {
  type Answer,
  cannotBeReached,
  refusesConnections,
  says,
  server,
  whileTimePasses
} from "../testing/scripted-server.ts"
import { makeClient } from "./client.ts"
import { limits } from "./limits.ts"
import { retrying } from "./retrying.ts"
import { mayBeDone } from "./unanswered.ts"

const busy = (retryAfter?: string, status = 503): Answer =>
  says("", { status, headers: retryAfter === undefined ? {} : { "retry-after": retryAfter } })

const done = says("done")

/** What becomes of one request, and how often it was made. */
const asked = (request: HttpClientRequest.HttpClientRequest, ...answers: ReadonlyArray<Answer>) =>
  Effect.gen(function* () {
    const scripted = server(...answers)
    const outcome = yield* Effect.result(
      Effect.flatMap(HttpClient.HttpClient, (client) => retrying(4)(client).execute(request))
    ).pipe(Effect.provide(scripted.layer), whileTimePasses)
    const status = outcome._tag === "Success" ? outcome.success.status : outcome.failure.reason._tag
    return { status, made: scripted.requests.length, requests: scripted.requests }
  })

const url = "http://tropism.test/things"
const reading = HttpClientRequest.get(url)
const writing = HttpClientRequest.post(url)

/** Every POST of the contract, with its name and its address. */
const postsOfContract: Array<{ readonly call: string; readonly path: string }> = []
HttpApi.reflect(Api, {
  onGroup: () => undefined,
  onEndpoint: ({ endpoint: { identifier, method, path }, group }) => {
    if (method === "POST") postsOfContract.push({ call: `${group.identifier}.${identifier}`, path })
  }
})

describe("retrying", () => {
  it.effect("makes a POST again under one key, whatever became of its connection", () =>
    Effect.gen(function* () {
      const { made, requests, status } = yield* asked(writing, cannotBeReached, busy(), done)
      expect([status, made]).toEqual([200, 3])
      const keys = requests.map(({ headers }) => headers["idempotency-key"])
      expect(keys[0]).toMatch(/^[0-9a-f]{32}$/)
      expect(new Set(keys).size).toBe(1)
      const another = yield* asked(writing, done)
      expect(another.requests[0]?.headers["idempotency-key"]).not.toBe(keys[0])
    })
  )

  it.effect("leaves a key that the caller chose", () =>
    Effect.gen(function* () {
      const { requests } = yield* asked(
        HttpClientRequest.setHeader(writing, "idempotency-key", "mine"),
        cannotBeReached,
        done
      )
      expect(requests.map(({ headers }) => headers["idempotency-key"])).toEqual(["mine", "mine"])
    })
  )

  it.effect("never makes again what might then be done twice, unless nothing of it was done", () =>
    Effect.gen(function* () {
      for (const request of [HttpClientRequest.patch(url), HttpClientRequest.delete(url)]) {
        expect(yield* asked(request, cannotBeReached, done)).toMatchObject({
          status: "TransportError",
          made: 1
        })
        expect(yield* asked(request, busy(), done)).toMatchObject({ status: 503, made: 1 })
        expect(yield* asked(request, busy("1", 429), done)).toMatchObject({ status: 200, made: 2 })
      }
      const flowing = HttpClientRequest.bodyStream(writing, Stream.make(new Uint8Array(1)))
      expect(yield* asked(flowing, cannotBeReached, done)).toMatchObject({ made: 1 })
    })
  )

  it.effect("gives no key to what takes none, and never makes it again by itself", () =>
    Effect.gen(function* () {
      expect(postsOfContract.filter(({ call }) => call in ownNames)).toHaveLength(
        Object.keys(ownNames).length
      )
      for (const { call, path } of postsOfContract) {
        const request = HttpClientRequest.post(`http://tropism.test${path.replaceAll(/:\w+/g, "any")}?name=x`)
        const takesKey = !(call in ownNames)
        for (const answer of [cannotBeReached, busy(), busy("1", 429), busy(undefined, 502)]) {
          const { made, requests } = yield* asked(request, answer, done)
          const isKeyed = requests[0]?.headers["idempotency-key"] !== undefined
          expect({ call, made, isKeyed }).toEqual({
            call,
            made: takesKey ? 2 : 1,
            isKeyed: takesKey
          })
        }
      }
    })
  )

  it.effect("never asks a refusal again", () =>
    Effect.gen(function* () {
      for (const status of [400, 401, 403, 404, 409, 413, 422, 500]) {
        expect(yield* asked(writing, says("{}", { status }), done)).toMatchObject({ status, made: 1 })
        expect(yield* asked(reading, says("{}", { status }), done)).toMatchObject({ status, made: 1 })
      }
    })
  )

  it.effect("waits for its own earlier attempt that is still at work under the key", () =>
    Effect.gen(function* () {
      const { made, status } = yield* asked(writing, cannotBeReached, busy("1", 409), done)
      expect([status, made]).toEqual([200, 3])
    })
  )

  it.effect("comes back no sooner than the server asks, and not at all where that is too late", () =>
    Effect.gen(function* () {
      const scripted = server(busy("7", 429), done)
      const ask = Effect.flatMap(HttpClient.HttpClient, (client) => retrying(4)(client).execute(reading))
      yield* Effect.forkChild(Effect.provide(ask, scripted.layer))
      yield* TestClock.adjust(6_999)
      expect(scripted.requests).toHaveLength(1)
      yield* TestClock.adjust(1 + limits.retryFirstMs)
      expect(scripted.requests).toHaveLength(2)
      const late = String(limits.retryAfterLongestMs / 1_000 + 1)
      expect(yield* asked(reading, busy(late, 429), done)).toMatchObject({ status: 429, made: 1 })
    })
  )

  it.effect("gives up after so many times", () =>
    Effect.gen(function* () {
      const never = Array.from({ length: 30 }, () => cannotBeReached)
      expect(yield* asked(reading, ...never)).toMatchObject({ status: "TransportError", made: 5 })
    })
  )

  it.effect("tells that a connection broke, and not that the server was gone or busy afterwards", () =>
    Effect.gen(function* () {
      for (const last of [refusesConnections, busy()]) {
        const told = (request: HttpClientRequest.HttpClientRequest) =>
          Effect.flip(
            Effect.flatMap(HttpClient.HttpClient, (client) =>
              Effect.filterOrFail(retrying(4)(client).execute(request), () => false)
            )
          ).pipe(Effect.provide(server(cannotBeReached, last, last, last, last).layer), whileTimePasses)
        expect([mayBeDone(yield* told(writing)), mayBeDone(yield* told(reading))]).toEqual([true, false])
      }
    })
  )

  it.effect("takes an answer that does not begin for none", () =>
    Effect.gen(function* () {
      const silent: Answer = () => Effect.never
      expect(yield* asked(reading, silent, done)).toMatchObject({ status: 200, made: 2 })
    })
  )
})

describe("makeClient", () => {
  it.effect("retries where it is told to, and by itself never", () =>
    Effect.gen(function* () {
      const healthy = says('{"status":"ok","version":"1"}', {
        headers: { "content-type": "application/json" }
      })
      const ask = (retries: number | undefined, layer: Layer.Layer<HttpClient.HttpClient>) =>
        Effect.flatMap(makeClient({ url: "http://tropism.test", retries }), (client) =>
          client.system.health({})
        ).pipe(Effect.provide(layer), whileTimePasses)
      const patient = server(cannotBeReached, healthy)
      expect(yield* ask(2, patient.layer)).toEqual({ status: "ok", version: "1" })
      const single = server(cannotBeReached, healthy)
      yield* Effect.flip(ask(undefined, single.layer))
      expect(single.requests).toHaveLength(1)
    })
  )
})
