/**
 * The admin's token is what servers are started with: while one of them is there it lets in, and no longer.
 */
import { chmodSync, mkdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger, Redacted, Scope } from "effect"
import { TestClock } from "effect/testing"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { tokenLimits } from "../src/http/limits.ts"
import { type Ready, serveOn } from "../src/main.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { operatedDatabase } from "../testing/operated-database.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, storyKeys } from "../testing/platform.ts"
import { quickDataFolder } from "../testing/quick-folder.ts"
import { asTimePasses, patientDatabase } from "../testing/shared-server.ts"

const [before, after] = ["the-token-of-before", "the-token-of-after"]

/** Starts a server with this token, else with one of its data folder; it answers where, and how to stop it. */
const start = Effect.fnUntraced(function* (
  access: PostgresAccess,
  token: string | undefined,
  dataFolder = "/nonexistent"
) {
  const scope = yield* Scope.fork(yield* Scope.Scope)
  const ready = yield* Deferred.make<Ready>()
  const server = yield* serveOn(access, {
    host: "127.0.0.1",
    port: 0,
    dataFolder,
    encryptionKeys: Redacted.make(storyKeys),
    token: token === undefined ? undefined : Redacted.make(token),
    leaveNoticeMs: 0,
    onReady: (info) => Effect.asVoid(Deferred.succeed(ready, info))
  }).pipe(
    Effect.scoped,
    Effect.provide([NodeServices.layer, Logger.layer([])]),
    Effect.orDie,
    Effect.forkIn(scope)
  )
  const { loginLink, url } = yield* Effect.raceFirst(Deferred.await(ready), Fiber.join(server))
  return { url, loginLink, stop: Scope.close(scope, Exit.void) }
})

const request = (method: string, address: string, headers: Record<string, string>) =>
  Effect.promise(() => fetch(address, { method, headers, redirect: "manual" }))

/** With what status somebody is told who they are. */
const statusOf = (server: { readonly url: string }, headers: Record<string, string>) =>
  Effect.map(request("GET", `${server.url}/api/projects`, headers), ({ status }) => status)

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const cookieOf = ({ headers }: Response) => ({ cookie: headers.get("set-cookie")?.split(";", 1)[0] ?? "" })

/** The session of a browser that shows a token. */
const sessionOf = (server: { readonly url: string }, token: string) =>
  Effect.map(request("POST", `${server.url}/login`, bearer(token)), cookieOf)

/** The session of a browser that follows a link. */
const sessionBy = (link: string) => Effect.map(request("GET", link, { "sec-fetch-site": "none" }), cookieOf)

/** A link that somebody with this credential asks for. */
const linkBy = (server: { readonly url: string }, headers: Record<string, string>) =>
  Effect.promise(async () => {
    const answer = await fetch(`${server.url}/api/login-link`, {
      method: "POST",
      headers: { origin: server.url, ...headers }
    })
    return new URL((await answer.json()).url, server.url).href
  })

const at = (server: { readonly url: string }, link: string) =>
  new URL(new URL(link).pathname + new URL(link).search, server.url).href

/** Lets so many seconds pass for what servers have said of their tokens. */
const agePast = (access: PostgresAccess, seconds: number) =>
  ask(
    access,
    "update kb.api_tokens set held_at = held_at - make_interval(secs => $1) where held_at is not null",
    [seconds]
  )

const aMinute = TestClock.adjust(tokenLimits.holdIntervalMs)

