/**
 * `tropism runs`, `run` and `explain`: what is asked for, what is printed, how it ends.
 */
import type { RunStep } from "@tropism/domain/model-call"
import { describe, expect, it } from "@effect/vitest"
import { UserId } from "@tropism/domain/ids"
import { Effect, Fiber } from "effect"
import { fakeServer, token } from "../../testing/fake-server.ts"
import { invoke, until } from "../../testing/invoke.ts"
import { launch, launcher } from "../../testing/launch.ts"
import { agent, graphEvent, id, run } from "../../testing/records.ts"

const project = id("project", 1)

/** The line of a run that has its state. */
const status = (value: string) => expect.stringMatching(`^Status +${value}$`)

describe("tropism runs", () => {
  const runs = [run(2, { status: "failed", errorMessage: "Refused it all", durationMs: 61_000 }), run(1)]

  it.live("lists runs with what came of them", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ runs })
      const { out } = yield* invoke(server, "runs")
      expect(out[0]).toMatch(/^RUN +AGENT +STATUS +TRIGGER +STEPS +TOOK +AGE +SUMMARY$/)
      expect(out[1]).toMatch(/failed +created Package v1 +1 +1 min 1 s .* Refused it all$/)
    })
  )

  it.live("says who cancelled a run", () =>
    Effect.gen(function* () {
      const by = { status: "cancelled", cancelledBy: UserId.make("ada") } as const
      const server = yield* fakeServer({
        agents: [agent(1, { name: "digest" })],
        runs: [run(2, { ...by, summary: null }), run(1, { ...by, summary: "Half of it" })]
      })
      const { out } = yield* invoke(server, "runs")
      expect(out.slice(1)).toEqual([
        expect.stringMatching(/\bada\b[^a-z]*$/),
        expect.stringMatching(/\bada\b.*Half of it$/)
      ])
      const shown = yield* invoke(server, "runs", "show", id("run", 1))
      expect(shown.out).toContainEqual(expect.stringMatching(/ ada$/))
      const { error, exitCode } = yield* invoke(server, "run", "digest")
      expect([exitCode, error]).toEqual([1, expect.stringMatching(/\bada\b/)])
    })
  )

  it.live("names the run that it waits for on Ctrl-C", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({
        agents: [agent(1, { name: "digest" })],
        runs: [run(1, { status: "running", completedAt: null })]
      })
      const at = ["--url", server.url]
      const waiting = yield* launch(launcher, ["run", "digest", ...at], { TROPISM_TOKEN: token })
      const looks = () => server.requests.filter(({ line }) => line.endsWith(`/runs/${id("run", 1)}`)).length
      yield* until(() => looks() > 0 || waiting.code() !== undefined)
      waiting.process.kill("SIGINT")
      yield* until(() => waiting.code() !== undefined)
      expect([waiting.code(), waiting.error()]).toEqual([
        130,
        expect.stringMatching(`^[^\\n]*"tropism runs show ${id("run", 1)}"[^\\n]*\\n$`)
      ])
    })
  )

  it.live("marks the runs that other runs spawned", () =>
    Effect.gen(function* () {
      const spawned = { agentName: "helper", parentRunId: id("run", 1) }
      const server = yield* fakeServer({
        runs: [run(3, { ...spawned, spawnDepth: 2 }), run(2, { ...spawned, spawnDepth: 1 }), run(1)]
      })
      const { out } = yield* invoke(server, "runs")
      expect(out.slice(1).map((line) => /^\S+ {2}(.*?) {2,}completed/.exec(line)?.[1])).toEqual([
        "└└ helper",
        "└ helper",
        run(1).agentName
      ])
      yield* invoke(server, "runs", "--parent", id("run", 1))
      expect(server.requests.at(-1)?.line).toContain(`parentRunId=${id("run", 1)}`)
    })
  )

  it.live("filters by state and by the agent's name", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({
        runs,
        agents: [agent(1, { name: "licence-review" }), agent(2, { name: "digest" })]
      })
      expect((yield* invoke(server, "runs", "--status", "failed")).out).toHaveLength(2)
      expect((yield* invoke(server, "runs", "--agent", "digest")).out).toHaveLength(1)
      expect((yield* invoke(server, "runs", "--agent", "digest", "--json")).out).toEqual(["[]"])
      const unknown = yield* invoke(server, "runs", "--agent", "digset")
      expect([unknown.exitCode, unknown.error]).toEqual([
        1,
        expect.stringMatching(/"digset".*\blicence-review, digest\b/)
      ])
    })
  )

  it.live("filters by what woke them and by when they were made", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ runs })
      const [from, to] = ["2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"]
      yield* invoke(server, "runs", "--trigger", "schedule", "--from", from, "--to", to)
      const query = new URL(`http://x${server.requests.at(-1)?.line.split(" ")[1]}`).searchParams
      expect([query.get("trigger"), query.get("from"), query.get("to")]).toEqual(["schedule", from, to])
      for (const wrong of [
        ["--trigger", "moon"],
        ["--from", "yesterday"]
      ])
        expect((yield* invoke(server, "runs", ...wrong)).exitCode).not.toBe(0)
    })
  )

  it.live("says of a wrong number to resume with that it was typed wrong, and sends nothing", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({
        runs: [run(1, { status: "paused", pauseReason: "steps" } as never)]
      })
      const { error, exitCode } = yield* invoke(server, "runs", "resume", id("run", 1), "--max-steps", "-3")
      expect(error).toMatch(/\bmaxSteps: /)
      expect(exitCode).toBe(2)
      expect(server.requests.filter(({ line }) => line.startsWith("POST"))).toEqual([])
    })
  )

  it.live("shows why a run waits for its provider", () =>
    Effect.gen(function* () {
      const waitingFor = {
        reason: "provider",
        since: "2026-11-20T00:00:00.000Z",
        message: "HTTP 503: Overloaded",
        nextTryAt: "2026-11-20T00:01:00.000Z"
      } as const
      const server = yield* fakeServer({ runs: [run(1, { status: "queued", waitingFor })] })
      const { out } = yield* invoke(server, "runs", "show", id("run", 1))
      const line = out.find((each) => each.includes(waitingFor.message))
      expect(line).toContain(waitingFor.since)
      expect(line).toContain(waitingFor.nextTryAt)
    })
  )

  it.live("shows one run", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ runs })
      const { out } = yield* invoke(server, "runs", "show", id("run", 1))
      expect(out).toContainEqual(status("completed"))
      const missing = yield* invoke(server, "runs", "show", id("run", 9), "--json")
      expect([missing.exitCode, JSON.parse(missing.error).error.problem.status]).toEqual([1, 404])
    })
  )

  it.live("shows the steps of a run that is at work, with their calls and cost, and what it is at now", () =>
    Effect.gen(function* () {
      const step: RunStep = {
        number: 1,
        model: "openai:gpt-4o",
        modelCalls: [1, 2],
        flowStep: null,
        status: "answered",
        error: null,
        text: "",
        usage: { inputTokens: 1_200, outputTokens: 34 },
        costUsd: 0.0042,
        startedAt: "2026-11-20T12:00:00.000Z",
        modelMs: 1_500,
        toolCalls: [
          {
            callId: "a",
            tool: "get_object",
            status: "failed",
            startedAt: null,
            completedAt: null,
            durationMs: null
          },
          {
            callId: "b",
            tool: "create_object",
            status: "pending",
            startedAt: null,
            completedAt: null,
            durationMs: null
          }
        ]
      }
      const server = yield* fakeServer({ runs: [run(1, { status: "running" })], steps: [step] })
      const { out } = yield* invoke(server, "runs", "show", id("run", 1))
      for (const part of [
        "openai:gpt-4o (try 2)",
        "1200+34",
        "$0.0042",
        "get_object (failed), create_object (pending)"
      ])
        expect(out.join("\n")).toContain(part)
      expect(out.at(-1)).toMatch(/\bcreate_object\b(?! \()/)
      const json = JSON.parse((yield* invoke(server, "runs", "show", id("run", 1), "--json")).out.join("\n"))
      expect(json.steps).toEqual([step])
      server.state.steps = [{ ...step, toolCalls: [] }]
      const asking = (yield* invoke(server, "runs", "show", id("run", 1))).out
      expect(asking).toHaveLength(out.length)
      expect(asking.at(-1)).not.toMatch(/object/)
    })
  )

  it.live("cancels a run and says what became of it", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ runs: [run(1, { status: "running", summary: "Half of it" })] })
      const { exitCode, out } = yield* invoke(server, "runs", "cancel", id("run", 1))
      expect(exitCode).toBe(0)
      expect(out).toContainEqual(status("cancelled"))
      expect(out).toContainEqual(expect.stringMatching(/ Half of it$/))
    })
  )

  it.live("resumes a run with what was said, and says why another is not resumed", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({
        runs: [run(1, { status: "paused", pauseReason: "stepLimit" }), run(2, { status: "running" })]
      })
      const said = ["--message", "Go on", "--max-steps", "5", "--max-cost-usd", "0.5"]
      const { exitCode, out } = yield* invoke(server, "runs", "resume", id("run", 1), ...said)
      expect([exitCode, out]).toEqual([0, expect.arrayContaining([status("queued")])])
      const asked = server.requests.find(({ line }) => line.startsWith("POST"))
      expect(JSON.parse(asked?.body ?? "")).toMatchObject({ message: "Go on", maxSteps: 5, maxCostUsd: 0.5 })
      const refused = yield* invoke(server, "runs", "resume", id("run", 2), "--json")
      expect(refused.exitCode).not.toBe(0)
      expect(JSON.parse(refused.error).error.problem).toMatchObject({ status: 409, reason: "state" })
    })
  )
})

