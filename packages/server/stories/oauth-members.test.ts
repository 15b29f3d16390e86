/**
 * Foreign servers that each member signs in to: a run has the account of the member for whom it works, and of nobody else.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { newCaller } from "../testing/mcp-runs.ts"
import { newBrowser, newGuardedShop } from "../testing/oauth-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, endedRuns, make } from "../testing/story-words.ts"

const lookUp = { tool: "shop__lookup", arguments: { word: "fig" } }

const perMember = { authorization: { type: "oauth", per: "member" } }

/** A member who asks with a token of their own. */
const newMember = Effect.fnUntraced(function* (story: Story, userId: string) {
  yield* story.post("/members", { userId, role: "editor" })
  const { token } = yield* story.post("/tokens", { name: userId, userId, role: "editor" })
  const send = (method: string, path: string, body?: unknown) =>
    Effect.map(
      story.send(method, `/api/projects/${story.projectId}${path}`, body, {
        authorization: `Bearer ${token}`
      }),
      (answer) => answer.body as Json
    )
  return {
    send,
    signIn: Effect.fnUntraced(function* (server: Json) {
      const { url } = yield* send("POST", `/mcp-servers/${server.id}/sign-in`, {})
      const browser = newBrowser()
      return yield* browser.press(yield* browser.open(url))
    }),
    stateOf: (server: Json) =>
      Effect.map(send("GET", `/mcp-servers/${server.id}`), ({ signIn }) => signIn.status as string),
    callsOfRun: Effect.fnUntraced(function* (agent: Json) {
      const run = yield* send("POST", `/agents/${agent.id}/trigger`, {})
      return yield* callsOf(story, run)
    })
  }
})

/** A shop that ada (as ada@idp) and bob (as bob@idp) may sign in to; the admin has, so its tools are known. */
const newMembersShop = Effect.gen(function* () {
  const story = yield* newStoryHere
  const { guarded, identity, server } = yield* newGuardedShop(story, { definition: perMember })
  const [ada, bob] = [yield* newMember(story, "ada"), yield* newMember(story, "bob")]
  const agent = yield* newCaller(story, [lookUp])
  return { story, guarded, identity, server, ada, bob, agent }
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A server that each member signs in to", () => {
    it.effect("is called under the account of the member for whom a run works, and under no other", () =>
      Effect.gen(function* () {
        const { ada, agent, bob, guarded, identity, server } = yield* newMembersShop
        expect(yield* ada.stateOf(server)).toBe("signedOut")
        identity.habits.account = "ada@idp"
        expect(yield* ada.signIn(server)).toMatchObject({ status: 200 })
        expect([yield* ada.stateOf(server), yield* bob.stateOf(server)]).toEqual(["signedIn", "signedOut"])
        expect(yield* ada.callsOfRun(agent)).toMatchObject([{ status: "completed" }])
        // Ada's connection is open now, and it is not bob's.
        expect(yield* bob.callsOfRun(agent)).toMatchObject([
          {
            status: "failed",
            result: { reason: "signedOut", error: expect.stringContaining("is signed out: sign in first") }
          }
        ])
        identity.habits.account = "bob@idp"
        yield* bob.signIn(server)
        yield* bob.callsOfRun(agent)
        yield* ada.callsOfRun(agent)
        expect(guarded.callers()).toEqual(["ada@idp", "bob@idp", "ada@idp"])
      })
    )

    it.effect("is not called by a reaction, which says that it needs a server-wide sign-in", () =>
      Effect.gen(function* () {
        const { ada, guarded, server, story } = yield* newMembersShop
        yield* ada.signIn(server)
        const agent = yield* newCaller(story, [lookUp], {
          name: "watcher",
          triggerType: "reaction",
          reactionConfig: { objectTypes: ["Person"], events: ["created"] }
        })
        yield* make(story, "Person")
        const [run] = yield* endedRuns(story, agent, 1)
        expect(yield* callsOf(story, run)).toMatchObject([
          {
            status: "failed",
            result: {
              reason: "signedOut",
              error: expect.stringMatching(/works for nobody.*server-wide sign-in/)
            }
          }
        ])
        expect(guarded.callers()).toEqual([])
        // One run's lack is no fault of the server.
        expect((yield* story.get(`/mcp-servers/${server.id}`)).lastError).toBe(null)
        yield* story.patch(`/mcp-servers/${server.id}`, { authorization: { type: "oauth", per: "server" } })
        expect((yield* story.get(`/mcp-servers/${server.id}`)).signIn).toMatchObject({
          per: "server",
          status: "signedOut"
        })
      })
    )

    it.effect("is signed out of by one member alone, and by whoever is a member no more", () =>
      Effect.gen(function* () {
        const { ada, agent, bob, identity, server, story } = yield* newMembersShop
        yield* ada.signIn(server)
        identity.habits.account = "bob@idp"
        yield* bob.signIn(server)
        yield* bob.send("DELETE", `/mcp-servers/${server.id}/sign-in`)
        expect([yield* ada.stateOf(server), yield* bob.stateOf(server)]).toEqual(["signedIn", "signedOut"])
        expect(yield* ada.callsOfRun(agent)).toMatchObject([{ status: "completed" }])
        expect((yield* story.delete("/members/ada")).status).toBe(204)
        const left = yield* ask(
          story.access,
          `select user_id from kb.mcp_grants where project_id = '${story.projectId}' and sealed is not null`
        )
        expect(left).toEqual([["admin"]])
      })
    )

    it.effect("is called in one conversation under the account of whoever speaks", () =>
      Effect.gen(function* () {
        const { ada, agent, bob, guarded, identity, server, story } = yield* newMembersShop
        yield* ada.signIn(server)
        identity.habits.account = "bob@idp"
        yield* bob.signIn(server)
        yield* story.post("/contexts", { name: "together", agentId: agent.id })
        for (const [member, account] of [
          [ada, "ada@idp"],
          [bob, "bob@idp"]
        ] as const) {
          yield* member.send("POST", "/contexts/together/events", {
            type: "UserMessageEvent",
            content: "Go."
          })
          yield* eventually(
            Effect.sync(() => guarded.callers()),
            (callers) => callers.at(-1) === account
          )
          yield* eventually(story.get(`/runs?agentId=${agent.id}`), ({ items }) =>
            items.every(({ status }: Json) => status === "completed")
          )
        }
        expect(guarded.callers()).toEqual(["ada@idp", "bob@idp"])
      })
    )
  })
})
