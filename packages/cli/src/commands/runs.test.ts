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

describe("tropism runs", () => {
  const runs = [run(2, { status: "failed", errorMessage: "The model refused", durationMs: 61_000 }), run(1)]

  it.live("lists runs with what came of them", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ runs })
      const { out } = yield* invoke(server, "runs")
      expect(out[0]).toMatch(/^RUN +AGENT +STATUS +TRIGGER +STEPS +TOOK +AGE +SUMMARY$/)
      expect(out[1]).toMatch(/failed +created Package v1 +1 +1 min 1 s .* The model refused$/)
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
      expect(out.slice(1).map((line) => line.slice(line.indexOf("Cancelled")))).toEqual([
        "Cancelled by ada.",
        "Cancelled by ada. Half of it"
      ])
      const shown = yield* invoke(server, "runs", "show", id("run", 1))
      expect(shown.out.map((line) => line.split(/\s{2,}/))).toContainEqual(["Cancelled by", "ada"])
      const { error, exitCode } = yield* invoke(server, "run", "digest")
      expect([exitCode, error]).toEqual([1, "ada cancelled the run."])
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
      const shown = `"tropism runs show ${id("run", 1)}" shows it.`
      expect([waiting.code(), waiting.error()]).toEqual([
        130,
        `The run ${id("run", 1)} goes on without this command: ${shown}\n`
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
      expect((yield* invoke(server, "runs", "--agent", "digest")).out).toEqual(["There is no such run."])
      expect((yield* invoke(server, "runs", "--agent", "digset")).error).toBe(
        'There is no agent "digset". There are: licence-review, digest.'
      )
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
      expect(error).toMatch(/^This cannot be sent: maxSteps: /)
      expect(exitCode).toBe(2)
      expect(server.requests.filter(({ line }) => line.startsWith("POST"))).toEqual([])
    })
  )

  it.live("shows one run", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ runs })
      const { out } = yield* invoke(server, "runs", "show", id("run", 1))
      expect(out).toContain("Status   completed")
      expect((yield* invoke(server, "runs", "show", id("run", 9))).error).toBe("Not found.")
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
        "get_object (failed), create_object (pending)",
        "Now: create_object is at work"
      ])
        expect(out.join("\n")).toContain(part)
      const json = JSON.parse((yield* invoke(server, "runs", "show", id("run", 1), "--json")).out.join("\n"))
      expect(json.steps).toEqual([step])
      server.state.steps = [{ ...step, toolCalls: [] }]
      expect((yield* invoke(server, "runs", "show", id("run", 1))).out).toContain(
        "Now: the model is being asked"
      )
    })
  )

  it.live("cancels a run and says what became of it", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ runs: [run(1, { status: "running", summary: "Half of it" })] })
      const { exitCode, out } = yield* invoke(server, "runs", "cancel", id("run", 1))
      expect(exitCode).toBe(0)
      expect(out).toContain("Status   cancelled")
      expect(out).toContain("Summary  Half of it")
    })
  )

  it.live("resumes a run with what was said, and says why another is not resumed", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({
        runs: [run(1, { status: "paused", pauseReason: "stepLimit" }), run(2, { status: "running" })]
      })
      const said = ["--message", "Go on", "--max-steps", "5", "--max-cost-usd", "0.5"]
      const { exitCode, out } = yield* invoke(server, "runs", "resume", id("run", 1), ...said)
      expect([exitCode, out.includes("Status   queued")]).toEqual([0, true])
      const asked = server.requests.find(({ line }) => line.startsWith("POST"))
      expect(JSON.parse(asked?.body ?? "")).toMatchObject({ message: "Go on", maxSteps: 5, maxCostUsd: 0.5 })
      const refused = yield* invoke(server, "runs", "resume", id("run", 2))
      expect(refused.exitCode).not.toBe(0)
      expect(refused.error).toContain("The run is running already")
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
      expect(out).toContain("Summary  3 findings")
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
      refuse(500, "The server failed to do this")
      expect(yield* Fiber.join(waiting)).toEqual({
        exitCode: 1,
        out: [],
        error: `The server answered with status 500. The run ${open.id} goes on without this command: "tropism runs show ${open.id}" shows it.`
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
      expect(out).toContain("Status   completed")
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
        error: "The run failed: No key for openai"
      })
    })
  )

  it.live("refuses an input that is no JSON", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ agents })
      const { error, exitCode } = yield* invoke(server, "run", "digest", "--input", "{days")
      expect(exitCode).toBe(2)
      expect(error).toMatch(
        /^tropism: Invalid value for flag --input: .* Run "tropism run --help" to see how\.$/
      )
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
        expect(out).toEqual([
          "Agent    digest v1",
          `Event    ${id("event", 2)}`,
          "Outcome  refused",
          "Rule     selfTriggered",
          "Reason   The agent ignores its own changes."
        ])
      }
      expect((yield* invoke(server, "explain", "9", "digest")).error).toBe(
        'The feed of project "Demo" has no event 9.'
      )
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
        "created Package node_modules/p1 v1 by user local",
        "AGENT   OUTCOME  RULE           WHY",
        "awake   woke                    The event woke the agent: its run is queued.",
        "digest  refused  selfTriggered  The agent ignores its own changes."
      ])
      const asJson = yield* invoke(server, "explain", "1", "--json")
      expect(JSON.parse(asJson.out.join("\n"))).toMatchObject([
        { agentName: "digest" },
        { agentName: "awake" }
      ])
    })
  )
})
