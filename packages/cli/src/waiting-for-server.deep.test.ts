/**
 * What becomes of a command that begins while the server cannot answer.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { type FakeServer, fakeServer } from "../testing/fake-server.ts"
import { invoke, invokeInto, until } from "../testing/invoke.ts"
import { agent, id, run } from "../testing/records.ts"

const here = `/api/projects/${id("project", 1)}`
const digest = agent(1, { name: "digest" })

const refuse = (server: FakeServer, path: string, status: number, headers: object = {}) =>
  server.state.failing.set(path, {
    status,
    body: { type: "about:blank", status, title: "Not now" },
    headers
  })

const asked = (server: FakeServer, path: string): number =>
  server.requests.filter(({ line }) => line.split("?", 1)[0] === `GET ${path}`).length

/** Waits until a path was asked for once more than it was refused, and holds that the command goes on. */
const askedAgain = Effect.fnUntraced(function* (
  server: FakeServer,
  path: string,
  command: Fiber.Fiber<unknown, unknown>
) {
  yield* until(() => asked(server, path) > 1 || command.pollUnsafe() !== undefined)
  expect([path, command.pollUnsafe()]).toEqual([path, undefined])
})

describe("A command that begins while the server cannot answer", () => {
  it.live("waits for it whatever it asks first, and says so", () =>
    Effect.gen(function* () {
      for (const [status, ...args] of [
        [503, "runs"],
        [502, "projects"],
        [429, "run", "digest"],
        [503, "projects", "create", "Shop"],
        [502, "kill-switch", "on", "--server", "--reason", "Quiet"]
      ] as const) {
        const server = yield* fakeServer({
          agents: [digest],
          runs: [run(1, { agentName: "digest", summary: "3 findings" })]
        })
        refuse(server, "/api/projects", status)
        const waiting = yield* Effect.forkScoped(invoke(server, ...args))
        yield* askedAgain(server, "/api/projects", waiting)
        server.state.failing.clear()
        const { error, exitCode } = yield* Fiber.join(waiting)
        expect([args, exitCode]).toEqual([args, 0])
        expect(error).toContain(server.url)
      }
    })
  )

  it.live("waits behind each question with which it begins", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({
        agents: [digest],
        runs: [run(1, { status: "running", completedAt: null })]
      })
      const first = ["/api/projects", `${here}/agents`, `${here}/events`, `${here}/runs`]
      for (const path of first) refuse(server, path, 503)
      const out: Array<string> = []
      const tail = yield* Effect.forkScoped(invokeInto(out, server, "tail"))
      for (const path of first) {
        yield* askedAgain(server, path, tail)
        server.state.failing.delete(path)
      }
      const before = asked(server, `${here}/runs`)
      // The first look asks four times; what comes behind it is a look that tells.
      yield* until(() => asked(server, `${here}/runs`) > before + 4 || tail.pollUnsafe() !== undefined)
      server.state.runs = [run(1, { summary: "Looked" })]
      yield* until(() => out.length > 0 || tail.pollUnsafe() !== undefined)
      yield* Fiber.interrupt(tail)
      expect(out.join("\n")).toContain("Looked")

      for (const [path, missing, ...args] of [
        [`${here}/agents`, "nobody", "run", "nobody"],
        [`${here}/contexts/desk`, "desk", "chat", "desk", "-m", "Hello"]
      ] as const) {
        const other = yield* fakeServer({ agents: [digest] })
        refuse(other, path, 503)
        const waiting = yield* Effect.forkScoped(invoke(other, ...args))
        yield* askedAgain(other, path, waiting)
        other.state.failing.clear()
        const { error, exitCode } = yield* Fiber.join(waiting)
        expect([args, exitCode]).toEqual([args, 1])
        expect(error.split("\n").at(-1)).toMatch(new RegExp(`\\b${missing}\\b`))
      }
    })
  )

  it.live("ends at once where it is asked to wait for longer than it would, or is refused for good", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer()
      for (const [status, headers] of [
        [429, { "retry-after": "3600" }],
        [500, {}]
      ] as const) {
        const before = asked(server, "/api/projects")
        refuse(server, "/api/projects", status, headers)
        const { error, exitCode } = yield* invoke(server, "runs")
        expect([exitCode, error]).toEqual([1, expect.stringContaining(`${status}`)])
        expect(asked(server, "/api/projects")).toBe(before + 1)
      }
    })
  )
})
