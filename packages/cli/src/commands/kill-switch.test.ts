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
      expect((yield* invoke(server, "kill-switch")).out).toEqual(["The agents may work."])
      const on = yield* invoke(server, "kill-switch", "on", "--reason", "It deletes too much")
      expect(on.exitCode).toBe(0)
      expect(on.out).toEqual([
        expect.stringMatching(/^All agents of this project are stopped.*ada.*It deletes too much/)
      ])
      expect(JSON.parse((yield* invoke(server, "kill-switch", "--json")).out.join(""))).toMatchObject({
        stopped: { scope: "project", reason: "It deletes too much" }
      })
      expect((yield* invoke(server, "kill-switch", "off")).out).toEqual(["The agents may work."])
      expect(
        server.requests.filter(({ line }) => line.startsWith("PUT")).map(({ body }) => JSON.parse(body))
      ).toEqual([{ stopped: true, reason: "It deletes too much" }, { stopped: false }])
    })
  )

  it.live("stops the whole server with --server, which needs no project", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ projects: [] })
      const on = yield* invoke(server, "kill-switch", "on", "--server", "--reason", "Enough")
      expect(on.out).toEqual([expect.stringMatching(/^All agents of this server are stopped/)])
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
