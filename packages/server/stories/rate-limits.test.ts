/**
 * Whoever asks too often is told when to come back, and takes nothing from anybody else.
 */
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { TestClock } from "effect/testing"
import { type Answer, type Doors, newProject, startServer } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { patientDatabase } from "../testing/shared-server.ts"

/** A server whose clock stands still, and how often one token may ask in a second. */
const serverWith = Effect.fn("serverWith")(function* (rateLimit: string) {
  const access = yield* patientDatabase
  const environment = ConfigProvider.layer(
    ConfigProvider.fromEnv({ env: rateLimit === "" ? {} : { TROPISM_RATE_LIMIT: rateLimit } })
  )
  const doors = yield* Effect.provide(startServer(access), environment)
  return yield* newProject(doors, access)
})

const quotaOf = ({ headers }: Answer) => [headers.get("ratelimit-policy"), headers.get("ratelimit")]

const askMe = (doors: Doors, authorization?: string) =>
  doors.send("GET", "/api/me", undefined, authorization === undefined ? {} : { authorization })

/** Asks until it is refused, at most so often, and answers how often it was not. */
const untilRefused = Effect.fn("untilRefused")(function* (
  ask: Effect.Effect<Answer>,
  most: number,
  granted: number
) {
  for (let times = 0; times < most; times++) {
    const answer = yield* ask
    if (answer.status === 429) return { times, answer }
    expect(answer.status).toBe(granted)
  }
  return yield* Effect.die(new Error(`It was not refused in ${most} requests`))
})

describe("A token that asks too often", () => {
  it.effect("is told when to come back, and is heard again then; another token is heard all the time", () =>
    Effect.gen(function* () {
      const story = yield* serverWith("10")
      yield* story.post("/members", { userId: "other", role: "editor" })
      const other = yield* story.post("/tokens", { name: "other", userId: "other" })
      const asOther = askMe(story, `Bearer ${other.token}`)
      expect((yield* asOther).status).toBe(200)
      yield* TestClock.adjust("1 minute")

      expect(quotaOf(yield* askMe(story))).toEqual(['"token";q=20;w=2', '"token";r=19;t=1'])
      const { answer, times } = yield* untilRefused(askMe(story), 30, 200)
      expect(times).toBe(19)
      expectProblem(answer, 429)
      expect(answer.body).toMatchObject({
        type: "/problems/too-many-requests",
        reason: "rate",
        retryAfterSeconds: 1
      })
      expect([...quotaOf(answer), answer.headers.get("retry-after")]).toEqual([
        '"token";q=20;w=2',
        '"token";r=0;t=2',
        "1"
      ])
      // Nothing of the request is done, at whichever door.
      expectProblem(yield* story.ask("POST", "/objects", { type: "Thing" }), 429)
      expectProblem(yield* story.send("POST", "/mcp", { jsonrpc: "2.0", id: 1, method: "ping" }), 429)
      const completion = yield* story.send("POST", "/v1/chat/completions", { model: "x", messages: [] })
      expect([completion.status, completion.body]).toEqual([
        429,
        { error: expect.objectContaining({ type: "rate_limit_error", code: "rate_limit_exceeded" }) }
      ])
      expect((yield* asOther).status).toBe(200)
      for (const free of ["/health", "/ready"]) {
        const open = yield* story.send("GET", free)
        expect([open.status, open.headers.get("ratelimit")]).toEqual([200, null])
      }

      yield* TestClock.adjust("1 second")
      expect((yield* story.get("/objects")).items).toEqual([])
      expect((yield* untilRefused(askMe(story), 30, 200)).times).toBe(9)
      const figures = yield* story.send("GET", "/metrics", undefined, {
        authorization: `Bearer ${other.token}`
      })
      expect(figures.status).toBe(403)
      yield* TestClock.adjust("1 second")
      const told = yield* story.send("GET", "/metrics")
      expect(told.body).toContain('tropism_rate_limited_requests_total{policy="token"} 5')
    }).pipe(Effect.scoped)
  )

  it.effect("may ask at least 500 times in a second where nobody says otherwise", () =>
    Effect.gen(function* () {
      const story = yield* serverWith("")
      yield* askMe(story)
      const [policy] = quotaOf(yield* askMe(story))
      const [, quota, seconds] = /^"token";q=(\d+);w=(\d+)$/.exec(policy ?? "") ?? []
      expect(Number(quota) / Number(seconds)).toBeGreaterThanOrEqual(500)
    }).pipe(Effect.scoped)
  )
})

describe("Whoever guesses tokens", () => {
  it.effect("is slowed down by their address, and nobody else who is known there", () =>
    Effect.gen(function* () {
      const story = yield* serverWith("1000")
      yield* askMe(story)
      let guess = 0
      const guessing = Effect.suspend(() => askMe(story, `Bearer guess-${guess++}`))
      const { answer, times } = yield* untilRefused(guessing, 200, 401)
      expect(times).toBeGreaterThan(50)
      expect(times).toBeLessThan(100)
      expectProblem(answer, 429)
      const wait = Number(answer.headers.get("retry-after"))
      expect(wait).toBeGreaterThanOrEqual(1)
      // A page that asks for no token does not vouch for one that is sent along.
      expect((yield* story.send("GET", "/docs", undefined, { authorization: "Bearer guess-x" })).status).toBe(
        429
      )
      expect((yield* askMe(story)).status).toBe(200)

      yield* TestClock.adjust(`${wait} seconds`)
      for (let times = 0; times < 5; times++)
        expect(
          quotaOf(yield* story.send("GET", "/docs", undefined, { authorization: "Bearer guess-y" }))[0]
        ).toBe('"address";q=1000;w=10')
      yield* TestClock.adjust("1 second")
      expect((yield* untilRefused(askMe(story, "Bearer guess-y"), 60, 401)).times).toBeLessThan(25)
    }).pipe(Effect.scoped)
  )

  it.effect("is not forgotten where a webhook asks for another secret than theirs", () =>
    Effect.gen(function* () {
      const story = yield* serverWith("1000")
      yield* askMe(story)
      expect(quotaOf(yield* askMe(story))[0]).toBe('"token";q=2000;w=2')
      const hook = Effect.suspend(() => story.send("POST", `/api/hooks/${crypto.randomUUID()}`, {}))
      for (let times = 0; times < 30; times++) expect((yield* hook).status).toBe(401)
      const [policy, left] = quotaOf(yield* askMe(story))
      expect(policy).toBe('"token";q=2000;w=2')
      // Guesses at webhooks are dear, and their own.
      expect(Number(/r=(\d+)/.exec(left ?? "")?.[1])).toBeLessThan(2_000 - 30 * 5)
    }).pipe(Effect.scoped)
  )

  it.effect("does not go on by a token that was good once", () =>
    Effect.gen(function* () {
      const story = yield* serverWith("1000")
      yield* story.post("/members", { userId: "other", role: "editor" })
      const other = yield* story.post("/tokens", { name: "other", userId: "other" })
      const asOther = askMe(story, `Bearer ${other.token}`)
      yield* asOther
      expect(quotaOf(yield* asOther)[0]).toBe('"token";q=2000;w=2')
      yield* story.delete(`/tokens/${other.id}`)
      expect((yield* asOther).status).toBe(401)
      expect(quotaOf(yield* asOther)[0]).toBe('"address";q=1000;w=10')
      expect((yield* untilRefused(asOther, 200, 401)).times).toBeLessThan(100)
    }).pipe(Effect.scoped)
  )
})
