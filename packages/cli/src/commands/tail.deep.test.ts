/**
 * `tropism tail`: what is told while it happens, from where, and in what form.
 */
import { describe, expect, it } from "@effect/vitest"
import { UserId } from "@tropism/domain/ids"
import { Clock, Effect, Fiber } from "effect"
import { type FakeServer, fakeServer } from "../../testing/fake-server.ts"
import { invokeInto, until } from "../../testing/invoke.ts"
import { agent, graphEvent, id, run } from "../../testing/records.ts"

const runsPath = `/api/projects/${id("project", 1)}/runs`

/** How often a server was asked for runs. */
const looksAtRuns = (server: FakeServer): number =>
  server.requests.filter(({ line }) => line.startsWith(`GET ${runsPath}`)).length

describe("tropism tail", () => {
  it.live("tells events from a place on, and runs as they change, each in a line", () =>
    Effect.gen(function* () {
      const events = [
        graphEvent(1),
        graphEvent(2),
        graphEvent(3, {
          type: "updated",
          version: 2,
          actorType: "agent",
          actorId: id("agent", 1),
          approvedBy: UserId.make("ann"),
          changedProperties: ["license"]
        })
      ]
      const server = yield* fakeServer({
        agents: [agent(1, { name: "digest" })],
        events,
        runs: [run(1, { status: "running", completedAt: null, durationMs: null })]
      })
      const out: Array<string> = []
      const tail = yield* Effect.forkScoped(invokeInto(out, server, "tail", "--after", "1"))
      // It knows the run, too, behind its first look: at the newest runs and at each state of open ones.
      yield* until(() => out.length >= 2 && looksAtRuns(server) > 4)
      server.state.runs = [run(1, { summary: "Looked" })]
      yield* until(() => out.length >= 3)
      yield* Fiber.interrupt(tail)
      expect(out).toEqual([
        expect.stringMatching(
          `^12:00:02      2  created  ${"Package node_modules/p2 v1".padEnd(48)}  .*user local$`
        ),
        expect.stringMatching(
          `^12:00:03      3  updated  ${"Package node_modules/p3 v2".padEnd(48)}  .*agent digest, .*ann  license$`
        ),
        `12:00:02  run    licence-review        ${"Package 000000000001".padEnd(40)}  completed     1.0 s  Looked`
      ])
    })
  )

  it.live("begins now where no place is named", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ events: [graphEvent(1), graphEvent(2)] })
      const tail = yield* Effect.forkScoped(invokeInto([], server, "tail"))
      yield* until(() => server.feedBeginnings.length > 0)
      yield* Fiber.interrupt(tail)
      expect(server.feedBeginnings[0]).toBe("now")
    })
  )

  it.live("prints one JSON object per line with --json", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ events: [graphEvent(1), graphEvent(2)] })
      const out: Array<string> = []
      const tail = yield* Effect.forkScoped(invokeInto(out, server, "tail", "--after", "0", "--json"))
      yield* until(() => out.length >= 2)
      yield* Fiber.interrupt(tail)
      expect(out.map((line) => JSON.parse(line))).toEqual([
        { type: "event", event: graphEvent(1) },
        { type: "event", event: graphEvent(2) }
      ])
    })
  )

  it.live(
    "waits for a server that is not ready yet, or busy for as long as it says, and misses nothing",
    () =>
      Effect.gen(function* () {
        const server = yield* fakeServer({ runs: [run(1, { status: "running", completedAt: null })] })
        const out: Array<string> = []
        const tail = yield* Effect.forkScoped(invokeInto(out, server, "tail", "--after", "0", "--json"))
        const asked = () => looksAtRuns(server)
        yield* until(() => asked() > 4)
        for (const status of [503, 429]) {
          const body = { type: "about:blank", status, title: "Not now" }
          server.state.failing.set(runsPath, { status, body, headers: { "retry-after": "3" } })
          const before = asked()
          // A look is due at once; whoever did not heed what it is told would look twice more within two seconds.
          const askedAt = yield* Clock.currentTimeMillis
          yield* until(() => asked() > before + 1 || tail.pollUnsafe() !== undefined)
          expect([status, tail.pollUnsafe()]).toEqual([status, undefined])
          expect((yield* Clock.currentTimeMillis) - askedAt).toBeGreaterThan(2_500)
        }
        server.state.runs = [run(1)]
        server.state.failing.clear()
        yield* until(() => out.length > 0)
        yield* Fiber.interrupt(tail)
        expect(out.map((line) => JSON.parse(line).run.status)).toEqual(["completed"])
      })
  )
})
