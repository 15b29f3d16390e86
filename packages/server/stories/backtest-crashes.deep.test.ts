/**
 * A backtest goes on where a server died, several servers share it, and it takes no hand from real work.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { CrashPointName } from "../src/crash-point.ts"
import { sharesOf } from "../src/runs/worker.ts"
import {
  backtestNow,
  backtestOver,
  backtestRuns,
  beginBacktest,
  isBacktestOver,
  resultsOf
} from "../testing/backtest-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { startMortal } from "../testing/mortal-servers.ts"
import { ask } from "../testing/owner-rows.ts"
import {
  eventually,
  type Json,
  newProject,
  newStory,
  scripted,
  slots,
  startServer,
  type Story,
  storyIn
} from "../testing/platform.ts"
import { couriers } from "../testing/server-connections.ts"
import { endedRuns, feedOf, make, saying, silentFor, watcher } from "../testing/story-words.ts"

const count = 12

/** A disabled agent that would set a property of each Person, and so many Persons. */
const prepared = Effect.fnUntraced(function* (story: Story, latencyMs = 0) {
  const agent = yield* story.post(
    "/agents",
    watcher({
      enabled: false,
      model: scripted([
        {
          when: "step == 0",
          latencyMs,
          calls: [
            {
              tool: "update_object",
              arguments: { objectId: "{{ input.object.id }}", properties: { team: "green" } }
            }
          ]
        },
        { say: "Done." }
      ])
    })
  )
  yield* Effect.forEach(Array.from({ length: count }), () => make(story, "Person"), { concurrency: 4 })
  yield* feedOf(story, count)
  return agent
})

/** Each event was run once, to its end, and said once what it would do. */
const expectEachOnce = Effect.fnUntraced(function* (story: Story, backtest: Json) {
  const over = yield* eventually(backtestNow(story, backtest), isBacktestOver, 60_000)
  expect(over).toMatchObject({
    status: "completed",
    events: { matched: count, chosen: count, done: count },
    report: { runs: { completed: count, failed: 0 }, newSuggestions: count }
  })
  const results = yield* resultsOf(story, over)
  expect(results.map(({ now }) => now.length)).toEqual(Array.from({ length: count }, () => 1))
  expect(new Set(results.map(({ runId }) => runId)).size).toBe(count)
  expect(yield* backtestRuns(story, over)).toHaveLength(count)
  const [kept] = yield* ask(
    story.access,
    "select count(*)::int from kb.backtest_suggestions where backtest_id = $1",
    [over.id]
  )
  expect(kept).toEqual([count])
})

/** Where the server dies, and at which passing. */
const deaths: ReadonlyArray<readonly [CrashPointName, number]> = [
  ["backtest.beforeBegun", 1],
  ["backtest.beforeQueued", 1],
  ["backtest.afterCommit", 1],
  ["tool.beforeCommit", 3],
  ["tool.afterCommit", 5],
  ["backtest.beforeQueued", 2],
  ["run.afterComplete", 7]
]

describe("A backtest whose server is killed", () => {
  it.live(
    "goes on wherever that was, and runs each event once",
    () =>
      Effect.gen(function* () {
        const access = yield* freshDatabase
        let server = yield* startMortal(access)
        const { projectId } = yield* newProject(server, access)
        const agent = yield* prepared(storyIn(server, access, projectId))
        for (const [name, passing] of deaths) {
          yield* server.dieAt(name, passing)
          const backtest = yield* beginBacktest(storyIn(server, access, projectId), agent)
          yield* server.died
          server = yield* startMortal(access)
          yield* expectEachOnce(storyIn(server, access, projectId), backtest)
        }
      }),
    600_000
  )
})

describe("Several servers", () => {
  it.live("share the runs of one backtest", () =>
    Effect.gen(function* () {
      const access = { ...(yield* freshDatabase), embedded: false }
      const here = yield* newProject(yield* startServer(access), access)
      yield* startServer(access)
      yield* eventually(couriers(access), (pids) => pids.length === 2)
      // Eight are in the queue at once, of which a server takes four: for so long the other may come and take the rest.
      const agent = yield* prepared(here, 3_000)
      const backtest = yield* beginBacktest(here, agent)
      yield* expectEachOnce(here, backtest)
      const workers = yield* ask(
        access,
        "select distinct worker_id from kb.agent_runs where backtest_id = $1",
        [backtest.id]
      )
      expect(workers).toHaveLength(2)
    })
  )
})

describe("Real work", () => {
  it.live("goes before the runs of backtests, of which a server works on a few at a time", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      const agent = yield* prepared(story, 600_000)
      const backtest = yield* beginBacktest(story, agent)
      const statuses = Effect.map(backtestRuns(story, backtest), (runs) =>
        runs.map(({ status }) => status).toSorted()
      )
      const few = sharesOf(slots).backtests
      yield* eventually(statuses, (now) => now.filter((status) => status === "running").length === few)
      const real = yield* story.post(
        "/agents",
        watcher({
          name: "real",
          model: saying("Seen."),
          reactionConfig: { objectTypes: ["Place"], events: ["created"], concurrencyStrategy: "parallel" }
        })
      )
      yield* Effect.forEach(Array.from({ length: 20 }), () => make(story, "Place"), { concurrency: 8 })
      yield* endedRuns(story, real, 20)
      const now = yield* statuses
      expect(now.filter((status) => status === "running")).toHaveLength(few)
      // The others are not even in the queue.
      expect(now.length).toBeLessThan(count)
      yield* story.post(`/agents/${agent.id}/backtests/${backtest.id}/cancel`)
    })
  )

  it.live("a kill switch holds a backtest, which goes on when it is released", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      const agent = yield* prepared(story, 50)
      expect((yield* story.ask("PUT", "/kill-switch", { stopped: true, reason: "Stop" })).status).toBe(200)
      const backtest = yield* beginBacktest(story, agent)
      const held = yield* eventually(backtestRuns(story, backtest), ({ length }) => length > 0)
      expect(new Set(held.map(({ status }) => status))).toEqual(new Set(["queued"]))
      // Whoever works for real is held as well, and the backtest does nothing meanwhile.
      expect((yield* backtestNow(story, backtest)).events.done).toBe(0)
      yield* story.ask("PUT", "/kill-switch", { stopped: false })
      yield* expectEachOnce(story, backtest)
    })
  )

  it.live("an agent that is deleted ends its backtest, and says why", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      const agent = yield* story.post("/agents", watcher({ enabled: false, model: silentFor(600_000) }))
      yield* make(story, "Person")
      yield* feedOf(story, 1)
      const backtest = yield* beginBacktest(story, agent)
      yield* eventually(backtestRuns(story, backtest), ([run]) => run?.status === "running")
      yield* story.delete(`/agents/${agent.id}`)
      expect(yield* backtestOver(story, backtest)).toMatchObject({
        status: "failed",
        detail: expect.stringMatching(/\S/)
      })
      const [run] = yield* backtestRuns(story, backtest)
      expect(run.status).toBe("cancelled")
      expect((yield* story.get(`/agents/${agent.id}/backtests`)).items).toHaveLength(1)
    })
  )
})
