/**
 * Requirement: nothing waits for a wake-up that was lost longer than until the lookout's next look.
 *
 * The clock stands still, so no loop comes by itself. A loop that cannot ask where its work is
 * loses what it was woken for; what was to be done is done once the clock has gone on by one look.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { outboxLimits } from "../src/limits.ts"
import { backtestNow, beginBacktest, isBacktestOver } from "../testing/backtest-words.ts"
import { receiver, subscribing } from "../testing/mcp-receiver.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { clerk, passUntil } from "../testing/schedule-words.ts"
import { type LogLine, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { askNow, newListener } from "../testing/source-words.ts"
import { endedRuns, entriesOf, feedOf, make, runsOf, watcher } from "../testing/story-words.ts"

/** How often a loop has said that it failed. */
const failuresOf = (log: ReadonlyArray<LogLine>, loop: string) =>
  Effect.sync(
    () =>
      log.filter(({ level, message }) => level === "Error" && String(message).startsWith(`${loop} `)).length
  )

/** Does something of which a loop is told while it cannot ask what there is to do. */
const unheard = Effect.fnUntraced(function* <A, E, R>(
  loop: string,
  question: string,
  act: Effect.Effect<A, E, R>
) {
  const { access, log } = yield* SharedServer
  const before = yield* failuresOf(log, loop)
  return yield* Effect.acquireUseRelease(
    ask(access, `revoke execute on function kb.${question}() from tropism_server`),
    () => Effect.tap(act, () => eventually(failuresOf(log, loop), (count) => count > before)),
    () => ask(access, `grant execute on function kb.${question}() to tropism_server`)
  )
})

/** Is not done while the clock stands still, and is done after one look. */
const healsInTime = Effect.fnUntraced(function* <A>(look: Effect.Effect<A>, isDone: (seen: A) => boolean) {
  expect(isDone(yield* look)).toBe(false)
  yield* TestClock.adjust(outboxLimits.lookIntervalMs)
  return yield* eventually(look, isDone)
})

const isOver = (runs: ReadonlyArray<Json>): boolean =>
  runs.length === 1 && runs.every(({ completedAt }) => completedAt !== null)

/** An agent with a run in its queue of which no worker knows. */
const unheardRun = Effect.fnUntraced(function* (story: Story) {
  const agent = yield* story.post("/agents", watcher({ triggerType: "manual", reactionConfig: null }))
  const trigger = story.post(`/agents/${agent.id}/trigger?wait=false`)
  yield* unheard("Worker", "projects_with_queued_runs", trigger)
  return agent
})

/** Waits until the database's time has come to the story's waiting entries. */
const untilDue = ({ access, projectId }: Story) =>
  eventually(
    ask(
      access,
      "select from kb.agent_processing_log where project_id = $1 and status = 'pending' and due_at < clock_timestamp()",
      [projectId]
    ),
    (rows) => rows.length === 1
  )

layer(SharedServer.own)((it) => {
  describe("A lost wake-up is made up for at the next look", () => {
    it.effect("of an event that waits for its dispatch", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher())
        yield* unheard("Dispatcher", "projects_with_events", make(story, "Person"))
        yield* healsInTime(runsOf(story, agent), isOver)
      })
    )

    it.effect("of an entry that waits for its run", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const reactionConfig = { objectTypes: ["Person"], events: ["created"], debounceMs: 100 }
        const agent = yield* story.post("/agents", watcher({ reactionConfig }))
        yield* unheard("Releaser", "projects_with_waiting_entries", make(story, "Person"))
        yield* untilDue(story)
        yield* healsInTime(runsOf(story, agent), isOver)
        expect(yield* entriesOf(story, agent)).toMatchObject([{ status: "completed" }])
      })
    )

    it.effect("of a run that waits for a worker", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* unheardRun(story)
        yield* healsInTime(runsOf(story, agent), isOver)
      })
    )

    it.effect("of a run whose worker is gone", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* unheardRun(story)
        yield* ask(
          story.access,
          `update kb.agent_runs set status = 'running', started_at = now(), worker_id = 'gone', attempt_token = gen_random_uuid(),
             attempt = 1, lease_expires_at = now() where agent_id = $1`,
          [agent.id]
        )
        yield* healsInTime(runsOf(story, agent), isOver)
      })
    )

    it.effect("of a schedule, whose time nobody tells", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", clerk("0 0 1 1 *"))
        yield* passUntil(story.access, agent, new Date())
        yield* healsInTime(runsOf(story, agent), isOver)
      })
    )

    it.effect("of a foreign server that is to be asked", () =>
      Effect.gen(function* () {
        const { agent, source, story } = yield* newListener()
        source.happen("1")
        yield* askNow(story)
        yield* healsInTime(runsOf(story, agent), isOver)
      })
    )

    it.effect("of a backtest", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher())
        yield* make(story, "Person")
        yield* endedRuns(story, agent, 1)
        const begun = yield* unheard("Backtester", "projects_with_backtests", beginBacktest(story, agent))
        const over = yield* healsInTime(backtestNow(story, begun), isBacktestOver)
        expect(over.status).toBe("completed")
      })
    )

    it.effect("of an event that a subscriber is to be told", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const hook = yield* receiver()
        yield* subscribing(story, hook.url)
        yield* unheard("Deliveries", "projects_with_due_deliveries", make(story, "Person"))
        yield* feedOf(story, 1)
        yield* healsInTime(Effect.sync(hook.events), (delivered) => delivered.length === 1)
      })
    )
  })
})
