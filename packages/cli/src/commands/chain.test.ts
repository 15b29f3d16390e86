/**
 * `tropism chain`: what is asked for, what is printed.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { fakeServer } from "../../testing/fake-server.ts"
import { invoke } from "../../testing/invoke.ts"
import { agent, graphEvent, id, run } from "../../testing/records.ts"

const loop = {
  agents: [agent(1, { name: "ping" })],
  events: [
    graphEvent(1),
    graphEvent(2, { rootEventId: id("event", 1), depth: 1, actorType: "agent", actorId: id("agent", 1) })
  ],
  runs: [run(1, { agentName: "ping", depth: 0, rootEventId: id("event", 1), summary: "Pong made." })]
}

describe("tropism chain", () => {
  it.live("shows what the chain has used, what stopped it, and each link as deep as it lies", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer(loop)
      // Event 2 lies inside the chain of event 1.
      for (const reference of ["1", "2", id("event", 1)]) {
        const { out } = yield* invoke(server, "chain", reference)
        const links = out.indexOf("") + 1
        expect(out.slice(0, links).map((line) => line.replace(/^\w+ +/, ""))).toEqual([
          id("event", 1),
          expect.stringMatching(/^1 \w+ 1$/),
          expect.stringMatching(/^1 \w+ 100$/),
          "12",
          expect.stringMatching(/^\$0\.0125 \w+ \$0\.5$/),
          "ping: 1 of at most 1.",
          ""
        ])
        expect(out.slice(links)).toEqual([
          expect.stringMatching(/^created Package node_modules\/p1 v1 .*user local$/),
          expect.stringMatching(/^ {2}created Package node_modules\/p2 v1 .*agent ping$/),
          expect.stringMatching(/^completed .*\bping: Pong made\.$/)
        ])
      }
    })
  )

  it.live("shows as many links as are wanted, and says that there are more", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer(loop)
      const { error, out } = yield* invoke(server, "chain", "1", "--limit", "2")
      expect(out.at(-1)).toMatch(/^ {2}created Package node_modules\/p2 v1 /)
      expect(error).toMatch(/\b2\b.*--limit\b/)
      const all = JSON.parse((yield* invoke(server, "chain", "1", "--json")).out.join("\n"))
      expect(all.items.map((link: { readonly type: string }) => link.type)).toEqual(["event", "event", "run"])
    })
  )
})
