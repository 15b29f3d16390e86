/**
 * Which lane a link stands in, and which arrows lead to it.
 */
import type { ChainLink } from "@tropism/api/chains-api"
import { expect, it } from "vitest"
import { chainLanes } from "./chain-lanes.ts"
import { beginningText, budgetsOf, stateText } from "./chain-words.ts"

/** Only what lanes are made of; the rest of a link says nothing here. */
const event = (id: string, fields: Record<string, unknown>): ChainLink =>
  ({ type: "event", id, event: { id, runId: null, taskId: null, ...fields } }) as never
const run = (id: string, fields: Record<string, unknown>): ChainLink =>
  ({ type: "run", id, run: { id, parentRunId: null, ...fields } }) as never
const task = (id: string, runId: string): ChainLink => ({ type: "task", id, task: { id, runId } }) as never

const ofUser = { actorType: "user", actorId: "ada" }
const ofTidy = { agentId: "a1", agentName: "tidy" }

it("puts each link into the lane of its actor and draws what led to it", () => {
  const links = [
    event("e1", ofUser),
    run("r1", { ...ofTidy, trigger: { type: "reaction", events: [{ id: "e1" }] } }),
    event("e2", { actorType: "agent", actorId: "a1", runId: "r1" }),
    task("t1", "r1"),
    event("e3", { actorType: "agent", actorId: "a1", runId: "r1", taskId: "t1" }),
    run("r2", { ...ofTidy, parentRunId: "r1", trigger: { type: "agent" } }),
    event("e4", { actorType: "system", actorId: null, runId: "elsewhere" })
  ]
  const { lanes, laneOf, arrows } = chainLanes(links)
  expect(lanes.map(({ name }) => name)).toEqual(["ada", "tidy", "Tasks for people", "The server"])
  expect(laneOf).toEqual([0, 1, 1, 2, 1, 1, 3])
  expect(arrows).toEqual([
    { from: 0, to: 1 },
    { from: 1, to: 2 },
    { from: 1, to: 3 },
    { from: 3, to: 4 },
    { from: 1, to: 5 }
  ])
})

it("keeps an agent that changed something and has no run on the page in a lane of its own", () => {
  const { lanes } = chainLanes([event("e1", { actorType: "agent", actorId: "a9", runId: "r9" })])
  expect(lanes).toEqual([{ key: "agent a9", name: "An agent", type: "agent" }])
})

it("says what is left of each budget, and which has no bound", () => {
  const use = { depth: 2, runs: 100, inputTokens: 900, outputTokens: 100, costUsd: 0.5 }
  const limits = { maxDepth: 16, maxRuns: 100, maxTokens: null, maxCostUsd: 2 }
  const counts = { events: 3, runs: 100, tasks: 0, refusals: 0 }
  expect(budgetsOf({ counts, use, limits })).toEqual([
    { name: "Agents in a row", text: "2 of 16, 14 left", share: 0.125 },
    { name: "Runs", text: "100 of 100, 0 left", share: 1 },
    { name: "Tokens", text: "1,000, without a bound", share: null },
    { name: "Money", text: "$0.50 of $2.00, $1.50 left", share: 0.25 }
  ])
  // The run with which it began is none that it led to.
  const [, runs] = budgetsOf({ counts: { ...counts, runs: 5 }, use: { ...use, runs: 4 }, limits })
  expect(runs?.text).toBe("5 in all; it led to 4 of 100, 96 left")
})

it("says what began a chain and whether it goes on", () => {
  const rootEvent = { objectType: "Person", type: "created", snapshot: { key: "ada" } } as never
  expect(beginningText({ rootEvent })).toBe("Person ada created")
  expect(beginningText({ rootEvent: null, agents: ["tidy"] })).toBe("A run of tidy")
  expect(stateText({ isStopped: true, openRuns: 2 })).toBe("goes on, stopped by a cap")
  expect(stateText({ isStopped: false, openRuns: 0 })).toBe("at rest")
})
