/**
 * The demo: what it makes, what it leaves alone, and what is seen of it.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Fiber, Layer, Option, Redacted } from "effect"
import type { GlobalFlag } from "effect/cli"
import { type FakeServer, type FakeState, fakeServer, token } from "../testing/fake-server.ts"
import { until } from "../testing/invoke.ts"
import { agent, at, id, run, task } from "../testing/records.ts"
import { type Access, withClient } from "./access.ts"
import { findCheckout } from "./checkout.ts"
import { openDemo, prepareDemo } from "./demo.ts"
import { makeDemoFeed, modelSentence } from "./demo-feed.ts"
import { JsonFlag, QuietFlag } from "./settings.ts"
import { Screen } from "./terminal/screen.ts"

const summary = {
  type: "finished",
  created: 3,
  updated: 0,
  deleted: 0,
  unchanged: 0,
  relationshipsCreated: 2,
  relationshipsUpdated: 0,
  relationshipsDeleted: 0
}

/** Opens the demo on a fake server and keeps what is printed. */
const withDemo = <A, E>(
  state: Partial<FakeState>,
  body: (
    demo: Access,
    server: FakeServer,
    out: ReadonlyArray<string>
  ) => Effect.Effect<
    A,
    E,
    Screen | NodeServices.NodeServices | GlobalFlag.Setting.Identifier<"json" | "quiet">
  >
) =>
  Effect.gen(function* () {
    const server = yield* fakeServer(state)
    const out: Array<string> = []
    const connection = { url: server.url, token: Redacted.make(token) }
    return yield* withClient(connection, (client) =>
      Effect.flatMap(openDemo(client, connection), (demo) =>
        Option.isSome(demo) ? body(demo.value, server, out) : Effect.die("no demo")
      )
    ).pipe(
      Effect.provide(
        Layer.mergeAll(
          Screen.layerMemory(out),
          NodeServices.layer,
          ConfigProvider.layer(ConfigProvider.fromUnknown({}))
        )
      ),
      Effect.provideService(JsonFlag, false),
      Effect.provideService(QuietFlag, false)
    )
  })

describe("openDemo", () => {
  const open = (server: FakeServer) => {
    const connection = { url: server.url, token: Redacted.make(token) }
    return withClient(connection, (client) => openDemo(client, connection))
  }

  it.live("makes the project on a server that has none, once", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ projects: [] })
      yield* open(server)
      yield* open(server)
      expect(server.state.projects.map((project) => project.name)).toEqual(["Demo"])
    })
  )

  it.live("touches no server that has projects of its own", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({
        projects: [{ id: id("project", 1), name: "Shop", createdAt: at(0) }]
      })
      expect(Option.isNone(yield* open(server))).toBe(true)
      expect(server.requests.every(({ line }) => line.startsWith("GET"))).toBe(true)
    })
  )
})

describe("prepareDemo", () => {
  it.live("makes the three agents and imports the lockfile", () =>
    withDemo({ importLines: [summary] }, (demo, server, out) =>
      Effect.gen(function* () {
        yield* prepareDemo(demo, yield* findCheckout)
        expect(
          server.state.agents.map((one) => [one.name, one.triggerType, one.executionMode, one.enabled])
        ).toEqual([
          ["daily-digest", "schedule", "suggest", true],
          ["install-script-watch", "reaction", "execute", true],
          ["licence-review", "reaction", "suggest", true]
        ])
        expect(JSON.parse(server.requests.at(-1)?.body ?? "")).toHaveProperty("lockfileVersion", 3)
        expect(out.at(-1)).toMatch(/package-lock\.json\b\D*\b3\b\D*\b2\b\D*$/)
      })
    )
  )

  it.live("leaves an agent alone that a person has changed, and makes the missing ones", () =>
    withDemo(
      { importLines: [summary], agents: [agent(1, { name: "licence-review", enabled: false })] },
      (demo, server) =>
        Effect.gen(function* () {
          yield* prepareDemo(demo, yield* findCheckout)
          expect(server.state.agents.map((one) => [one.name, one.enabled])).toEqual([
            ["licence-review", false],
            ["daily-digest", true],
            ["install-script-watch", true]
          ])
        })
    )
  )
})

describe("makeDemoFeed", () => {
  it.live("tells each run that ends, the model once, and what waits when all are over", () =>
    withDemo(
      { runs: [run(1)], tasks: [task(1), task(2), task(3, { status: "completed" })] },
      (demo, server, out) =>
        Effect.gen(function* () {
          const feed = yield* makeDemoFeed(demo, {
            url: "http://here",
            loginLink: "http://here/login?code=1",
            modelSentence: () => "Model: scripted."
          })
          const running = yield* Effect.forkChild(feed.run)
          yield* until(() => server.requests.filter(({ line }) => line.includes("/runs")).length > 4)
          server.state.runs = [run(3, { status: "running" }), run(2), run(1)]
          yield* until(() => out.length >= 2)
          yield* feed.showStatus
          server.state.runs = [
            run(3, { status: "failed", errorMessage: "No answer", durationMs: 65_000 }),
            run(2),
            run(1)
          ]
          yield* until(() => out.length >= 8)
          yield* Fiber.interrupt(running)
          expect(out).toEqual([
            "Model: scripted.",
            "licence-review        Package 000000000002                      completed     1.0 s  Nothing to do.",
            "licence-review        Package 000000000003                      failed     1 min 5 s  No answer",
            "",
            expect.stringMatching(/\b2\b\D* http:\/\/here$/),
            "",
            expect.stringMatching(/ http:\/\/here\/login\?code=1$/),
            ""
          ])
        })
    )
  )
})

describe("modelSentence", () => {
  it("never calls a script a model", () => {
    const real = modelSentence("openai:gpt-4o", true)
    expect(real).toContain("openai:gpt-4o")
    const missing = modelSentence("scripted:licence-review", false)
    for (const name of ["TROPISM_MODEL", "OPENAI_API_KEY"]) expect(missing).toContain(name)
    const chosen = modelSentence("scripted:licence-review", true)
    expect(chosen).toContain("scripted:licence-review")
    expect(chosen).not.toContain("TROPISM_MODEL")
    // More is said of a script than of a model.
    expect(chosen).not.toBe(real.replace("openai:gpt-4o", "scripted:licence-review"))
  })
})
