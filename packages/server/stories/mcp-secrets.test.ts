/**
 * The secrets of webhook subscribers: sealed in the database, under a key that its servers share and can replace.
 */
import { describe, expect, it } from "@effect/vitest"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit, Redacted } from "effect"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { serveOn } from "../src/main.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { keptLines } from "../testing/kept-lines.ts"
import { isSignedWith, receiver, secretOf, subscribing } from "../testing/mcp-receiver.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, newProject, startServer, storyIn, storyKeys } from "../testing/platform.ts"
import { naming } from "../testing/naming.ts"

const keyOf = (letter: string): string => Buffer.alloc(32, letter).toString("base64")

/** A server with these keys, for as long as an effect takes. */
const withKeys = <A, E, R>(
  access: PostgresAccess,
  keys: string,
  tell: (doors: Effect.Success<ReturnType<typeof startServer>>) => Effect.Effect<A, E, R>
) => Effect.scoped(Effect.flatMap(startServer(access, [], undefined, undefined, keys), tell))

const kept = (access: PostgresAccess) =>
  Effect.map(
    ask(access, "select secret, previous_secret from kb.event_subscriptions order by id", []),
    (rows) =>
      rows
        .flat()
        .filter((text) => text !== null)
        .map(String)
  )

/** Why a server with these keys does not start. */
const refusal = (access: PostgresAccess, keys: string) =>
  Effect.map(
    Effect.exit(
      serveOn(access, {
        host: "127.0.0.1",
        port: 0,
        dataFolder: "/nonexistent",
        token: Redacted.make("a-token"),
        encryptionKeys: Redacted.make(keys)
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
    ),
    (exit) => (Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "it started")
  )

describe("The secret of a subscriber", () => {
  it.live("stands nowhere in the database as it is, and signs deliveries all the same", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      const hook = yield* receiver()
      for (const letter of ["a", "b"])
        yield* subscribing(story, hook.url, { delivery: { secret: secretOf(letter) } })
      const texts = yield* kept(access)
      expect(texts).toHaveLength(2)
      for (const text of texts) expect(text).toMatch(/^v1\.[0-9a-f]{12}\.[\w-]+$/)
      yield* story.post("/objects", { type: "Thing" })
      const [delivered] = yield* hook.until(1)
      if (!delivered) throw new Error("Nothing was delivered")
      expect(["a", "b", "c"].map((letter) => isSignedWith(delivered, secretOf(letter)))).toEqual([
        true,
        true,
        false
      ])
      // The same secret again is no other secret: nothing is signed with a third.
      yield* subscribing(story, hook.url, { delivery: { secret: secretOf("b") } })
      yield* story.post("/objects", { type: "Thing" })
      const again = (yield* hook.until(2))[1]
      expect(again && isSignedWith(again, secretOf("a"))).toBe(true)
    }).pipe(Effect.scoped)
  )

  it.live(
    "written down as it is by a program of before, is sealed when a server starts; so under a key that is replaced",
    () =>
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const hook = yield* receiver()
        const projectId = yield* withKeys(access, keyOf("1"), (doors) =>
          Effect.gen(function* () {
            const story = yield* newProject(doors, access)
            yield* subscribing(story, hook.url)
            return story.projectId
          })
        )
        yield* ask(
          access,
          "update kb.event_subscriptions set secret = $1, previous_secret = $2, previous_secret_until = now() + interval '1 hour'",
          [secretOf("a"), secretOf("b")]
        )
        yield* withKeys(access, keyOf("1"), () => Effect.void)
        const under = (texts: ReadonlyArray<string>) => new Set(texts.map((text) => text.split(".")[1]))
        const first = under(yield* kept(access))
        expect(first.size).toBe(1)
        yield* withKeys(access, `${keyOf("2")},${keyOf("1")}`, () => Effect.void)
        const second = under(yield* kept(access))
        expect([second.size, new Set([...first, ...second]).size]).toEqual([1, 2])
        yield* withKeys(access, keyOf("2"), (doors) =>
          Effect.gen(function* () {
            yield* storyIn(doors, access, projectId).post("/objects", { type: "Thing" })
            const [delivered] = yield* hook.until(1)
            expect(
              delivered && ["a", "b"].map((letter) => isSignedWith(delivered, secretOf(letter)))
            ).toEqual([true, true])
          })
        )
      }).pipe(Effect.scoped)
  )

  it.live("of another subscription does not open: nothing is delivered under it", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      const [mine, other] = [yield* receiver(), yield* receiver()]
      yield* subscribing(story, mine.url)
      yield* subscribing(story, other.url, { delivery: { secret: secretOf("b") } })
      yield* ask(
        access,
        "update kb.event_subscriptions set secret = (select secret from kb.event_subscriptions where url = $1) where url = $2",
        [mine.url, other.url]
      )
      yield* story.post("/objects", { type: "Thing", key: "1" })
      yield* mine.until(1)
      yield* eventually(
        ask(access, "select last_error from kb.event_subscriptions where url = $1", [other.url]),
        ([row]) => row?.[0] === "challenge_failed"
      )
      yield* subscribing(story, other.url, { delivery: { secret: secretOf("b") } })
      const [delivered] = yield* other.until(1)
      expect(delivered && isSignedWith(delivered, secretOf("b"))).toBe(true)
      expect(other.events()).toHaveLength(1)
    }).pipe(Effect.scoped)
  )
})

describe("Servers with different keys on one database", () => {
  it.live("do not start where there are secrets, and say what to do", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const hook = yield* receiver()
      const keep = (doors: Effect.Success<ReturnType<typeof startServer>>) =>
        Effect.flatMap(newProject(doors, access), (story) => subscribing(story, hook.url))
      yield* withKeys(access, keyOf("1"), keep)
      expect(yield* refusal(access, keyOf("2"))).toEqual(naming(/[0-9a-f]{12}/, "TROPISM_ENCRYPTION_KEY"))
      expect(yield* refusal(access, "no key")).toEqual(
        naming("TROPISM_ENCRYPTION_KEY", "openssl rand -base64 32")
      )
      // What was sealed with a lost key is gone, and so is the need for it.
      yield* ask(access, "delete from kb.event_subscriptions", [])
      expect((yield* withKeys(access, keyOf("2"), keep)).result).toMatchObject({ id: expect.any(String) })
    }).pipe(Effect.scoped)
  )

  it.live(
    "that started before there were any: the second takes no subscription and delivers none of the first's",
    () =>
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const { codes, logger, said } = keptLines()
        const hook = yield* receiver()
        const first = yield* newProject(
          yield* startServer(access, [], undefined, undefined, storyKeys),
          access
        )
        const second = yield* startServer(access, [logger], undefined, undefined, keyOf("2"))
        yield* subscribing(first, hook.url)
        const { error } = yield* subscribing(storyIn(second, access, first.projectId), hook.url, {
          name: "object.deleted"
        })
        expect(error).toMatchObject({ code: -32_014, data: { feature: "deliveryMode" } })
        expect(said[codes.indexOf("otherKey")]).toContain("TROPISM_ENCRYPTION_KEY")
        for (const each of ["1", "2", "3"])
          yield* storyIn(second, access, first.projectId).post("/objects", { type: "Thing", key: each })
        for (const delivered of yield* hook.until(3))
          expect(isSignedWith(delivered, secretOf("a"))).toBe(true)
      }).pipe(Effect.scoped)
  )
})
