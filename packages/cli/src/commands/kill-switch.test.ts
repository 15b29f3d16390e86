/**
 * `tropism kill-switch`: what it asks of the server, and what it says.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { fakeServer } from "../../testing/fake-server.ts"
import { invoke } from "../../testing/invoke.ts"

describe("tropism kill-switch", () => {
  it.live("stops the project's agents, says so, and lets them go on", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer()
      const idle = (yield* invoke(server, "kill-switch")).out
      expect(idle).toHaveLength(1)
      const on = yield* invoke(server, "kill-switch", "on", "--reason", "Too many deletions")
      expect(on.exitCode).toBe(0)
      expect(on.out).toEqual([expect.stringMatching(/\bproject\b.*\bada\b.*Too many deletions/)])
      expect(JSON.parse((yield* invoke(server, "kill-switch", "--json")).out.join(""))).toMatchObject({
        stopped: { scope: "project", reason: "Too many deletions" }
      })
      expect((yield* invoke(server, "kill-switch", "off")).out).toEqual(idle)
      expect(JSON.parse((yield* invoke(server, "kill-switch", "--json")).out.join(""))).toEqual({
        stopped: null
      })
      expect(
        server.requests.filter(({ line }) => line.startsWith("PUT")).map(({ body }) => JSON.parse(body))
      ).toEqual([{ stopped: true, reason: "Too many deletions" }, { stopped: false }])
    })
  )

  it.live("stops the whole server with --server, which needs no project", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ projects: [] })
      const on = yield* invoke(server, "kill-switch", "on", "--server", "--reason", "Enough")
      expect(on.out).toEqual([expect.stringMatching(/\bserver\b.*Enough/)])
      const changing = server.requests.map(({ line }) => line).filter((line) => !line.startsWith("GET"))
      expect(changing).toEqual(["PUT /api/kill-switch"])
    })
  )

  it.live("asks for a reason before anything is stopped", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer()
      const refused = yield* invoke(server, "kill-switch", "on")
      expect(refused.exitCode).toBe(2)
      expect(refused.error).toContain("reason")
      expect((yield* invoke(server, "kill-switch", "on", "--reason", " ")).exitCode).toBe(2)
      expect(server.requests.filter(({ line }) => line.startsWith("PUT"))).toEqual([])
    })
  )
})