describe("tropism run", () => {
  const agents = [agent(1, { name: "digest" })]

  it.live("triggers the agent with the input and prints the run", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({
        agents,
        runs: [run(1, { agentName: "digest", summary: "3 findings" })]
      })
      const { exitCode, out } = yield* invoke(server, "run", "digest", "--input", '{"days":7}')
      expect(exitCode).toBe(0)
      expect(out).toContainEqual(expect.stringMatching(/ 3 findings$/))
      const trigger = server.requests.find(({ line }) => line.startsWith("POST"))
      expect(trigger?.line).toBe(`POST /api/projects/${project}/agents/${id("agent", 1)}/trigger?wait=false`)
      expect(JSON.parse(trigger?.body ?? "")).toEqual({ input: { days: 7 } })
    })
  )

  it.live("waits for a server that is not ready yet, and names the run where it has to end before it", () =>
    Effect.gen(function* () {
      const open = run(1, { status: "running", completedAt: null, durationMs: null })
      const server = yield* fakeServer({ agents, runs: [open] })
      const path = `/api/projects/${project}/runs/${open.id}`
      const refuse = (status: number, title: string) =>
        server.state.failing.set(path, { status, body: { type: "about:blank", status, title } })
      const asked = () => server.requests.filter(({ line }) => line === `GET ${path}`).length
      refuse(503, "Not now")
      const waiting = yield* Effect.forkScoped(invoke(server, "run", "digest"))
      yield* until(() => asked() > 1 || waiting.pollUnsafe() !== undefined)
      expect(waiting.pollUnsafe()).toBeUndefined()
      refuse(500, "Out of order")
      expect(yield* Fiber.join(waiting)).toEqual({
        exitCode: 1,
        out: [],
        error: expect.stringMatching(`\\b500\\b.*"tropism runs show ${open.id}"`)
      })
    })
  )

  it.live("waits for the run to end", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({
        agents,
        runs: [run(1, { status: "running", completedAt: null, durationMs: null })]
      })
      const looked = () =>
        server.requests.filter(({ line }) => line === `GET /api/projects/${project}/runs/${id("run", 1)}`)
          .length
      yield* Effect.forkScoped(
        Effect.sync(() => (server.state.runs = looked() < 2 ? server.state.runs : [run(1)])).pipe(
          Effect.andThen(Effect.yieldNow),
          Effect.forever
        )
      )
      const { exitCode, out } = yield* invoke(server, "run", "digest")
      expect(exitCode).toBe(0)
      expect(out).toContainEqual(status("completed"))
      expect(looked()).toBeGreaterThan(1)
    })
  )

  it.live("fails when the run failed", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({
        agents,
        runs: [run(1, { status: "failed", errorMessage: "No key for openai" })]
      })
      expect(yield* invoke(server, "run", "digest")).toMatchObject({
        exitCode: 1,
        error: expect.stringMatching(/ No key for openai$/)
      })
    })
  )

  it.live("S002-R41 triggers the agent with a text as it is", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ agents, runs: [run(1, { agentName: "digest" })] })
      for (const text of ["plain words", "7 days", "7"])
        yield* invoke(server, "run", "digest", "--input", text)
      const bodies = server.requests.filter(({ line }) => line.startsWith("POST")).map(({ body }) => body)
      expect(bodies.map((body) => JSON.parse(body ?? "").input)).toEqual(["plain words", "7 days", 7])
    })
  )

  it.live("refuses an input that begins like JSON and is none", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ agents })
      const { error, exitCode } = yield* invoke(server, "run", "digest", "--input", "{days")
      expect(exitCode).toBe(2)
      expect(error).toMatch(/^tropism: .*--input\b.*"tropism run --help"/)
      expect(server.requests).toEqual([])
    })
  )
})

