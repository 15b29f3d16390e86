/**
 * Sign-ins that several servers renew at once, and servers that are killed in the middle of one: it works, or it says that it does not.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { newCaller, outcomesOf } from "../testing/mcp-runs.ts"
import { startMortal } from "../testing/mortal-servers.ts"
import {
  type AuthorizationServer,
  linkTo,
  newBrowser,
  newGuardedShop,
  signIn
} from "../testing/oauth-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, startServer, type Story, storyIn } from "../testing/platform.ts"
import { callsOf } from "../testing/story-words.ts"

const lookUp = { tool: "shop__lookup", arguments: { word: "fig" } }

/** Something that is held until it is let go. */
const newGate = () => {
  let open: () => void = () => undefined
  const held = new Promise<void>((resolve) => {
    open = resolve
  })
  return { held, open: () => open() }
}

/** Lets the access token be over. */
const endAccess = (story: Story) =>
  ask(story.access, "update kb.mcp_grants set expires_at = now() - interval '1 second'")

/** Lets the claim of a server that died run out: nobody waits half a minute in a story. */
const endClaim = (story: Story) =>
  ask(story.access, "update kb.mcp_grants set claimed_until = now() - interval '1 second'")

/** Waits for the first request of a kind at the token endpoint that satisfies. */
const tokenRequest = (
  identity: AuthorizationServer,
  grant: string,
  satisfies: (status: number | undefined) => boolean = () => true
) =>
  eventually(
    Effect.sync(() => identity.of(grant).map(({ status }) => status)),
    (statuses) => statuses.length > 0 && satisfies(statuses.at(-1))
  )

const ended = (story: Story, run: Json) =>
  eventually(story.get(`/runs/${run.id}`), ({ status }) => status !== "queued" && status !== "running")

describe("Two servers that want to renew one token at once", () => {
  it.live("ask once between them, and both go on with what came of it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const [here, there] = [yield* startServer(access), yield* startServer(access)]
        const story = yield* newProject(here, access)
        const other = storyIn(there, access, story.projectId)
        const { guarded, identity } = yield* newGuardedShop(story)
        const agent = yield* newCaller(story, [lookUp])
        // Both are connected, so that nothing but the token is to be had.
        yield* story.post(`/agents/${agent.id}/trigger`, {})
        yield* other.post(`/agents/${agent.id}/trigger`, {})
        for (let round = 1; round <= 3; round += 1) {
          const gate = newGate()
          identity.habits.hold = gate.held
          yield* endAccess(story)
          const begun: Array<Json> = []
          for (const doors of [story, other, story, other, story, other])
            begun.push(yield* doors.post(`/agents/${agent.id}/trigger?wait=false`, {}))
          yield* tokenRequest(identity, "refresh_token", (status) => status === 200)
          let looks = 0
          yield* eventually(
            Effect.sync(() => (looks += 1)),
            (times) => times > 20
          )
          gate.open()
          for (const run of begun) {
            yield* ended(story, run)
            expect(yield* callsOf(story, run)).toMatchObject([{ status: "completed" }])
          }
          expect(identity.of("refresh_token")).toHaveLength(round)
        }
        expect(guarded.callers().every((account) => account === "ada@idp")).toBe(true)
      })
    )
  )
})

describe("A server that is killed", () => {
  it.live("while it exchanges the code leaves nobody signed in, and the link is of no more use", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const server = yield* startMortal(access)
        const made = yield* newProject(server, access)
        const { identity, server: shop } = yield* newGuardedShop(made, { isSignedIn: false })
        const gate = newGate()
        identity.habits.hold = gate.held
        const browser = newBrowser()
        const page = yield* browser.open(yield* linkTo(made, shop))
        const pressing = yield* Effect.forkScoped(Effect.exit(browser.press(page)))
        yield* tokenRequest(identity, "authorization_code", (status) => status === 200)
        yield* server.kill
        yield* server.died
        gate.open()
        yield* Fiber.join(pressing)
        identity.habits.hold = undefined
        const next = yield* startMortal(access)
        const story = storyIn(next, access, made.projectId)
        expect((yield* story.get(`/mcp-servers/${shop.id}`)).signIn.status).toBe("signedOut")
        const again = yield* browser.press({ ...page, url: page.url.replace(made.url, story.url) })
        expect(again).toMatchObject({ status: 400, text: expect.stringContaining("used already") })
        expect(yield* signIn(story, shop)).toMatchObject({ status: 200 })
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
      })
    )
  )

  for (const isReplaced of [false, true])
    it.live(
      isReplaced
        ? "after the authorization server has replaced its refresh token ends the sign-in, which says why"
        : "before the authorization server has heard of it leaves a sign-in that another server renews",
      () =>
        Effect.scoped(
          Effect.gen(function* () {
            const access = yield* freshDatabase
            const server = yield* startMortal(access)
            const made = yield* newProject(server, access)
            const { identity, server: shop } = yield* newGuardedShop(made)
            const agent = yield* newCaller(made, [lookUp])
            const gate = newGate()
            if (isReplaced) identity.habits.hold = gate.held
            else identity.habits.instead = () => new Promise(() => {})
            yield* endAccess(made)
            const run = yield* made.post(`/agents/${agent.id}/trigger?wait=false`, {})
            yield* tokenRequest(identity, "refresh_token", (status) => !isReplaced || status === 200)
            yield* server.kill
            yield* server.died
            gate.open()
            Object.assign(identity.habits, { hold: undefined, instead: undefined })
            yield* endClaim(made)
            yield* ask(access, "update kb.agent_runs set lease_expires_at = now() where status = 'running'")
            const next = yield* startMortal(access)
            const story = storyIn(next, access, made.projectId)
            yield* ended(story, run)
            const [call] = yield* callsOf(story, run)
            const { signIn: state } = yield* story.get(`/mcp-servers/${shop.id}`)
            if (isReplaced) {
              expect(call).toMatchObject({ status: "failed", result: { reason: "signedOut" } })
              expect(state).toMatchObject({
                status: "signedOut",
                detail: expect.stringContaining("invalid_grant")
              })
              yield* signIn(story, shop)
              expect(yield* outcomesOf(story, [lookUp], { name: "again" })).toMatchObject([
                { status: "completed" }
              ])
            } else {
              expect(call).toMatchObject({ status: "completed" })
              expect(state.status).toBe("signedIn")
            }
          })
        )
    )
})
