/**
 * A backtest sees the graph as it was, and nothing that it does reaches anybody.
 *
 * What "nothing" is, is every row of every table but those of backtests, and
 * those by which a run is worked on, where they are the backtest's own.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { backtested, backtestRuns, beginBacktest, resultsOf } from "../testing/backtest-words.ts"
import { addServer, newDiary, program } from "../testing/mcp-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, scripted, type Story } from "../testing/platform.ts"
import { rawUpdate } from "../testing/raw-writes.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  calling,
  callsOf,
  change,
  endedRuns,
  feedOf,
  make,
  runsOf,
  saying,
  silentFor,
  suggestionsOf,
  watcher
} from "../testing/story-words.ts"
import { reject } from "../testing/suggestion-words.ts"
import { by, expectRefused } from "../testing/wall-words.ts"

/** The rows of the backtest itself, and what its model was shown, which is kept once for all who are shown the same. */
const own = new Set(["backtests", "backtest_events", "backtest_suggestions", "tool_lists"])

/** What a run's rows say whose run they are of. */
const isReal: Readonly<Record<string, string>> = {
  agent_runs: "backtest_id is null",
  budgets:
    "scope <> 'backtest' and scope_id not in (select id from kb.agent_runs where backtest_id is not null)",
  contexts: "is_remembered",
  context_events:
    "context_name not in (select context_name from kb.agent_runs where backtest_id is not null)",
  tool_calls: "run_id is null or run_id not in (select id from kb.agent_runs where backtest_id is not null)",
  model_calls: "run_id not in (select id from kb.agent_runs where backtest_id is not null)"
}

/** A digest of every table's rows. It leaves out when a token was last used: the story's own requests change that. */
const everything = Effect.fnUntraced(function* (story: Story) {
  const tables = yield* ask(
    story.access,
    "select table_name from information_schema.tables where table_schema = 'kb' and table_type = 'BASE TABLE' order by 1"
  )
  const digests: Record<string, unknown> = {}
  for (const [name] of tables) {
    const table = String(name)
    if (own.has(table)) continue
    const [row] = yield* ask(
      story.access,
      `select count(*)::int || ':' || md5(coalesce(string_agg(kept::text, '|' order by kept::text), ''))
       from kb.${table} row cross join lateral (select to_jsonb(row) - 'last_used_at' as kept) as without
       where ${isReal[table] ?? "true"}`
    )
    digests[table] = row?.[0]
  }
  return digests
})