describe("tropism explain", () => {
  it.live("asks by the event's id or by its place in the feed", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({
        agents: [agent(1, { name: "digest" })],
        events: [graphEvent(1), graphEvent(2)]
      })
      for (const reference of ["2", id("event", 2)]) {
        const { out } = yield* invoke(server, "explain", reference, "digest")
        expect(out.map((line) => line.replace(/^\w+ +/, ""))).toEqual([
          "digest v1",
          id("event", 2),
          "refused",
          "selfTriggered",
          "Its own change."
        ])
      }
      const { error, exitCode } = yield* invoke(server, "explain", "9", "digest")
      expect([exitCode, error]).toEqual([1, expect.stringMatching(/"Demo".*\b9\b/)])
    })
  )

  it.live("without an agent tells what the event was to each, who was woken first", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({
        agents: [agent(1, { name: "digest" }), agent(2, { name: "awake" })],
        events: [graphEvent(1)]
      })
      const { out } = yield* invoke(server, "explain", "1")
      expect(out).toEqual([
        expect.stringMatching(/^created Package node_modules\/p1 v1 .*user local$/),
        expect.stringMatching(/^AGENT +OUTCOME +RULE +REASON$/),
        expect.stringMatching(/^awake +woke {10,}Woken\.$/),
        expect.stringMatching(/^digest +refused +selfTriggered +Its own change\.$/)
      ])
      const asJson = yield* invoke(server, "explain", "1", "--json")
      expect(JSON.parse(asJson.out.join("\n"))).toMatchObject([
        { agentName: "digest" },
        { agentName: "awake" }
      ])
    })
  )
})
