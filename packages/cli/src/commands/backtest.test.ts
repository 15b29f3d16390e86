/**
 * `tropism backtest`: what it asks of the server, and what it prints.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { fakeServer, token } from "../../testing/fake-server.ts"
import { invoke, until } from "../../testing/invoke.ts"
import { launch, launcher } from "../../testing/launch.ts"
import { agent, at, id } from "../../testing/records.ts"
import { limits } from "../limits.ts"

const backtestId = "00000000-0000-7000-8009-000000000001"

const backtest = {
  id: backtestId,
  agentId: id("agent", 1),
  agentName: "review",
  agentVersion: 3,
  status: "completed",
  days: 30,
  objectIds: null,
  maxEvents: 100,
  maxCostUsd: 1,
  from: at(0),
  to: at(1),
  events: { looked: 900, matched: 120, chosen: 100, done: 64 },
  detail: "It cost $1.00 at event 1",
  createdBy: "ada",
  createdAt: at(1),
  startedAt: at(2),
  completedAt: at(3)
}

const report = {
  agreement: { agreed: 45, judged: 50, rate: 0.9 },
  byOperation: [{ objectType: "Package", operation: "update", agreed: 45, judged: 50, rate: 0.9 }],
  edited: { asEdited: 2, asSuggested: 1, neither: 0 },
  properties: { same: 60, suggested: 80, accepted: 75, precision: 0.75, recall: 0.8 },
  newSuggestions: 7,
  undecided: 4,
  runs: { completed: 62, failed: 1, cancelled: 0, paused: 1 },
  refusals: [
    { reason: "backtest", count: 5 },
    { reason: "notPermitted", count: 2 }
  ],
  usage: { inputTokens: 1_000, outputTokens: 234 },
  costUsd: 1.0042
}

const path = `/api/projects/${id("project", 1)}/agents/${id("agent", 1)}/backtests`

const serverWith = (over: Record<string, unknown> = {}) =>
  fakeServer({
    agents: [agent(1, { name: "review" })],
    failing: new Map([
      [path, { status: 202, body: { ...backtest, status: "queued" } }],
      [`${path}/${backtestId}`, { status: 200, body: { ...backtest, ...over, report } }]
    ])
  })

describe("tropism backtest", () => {
  it.live("begins one, waits for its end and prints the report", () =>
    Effect.gen(function* () {
      const server = yield* serverWith()
      const { exitCode, out } = yield* invoke(server, "backtest", "review", "--days", "30", "--max-cost", "1")
      expect(exitCode).toBe(0)
      const printed = out.filter((line) => !line.includes(backtestId))
      expect(printed.map((line) => line.match(/\$?\d[\d.]*/g)?.join(" ") ?? "")).toEqual([
        "3",
        "64 100 120 900 30",
        "$1.00 1",
        "90 45 50",
        "2 1 0",
        "60 75 80",
        "7",
        "4",
        "5 2",
        "1 1",
        "1234",
        "$1.0042",
        "",
        "",
        "90 45 50"
      ])
      expect(printed.join("\n")).toMatchSnapshot()
      const asked = server.requests.find(({ line }) => line.startsWith("POST"))
      expect(JSON.parse(asked?.body ?? "")).toEqual({
        days: 30,
        version: null,
        maxEvents: null,
        maxCostUsd: 1
      })
    })
  )

  it.live("prints the record for a program, and fails where the backtest did", () =>
    Effect.gen(function* () {
      const server = yield* serverWith({ status: "failed", detail: "Out of order" })
      const { error, exitCode, out } = yield* invoke(server, "backtest", "review", "--json")
      expect(JSON.parse(out.join("\n"))).toMatchObject({ status: "failed", report })
      expect(exitCode).toBe(1)
      expect(error).toContain("Out of order")
    })
  )

  it.live("says which it has begun, outlives an answer that is for later, and names it on Ctrl-C", () =>
    Effect.gen(function* () {
      const server = yield* serverWith({ status: "running", completedAt: null })
      const look = `${path}/${backtestId}`
      const running = server.state.failing.get(look)
      server.state.failing.set(look, {
        status: 503,
        body: { type: "about:blank", status: 503, title: "Later" }
      })
      const looks = () => server.requests.filter(({ line }) => line === `GET ${look}`).length
      const begun = yield* launch(launcher, ["backtest", "review", "--url", server.url], {
        TROPISM_TOKEN: token
      })
      // More often than one request is made again.
      yield* until(() => looks() > limits.requestRetries + 1 || begun.code() !== undefined)
      if (running) server.state.failing.set(look, running)
      const before = looks()
      yield* until(() => looks() > before + 1 || begun.code() !== undefined)
      begun.process.kill("SIGINT")
      yield* until(() => begun.code() !== undefined)
      const named = expect.stringMatching(`${backtestId} .*"tropism backtests show review ${backtestId}"`)
      const told = begun.error().trimEnd().split("\n")
      const naming = told.filter((line) => line.includes("tropism backtests show"))
      expect([begun.code(), naming]).toEqual([130, [named, named]])
    })
  )

  it.live("refuses numbers that no backtest has before it asks", () =>
    Effect.gen(function* () {
      const server = yield* serverWith()
      const { error, exitCode } = yield* invoke(server, "backtest", "review", "--days", "91")
      expect(exitCode).not.toBe(0)
      expect(error).toContain("days")
      expect(server.requests.filter(({ line }) => line.startsWith("POST"))).toEqual([])
    })
  )
})
