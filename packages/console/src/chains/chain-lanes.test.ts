/**
 * Which lane a link stands in, and which arrows lead to it.
 */
import type { ChainLink } from "@tropism/api/chains-api"
import { expect, it } from "vitest"
import { expectOneSentencePerKind } from "../../testing/sentence-kinds.ts"
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
  expect(lanes.map(({ name, type }) => (type === "person" || type === "agent" ? name : type))).toEqual([
    "ada",
    "tidy",
    "tasks",
    "system"
  ])
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
  expect(lanes).toEqual([{ key: "agent a9", name: expect.any(String), type: "agent" }])
})

/** The amounts that a sentence gives, in its order. */
const amountsIn = (text: string): ReadonlyArray<string> => text.match(/\$?\d[\d,.]*/g)?.map(trimmed) ?? []

const trimmed = (amount: string): string => amount.replace(/[,.]$/, "")

it("says what is left of each budget, and which has no bound", () => {
  const use = { depth: 2, runs: 100, inputTokens: 900, outputTokens: 100, costUsd: 0.5 }
  const limits = { maxDepth: 16, maxRuns: 100, maxTokens: null, maxCostUsd: 2 }
  const counts = { events: 3, runs: 100, tasks: 0, refusals: 0 }
  const budgets = budgetsOf({ counts, use, limits })
  expect(budgets.map(({ text, share }) => [amountsIn(text), share])).toEqual([
    [["2", "16", "14"], 0.125],
    [["100", "100", "0"], 1],
    [["1,000"], null],
    [["$0.50", "$2.00", "$1.50"], 0.25]
  ])
  expect(new Set(budgets.map(({ name }) => name)).size).toBe(4)
  // The run with which it began is none that it led to.
  const [, runs] = budgetsOf({ counts: { ...counts, runs: 5 }, use: { ...use, runs: 4 }, limits })
  expect(amountsIn(runs?.text ?? "")).toEqual(["5", "4", "100", "96"])
})

it("says what began a chain and whether it goes on", () => {
  const rootEvent = { objectType: "Person", type: "created", snapshot: { key: "ada" } } as never
  expect(beginningText({ rootEvent })).toBe("Person ada created")
  expect(beginningText({ rootEvent: null, agents: ["tidy"] })).toMatch(/\btidy\b/)
  const state = (isStopped: boolean, ...openRuns: ReadonlyArray<number>) =>
    openRuns.map((count) => stateText({ isStopped, openRuns: count }))
  expectOneSentencePerKind({
    goesOn: state(false, 1, 2),
    goesOnStopped: state(true, 1, 2),
    rests: state(false, 0),
    restsStopped: state(true, 0)
  })
  // That a cap stopped it is said beside whether it goes on.
  for (const openRuns of [0, 2]) expect(state(true, openRuns)[0]).toContain(`${state(false, openRuns)[0]}, `)
})