describe("Requirement: a replaced token of the admin lets nobody in", () => {
  it.effect(
    "where the program has its own database, from the start with another one on, with its sessions",
    () =>
      Effect.gen(function* () {
        const access = { ...(yield* patientDatabase), embedded: true }
        const first = yield* start(access, before)
        const shown = yield* sessionOf(first, before)
        const printed = yield* sessionBy(first.loginLink)
        const asked = yield* sessionBy(yield* linkBy(first, printed))
        const unused = yield* linkBy(first, shown)
        const all = [bearer(before), shown, printed, asked]
        expect(yield* Effect.forEach(all, (each) => statusOf(first, each))).toEqual([200, 200, 200, 200])
        yield* first.stop
        const second = yield* start(access, after)
        const ours = [bearer(after), yield* sessionBy(second.loginLink)]
        expect(yield* Effect.forEach(ours, (each) => statusOf(second, each))).toEqual([200, 200])
        const late = yield* sessionBy(at(second, unused))
        expect(late).toEqual({ cookie: "" })
        expect(yield* Effect.forEach(all, (each) => statusOf(second, each))).toEqual([401, 401, 401, 401])
      })
  )

  it.effect("lets in again where a server is started with it again", () =>
    Effect.gen(function* () {
      const access = { ...(yield* patientDatabase), embedded: true }
      for (const token of [before, after, before]) {
        const server = yield* start(access, token)
        expect(yield* statusOf(server, bearer(token))).toBe(200)
        yield* server.stop
      }
      const last = yield* start(access, before)
      expect([yield* statusOf(last, bearer(before)), yield* statusOf(last, bearer(after))]).toEqual([
        200, 401
      ])
    })
  )

  it.effect("where several servers share a database, while one of them has it and five minutes longer", () =>
    Effect.gen(function* () {
      const access = { ...(yield* patientDatabase), embedded: false }
      const first = yield* start(access, before)
      const second = yield* start(access, after)
      const both = Effect.all([statusOf(second, bearer(before)), statusOf(second, bearer(after))])
      // Each says so again each minute, however long they were started ago.
      yield* agePast(access, tokenLimits.unheldKeepSeconds - 60)
      yield* aMinute
      yield* eventually(
        ask(access, "select 1 from kb.api_tokens where held_at > now() - interval '1 minute'"),
        (rows) => rows.length === 2
      )
      yield* agePast(access, tokenLimits.unheldKeepSeconds - 60)
      yield* first.stop
      yield* aMinute
      expect(yield* both).toEqual([200, 200])
      yield* agePast(access, 61)
      yield* aMinute
      yield* eventually(both, ([old]) => old === 401)
      expect(yield* both).toEqual([401, 200])
    })
  )

  it.effect("and is ended by nobody where all servers were kept from saying so", () =>
    Effect.gen(function* () {
      const access = { ...(yield* patientDatabase), embedded: false }
      const servers = [yield* start(access, before), yield* start(access, after)] as const
      const whenHeld = asTimePasses(
        5_000,
        ask(access, "select from kb.api_tokens where held_at > now() - interval '1 minute'"),
        ({ length }) => length === 2
      )
      for (let minute = 0; minute < 3; minute += 1) {
        yield* agePast(access, 60)
        yield* whenHeld
      }
      const { become } = yield* operatedDatabase(access)
      for (const statement of [
        "create table public.ended_tokens ()",
        `create function public.note_ended() returns trigger language plpgsql security definer as
         'begin insert into public.ended_tokens default values; return new; end'`,
        `create trigger note_ended after update on kb.api_tokens for each row when (new.revoked_at is not null)
         execute function public.note_ended()`
      ])
        yield* ask(access, statement)

      yield* become("connection limit 0")
      for (let minute = 0; minute < 6; minute += 1) yield* aMinute
      yield* agePast(access, 360)
      yield* become("connection limit -1")
      yield* whenHeld
      expect(yield* ask(access, "select from public.ended_tokens")).toEqual([])
      expect(yield* Effect.forEach(servers, (each) => statusOf(each, bearer(before)))).toEqual([200, 200])
      expect(yield* Effect.forEach(servers, (each) => statusOf(each, bearer(after)))).toEqual([200, 200])
    })
  )

  it.effect("a token that was issued and was given to a server once stays what it was issued as", () =>
    Effect.gen(function* () {
      const access = { ...(yield* freshDatabase), embedded: true }
      const first = yield* start(access, before)
      const issued = yield* Effect.promise(async () => {
        const answer = await fetch(`${first.url}/api/tokens`, {
          method: "POST",
          headers: { ...bearer(before), "content-type": "application/json" },
          body: JSON.stringify({ name: "a viewer", userId: "watcher", role: "viewer" })
        })
        return (await answer.json()).token as string
      })
      yield* first.stop
      const second = yield* start(access, issued)
      expect(yield* statusOf(second, bearer(issued))).toBe(200)
      const tokens = yield* request("GET", `${second.url}/api/tokens`, bearer(issued))
      expect(tokens.status).toBe(403)
      yield* second.stop
      const third = yield* start(access, after)
      expect([yield* statusOf(third, bearer(before)), yield* statusOf(third, bearer(issued))]).toEqual([
        401, 200
      ])
    })
  )
})

describe("Requirement: a token that the server makes is its owner's alone", () => {
  it.effect("with the folder that is made for it; one that was there stays as it was", () =>
    Effect.gen(function* () {
      const access = { ...(yield* freshDatabase), embedded: false }
      const folder = yield* quickDataFolder
      const [made, found] = [join(folder, "above", "data"), join(folder, "found")]
      mkdirSync(found)
      chmodSync(found, 0o750)
      const modes = []
      for (const dataFolder of [made, found]) {
        yield* (yield* start(access, undefined, dataFolder)).stop
        modes.push([dataFolder, join(dataFolder, "token")].map((path) => statSync(path).mode & 0o777))
      }
      expect(modes).toEqual([
        [0o700, 0o600],
        [0o750, 0o600]
      ])
    })
  )
})