/** Every tool there is, with arguments that fit. */
const allCalls = [
  { tool: "search_objects", arguments: {} },
  { tool: "get_object", arguments: { objectId: "{{ input.object.id }}" } },
  { tool: "neighbors", arguments: { objectId: "{{ input.object.id }}" } },
  {
    tool: "create_object",
    arguments: { type: "Note", properties: { by: "backtest" }, suggest: false, confidence: 1 }
  },
  {
    tool: "update_object",
    arguments: { objectId: "{{ input.object.id }}", properties: { a: 1 }, confidence: 1 }
  },
  { tool: "delete_object", arguments: { objectId: "{{ input.object.id }}", confidence: 1 } },
  {
    tool: "create_relationship",
    arguments: {
      type: "KNOWS",
      fromId: "{{ input.object.id }}",
      toId: "{{ input.object.properties.friend }}"
    }
  },
  {
    tool: "update_relationship",
    arguments: { relationshipId: "{{ input.object.properties.tie }}", properties: { a: 1 } }
  },
  { tool: "delete_relationship", arguments: { relationshipId: "{{ input.object.properties.tie }}" } },
  { tool: "spawn_agent", arguments: { agent: "helper", task: "Do it for me" } },
  { tool: "list_agents", arguments: {} },
  { tool: "ask_user", arguments: { question: "May I?" } },
  { tool: "shop__charge", arguments: { amount: 3 } },
  { tool: "add_task", arguments: { title: "Mine" } },
  { tool: "list_tasks", arguments: {} },
  { tool: "approve", arguments: {} }
]

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Nothing that a backtest does reaches anybody", () => {
    it.effect("a model that calls every tool there is leaves every row of everybody as it was", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        yield* addServer(story, program(diary))
        const [friend, other] = [yield* make(story, "Thing"), yield* make(story, "Thing")]
        const tie = yield* story.post("/relationships", { type: "NEAR", fromId: friend.id, toId: other.id })
        yield* story.post("/agents", {
          name: "helper",
          prompt: "Help",
          triggerType: "manual",
          executionMode: "execute",
          tools: ["graph.*"],
          model: calling({ tool: "create_object", arguments: { type: "Note", properties: {} } })
        })
        // Others who listen: whatever is written wakes them.
        const listener = yield* story.post(
          "/agents",
          watcher({
            name: "listener",
            model: saying("Heard."),
            reactionConfig: {
              objectTypes: [],
              relationshipTypes: [],
              events: ["created", "updated", "deleted"],
              concurrencyStrategy: "parallel"
            }
          })
        )
        yield* Effect.forEach([1, 2, 3], () => make(story, "Person", { friend: friend.id, tie: tie.id }))
        const agent = yield* story.post(
          "/agents",
          watcher({
            name: "disobedient",
            tools: ["graph.*", "run.*", "tasks.*", "shop.*"],
            subAgents: ["*"],
            model: scripted([{ when: "step == 0", calls: allCalls }, { say: "Done." }])
          })
        )
        yield* feedOf(story, 6)
        yield* endedRuns(story, listener, 3)
        const before = yield* everything(story)
        const backtest = yield* backtested(story, agent)
        expect(yield* everything(story)).toEqual(before)
        expect(yield* diary.called).toEqual([])
        expect(backtest).toMatchObject({ status: "completed", events: { chosen: 3, done: 3 } })
        expect(backtest.report.runs.completed).toBe(3)
        expect(backtest.report.newSuggestions).toBe(18)
        expect(backtest.report.refusals).toContainEqual({ reason: "backtest", count: 18 })
        const [run] = yield* backtestRuns(story, backtest)
        const calls = new Map((yield* callsOf(story, run)).map((call) => [call.tool, call]))
        for (const tool of [
          "spawn_agent",
          "list_agents",
          "ask_user",
          "shop__charge",
          "add_task",
          "list_tasks"
        ])
          expect(calls.get(tool)).toMatchObject({ status: "refused", result: { reason: "backtest" } })
        for (const { tool } of allCalls.slice(3, 9))
          expect(calls.get(tool)).toMatchObject({ status: "completed", result: { status: "suggested" } })
        expect((yield* story.get("/tasks")).items).toEqual([])
        expect(yield* runsOf(story, agent)).toEqual([])
      })
    )

    it.effect("the database itself refuses a write of a backtest's run, whoever forgot to", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: silentFor(600_000), enabled: false }))
        const { id: objectId } = yield* make(story, "Person")
        yield* feedOf(story, 1)
        const backtest = yield* beginBacktest(story, agent)
        const [run] = yield* eventually(
          backtestRuns(story, backtest),
          ([first]) => first?.status === "running"
        )
        yield* expectRefused(story, { directly: rawUpdate({ objectId, ...by(agent, run) }) }, "a backtest's")
        yield* story.post(`/agents/${agent.id}/backtests/${backtest.id}/cancel`)
      })
    )

    it.effect("an agent that fails again and again in a backtest is not disabled by it, nor forgiven", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const broken = {
          provider: "scripted",
          name: "story",
          script: { rules: [{ fault: { kind: "error", message: "Broken" } }] }
        }
        const agent = yield* story.post("/agents", watcher({ disableAfterFailures: 2, model: broken }))
        yield* Effect.forEach([1, 2, 3], () => make(story, "Thing"))
        yield* make(story, "Person")
        yield* endedRuns(story, agent, 1)
        const streak = () =>
          ask(story.access, "select consecutive_failures, enabled from kb.agents where id = $1", [agent.id])
        expect(yield* streak()).toEqual([[1, true]])
        expect((yield* backtested(story, agent)).report.runs.failed).toBe(1)
        expect(yield* streak()).toEqual([[1, true]])
        yield* story.patch(`/agents/${agent.id}`, { model: saying("Seen.") })
        const forgiving = yield* backtested(story, agent)
        expect(forgiving.report.runs.completed).toBe(1)
        expect(yield* streak()).toEqual([[1, true]])
      })
    )

    it.effect("what is permitted is what the version under test permits", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({
            enabled: false,
            capabilities: { canUpdateObjects: false },
            model: calling(
              {
                tool: "update_object",
                arguments: { objectId: "{{ input.object.id }}", properties: { a: 1 } }
              },
              { tool: "create_object", arguments: { type: "Note", properties: { a: 1 } } }
            )
          })
        )
        yield* make(story, "Person")
        yield* feedOf(story, 1)
        yield* story.patch(`/agents/${agent.id}`, { capabilities: { canCreateObjects: false } })
        const first = yield* backtested(story, agent, { version: 1 })
        const [result] = yield* resultsOf(story, first)
        expect(result.now.map((now: { change: { type: string } }) => now.change.type)).toEqual(["create"])
        expect(first.report.refusals).toEqual([{ reason: "notPermitted", count: 1 }])
        const second = yield* backtested(story, agent)
        const [other] = yield* resultsOf(story, second)
        expect(other.now.map((now: { change: { type: string } }) => now.change.type)).toEqual(["update"])
      })
    )

    it.effect("its runs do not count among those that an agent may have, and nobody resumes them", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({
            maxPendingRuns: 1,
            maxSteps: 1,
            model: scripted([{ calls: [{ tool: "search_objects", arguments: {} }] }]),
            enabled: false
          })
        )
        yield* Effect.forEach([1, 2], () => make(story, "Person"))
        yield* feedOf(story, 2)
        const stopped = yield* backtested(story, agent)
        expect(stopped).toMatchObject({ status: "completed", report: { runs: { paused: 2 } } })
        const [run] = yield* backtestRuns(story, stopped)
        expect(run).toMatchObject({ status: "paused", pauseReason: "stepLimit" })
        expect((yield* story.ask("POST", `/runs/${run.id}/resume`, {})).status).toBe(409)
        yield* story.patch(`/agents/${agent.id}`, {
          enabled: true,
          maxSteps: null,
          model: silentFor(600_000)
        })
        const long = yield* story.post(`/agents/${agent.id}/backtests`, { days: 1 })
        yield* eventually(backtestRuns(story, long), ([first]) => first?.status === "running")
        const real = yield* story.ask("POST", `/agents/${agent.id}/trigger?wait=false`, {})
        expect(real.status).toBe(202)
        yield* story.post(`/agents/${agent.id}/backtests/${long.id}/cancel`)
        yield* story.post(`/runs/${real.body.id}/cancel`)
      })
    )
  })

  describe("Each event of a backtest sees the graph as of that moment", () => {
    it.effect("what was changed, related or deleted since is as it was, for all three tools that read", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const anna = yield* make(story, "Friend", { name: "anna", mood: "calm" })
        const gone = yield* make(story, "Friend", { name: "gone", mood: "calm" })
        const tie = yield* story.post("/relationships", { type: "KNOWS", fromId: anna.id, toId: gone.id })
        const person = yield* make(story, "Person", { friend: anna.id })
        yield* feedOf(story, 4)
        // All of this is after the event.
        yield* change(story, anna, { mood: "angry" })
        const late = yield* make(story, "Friend", { name: "late", mood: "calm" })
        yield* story.post("/relationships", { type: "KNOWS", fromId: anna.id, toId: late.id })
        yield* story.delete(`/objects/${gone.id}`)
        yield* change(story, person, { friend: late.id })
        const agent = yield* story.post(
          "/agents",
          watcher({
            enabled: false,
            model: calling(
              { tool: "get_object", arguments: { objectId: anna.id } },
              { tool: "get_object", arguments: { objectId: gone.id } },
              { tool: "get_object", arguments: { objectId: late.id } },
              { tool: "neighbors", arguments: { objectId: anna.id } },
              { tool: "search_objects", arguments: { type: "Friend" } },
              { tool: "search_objects", arguments: { query: "calm" } },
              {
                tool: "search_objects",
                arguments: { where: [{ property: "mood", op: "eq", value: "angry" }] }
              },
              // Judged as of then as well: this one was there, and that one was not.
              { tool: "update_object", arguments: { objectId: gone.id, properties: { mood: "merry" } } },
              { tool: "update_object", arguments: { objectId: late.id, properties: { mood: "merry" } } },
              { tool: "update_object", arguments: { objectId: anna.id, properties: { mood: "calm" } } },
              { tool: "delete_relationship", arguments: { relationshipId: tie.id } }
            )
          })
        )
        const backtest = yield* backtested(story, agent)
        const [run] = yield* backtestRuns(story, backtest)
        const results = (yield* callsOf(story, run)).map(({ result }) => result)
        expect(results[0]).toMatchObject({ id: anna.id, version: 1, properties: { mood: "calm" } })
        expect(results[1]).toMatchObject({ id: gone.id, properties: { name: "gone" } })
        expect(results[2]).toMatchObject({ reason: "notFound" })
        expect(results[3].objects.map(({ id }: { id: string }) => id)).toEqual([gone.id])
        expect(results[3].relationships.map(({ id }: { id: string }) => id)).toEqual([tie.id])
        const namesOf = (found: { items: ReadonlyArray<{ properties: { name: string } }> }) =>
          found.items.map(({ properties }) => properties.name).toSorted()
        expect([namesOf(results[4]), results[4].total]).toEqual([["anna", "gone"], 2])
        expect(namesOf(results[5])).toEqual(["anna", "gone"])
        expect(results[6]).toEqual({ items: [], total: 0 })
        expect(results[7]).toEqual({ status: "suggested" })
        expect(results[8]).toMatchObject({ reason: "notFound" })
        expect(results[9]).toMatchObject({ status: "unchanged" })
        expect(results[10]).toEqual({ status: "suggested" })
      })
    )

    it.effect("what was rejected since is not told to a run of a backtest", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({
            executionMode: "suggest",
            model: calling({
              tool: "update_object",
              arguments: { objectId: "{{ input.object.id }}", properties: { team: "green" } }
            })
          })
        )
        yield* make(story, "Person")
        yield* endedRuns(story, agent, 1)
        const [task] = yield* suggestionsOf(story, 1)
        yield* reject(story, task, { reason: "A secret of the future" })
        const backtest = yield* backtested(story, agent)
        const [run] = yield* backtestRuns(story, backtest)
        const log = yield* story.get(`/runs/${run.id}/events?limit=200`)
        expect(JSON.stringify(log)).not.toContain("A secret of the future")
        expect(backtest.report.agreement).toMatchObject({ agreed: 0, judged: 1 })
      })
    )
  })
})
