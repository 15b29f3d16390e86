/**
 * `tropism token create` where something goes wrong behind the first of its two steps: letting somebody in.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { fakeServer, token } from "../../testing/fake-server.ts"
import { invoke, until } from "../../testing/invoke.ts"
import { launch, launcher } from "../../testing/launch.ts"
import { at, id } from "../../testing/records.ts"
import { stallingProxy } from "../../testing/stalling-proxy.ts"

const here = `/api/projects/${id("project", 1)}`

const problem = (status: number, type: string, detail: string) => ({
  status,
  body: { type: `/problems/${type}`, status, title: detail, detail }
})

const member = {
  userId: "ci",
  role: "editor",
  addedBy: "ada",
  changedBy: "ada",
  createdAt: at(0),
  updatedAt: at(0)
}

/** A server whose admin asks, where ci is no member yet and no token can be made. */
const server = fakeServer({
  failing: new Map<string, { readonly status: number; readonly body: unknown }>([
    ["/api/me", { status: 200, body: { userId: "ada", role: "admin", projectIds: null, roles: null } }],
    [`${here}/members/ci`, problem(404, "not-found", "There is no such member.")],
    [`${here}/members`, { status: 201, body: member }],
    [`${here}/tokens`, problem(404, "not-found", "Gone for good.")]
  ])
})

const create = ["token", "create", "pipeline", "--user", "ci", "--role", "editor"] as const

/** Who was let in, as what, and how to undo that. */
const letIn = 'ci .*"Demo".* editor\\b.*"tropism members remove ci"'

describe("tropism token create", () => {
  it.live("lets nobody in for a token that would have ended already", () =>
    Effect.gen(function* () {
      const fake = yield* server
      const { error, exitCode } = yield* invoke(fake, ...create, "--expires", "2020-01-01T00:00:00Z")
      expect([exitCode, error]).toEqual([2, expect.stringMatching(/--expires\b.*2020-01-01T00:00:00Z/)])
      expect(fake.requests).toEqual([])
    })
  )

  it.live("says who was let in where the token is refused", () =>
    Effect.gen(function* () {
      const { error, exitCode } = yield* invoke(yield* server, ...create)
      expect([exitCode, error]).toEqual([1, expect.stringMatching(`^Gone for good\\. ${letIn}`)])
    })
  )

  it.live("says so on Ctrl-C, too", () =>
    Effect.gen(function* () {
      const proxy = yield* stallingProxy((yield* server).url, (line) => line === `POST ${here}/tokens`)
      const making = yield* launch(launcher, [...create, "--url", proxy.url], { TROPISM_TOKEN: token })
      yield* until(() => proxy.stalled() > 0 || making.code() !== undefined)
      making.process.kill("SIGINT")
      yield* until(() => making.code() !== undefined)
      expect([making.code(), making.error()]).toEqual([
        130,
        expect.stringMatching(`^[^\n]*\\. ${letIn}[^\n]*\n$`)
      ])
    })
  )
})
