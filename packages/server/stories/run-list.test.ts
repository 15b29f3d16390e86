/**
 * The list of runs: which of them are shown, page by page, and through which index they are found.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { poolLayer } from "../src/database/pool.ts"
import { pageOfRuns, type RunFilter } from "../src/runs/run-queries.ts"
import { ask } from "../testing/owner-rows.ts"
import { type Json, scripted, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { endedRuns, entriesOf, explained, make, watcher } from "../testing/story-words.ts"

/** One completed and one failed run of a person, one completed run of a reaction. */
const furnished = Effect.gen(function* () {
  const story = yield* newStoryHere
  const teller = yield* story.post("/agents", {
    name: "teller",
    prompt: "Go.",
    triggerType: "manual",
    model: scripted([{ say: "Done." }])
  })
  const broken = yield* story.post("/agents", {
    name: "broken",
    prompt: "Go.",
    triggerType: "manual",
    model: { provider: "anthropic", name: "none" }
  })
  const first = yield* story.post(`/agents/${teller.id}/trigger`)
  const second = yield* story.post(`/agents/${broken.id}/trigger`)
  const reacting = yield* story.post("/agents", watcher())
  yield* make(story, "Person")
  const [third] = yield* endedRuns(story, reacting, 1)
  return { story, teller, first, second, third }
})

const idsOf = (story: Story, query: string): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(story.get(`/runs${query}`), (page) => page.items.map((run: Json) => run.id))

layer(SharedServer.own, { excludeTestServices: true })((it) => {
  describe("The list of runs", () => {
    it.effect("names the object that woke each, and so does the processing log", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const reactionConfig = { objectTypes: ["Person"], relationshipTypes: [], events: ["created"] }
        const agent = yield* story.post("/agents", watcher({ reactionConfig }))
        const [ada, grace, nobody] = [
          yield* story.post("/objects", { type: "Person", key: "ada", properties: { name: "Ada" } }),
          yield* make(story, "Person", { name: 7, title: " ", label: "Grace" }),
          yield* make(story, "Person")
        ]
        yield* story.post("/relationships", { type: "KNOWS", fromId: ada.id, toId: grace.id })
        const runs = yield* endedRuns(story, agent, 4)
        const subjects = [
          { objectId: ada.id, type: "Person", name: "ada" },
          { objectId: grace.id, type: "Person", name: "Grace" },
          { objectId: nobody.id, type: "Person", name: null },
          null
        ]
        expect(runs.map(({ subject }) => subject)).toEqual(subjects)
        expect((yield* entriesOf(story, agent)).map(({ subject }) => subject)).toEqual(subjects)
        const [event] = (yield* story.get("/events?limit=1")).items
        expect((yield* explained(story, agent, event)).entry.subject).toEqual(subjects[0])
        const manual = yield* story.post(`/agents/${agent.id}/trigger`)
        expect(manual.subject).toBeNull()
      })
    )

    it.effect("shows those that fit every filter, newest first", () =>
      Effect.gen(function* () {
        const { first, second, story, teller, third } = yield* furnished
        const all = [third.id, second.id, first.id]
        expect(yield* idsOf(story, "")).toEqual(all)
        expect(yield* idsOf(story, "?status=failed")).toEqual([second.id])
        expect(yield* idsOf(story, "?status=completed,failed")).toEqual(all)
        expect(yield* idsOf(story, "?status=failed,failed,queued")).toEqual([second.id])
        expect(yield* idsOf(story, "?trigger=manual")).toEqual([second.id, first.id])
        expect(yield* idsOf(story, "?trigger=reaction,schedule")).toEqual([third.id])
        expect(yield* idsOf(story, "?trigger=manual&status=completed")).toEqual([first.id])
        expect(yield* idsOf(story, `?agentId=${teller.id}&status=completed,failed`)).toEqual([first.id])
        expect(yield* idsOf(story, `?agentId=${teller.id}&trigger=reaction`)).toEqual([])
        expect(yield* idsOf(story, `?from=${second.createdAt}`)).toEqual([third.id, second.id])
        expect(yield* idsOf(story, `?to=${second.createdAt}`)).toEqual([first.id])
        expect(yield* idsOf(story, `?from=${first.createdAt}&to=${third.createdAt}`)).toEqual([
          second.id,
          first.id
        ])
        expect(yield* idsOf(story, `?parentRunId=${first.id}`)).toEqual([])
        yield* ask(story.access, "update kb.agent_runs set parent_run_id = $1 where id = $2", [
          first.id,
          third.id
        ])
        expect(yield* idsOf(story, `?parentRunId=${first.id}`)).toEqual([third.id])
      })
    )

    it.effect("finds runs by the words, or beginnings of words, of what came of them", () =>
      Effect.gen(function* () {
        const { first, second, story, teller } = yield* furnished
        expect(yield* idsOf(story, "?query=don")).toEqual([first.id])
        expect(yield* idsOf(story, "?query=DONE&status=failed")).toEqual([])
        const [word = ""] = /[a-z]{8,}/.exec(second.errorMessage) ?? []
        expect(yield* idsOf(story, `?query=${word}&trigger=manual`)).toEqual([second.id])
        expect(yield* idsOf(story, "?query=done+nothing")).toEqual([])
        const summary = "ΟΔΟΣ in İstanbul"
        yield* ask(story.access, "update kb.agent_runs set summary = $1 where id = $2", [summary, second.id])
        expect(yield* idsOf(story, `?query=${encodeURIComponent(summary)}`)).toEqual([second.id])
        expect(yield* idsOf(story, "?query=%21%27")).toEqual([])
        const again = yield* story.post(`/agents/${teller.id}/trigger`)
        const page = yield* story.get("/runs?query=done&limit=1")
        expect(page.items).toMatchObject([{ id: again.id }])
        expect(yield* idsOf(story, `?query=done&limit=1&cursor=${page.nextCursor}`)).toEqual([first.id])
      })
    )

    it.effect("goes on behind a cursor with the same filters, losing and repeating nothing", () =>
      Effect.gen(function* () {
        const { first, second, story, third } = yield* furnished
        const page = yield* story.get("/runs?status=failed,completed&limit=2")
        expect(page.items.map((run: Json) => run.id)).toEqual([third.id, second.id])
        const rest = yield* story.get(`/runs?status=failed,completed&limit=2&cursor=${page.nextCursor}`)
        expect([rest.items.map((run: Json) => run.id), rest.nextCursor]).toEqual([[first.id], null])
      })
    )

    it.effect("refuses filters that say nothing, with the place", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        for (const query of [
          "status=done",
          "status=",
          "status=failed,,queued",
          "trigger=cron",
          "agentId=x",
          "parentRunId=x",
          "from=yesterday",
          "to=2026-02-31T00:00:00Z",
          `query=${"x".repeat(501)}`,
          "state=failed"
        ]) {
          const answer = yield* story.ask("GET", `/runs?${query}`)
          expectProblem(answer, 422)
          expect(answer.body.errors[0].pointer).toContain(query.slice(0, query.indexOf("=")))
        }
      })
    )

    it.effect("finds the few among the many through an index, under the server's own role", () =>
      Effect.gen(function* () {
        const { access } = yield* SharedServer
        const { first, story, teller } = yield* furnished
        yield* ask(
          access,
          `insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, trigger, context_name, depth, created_at)
           select gen_random_uuid(), $1, $2, 1, 'completed', '{"type": "schedule"}', 'run-' || n, 0, now() - make_interval(days => 1, secs => n)
           from generate_series(1, 20000) n`,
          [story.projectId, teller.id]
        )
        yield* ask(access, "vacuum analyze kb.agent_runs")
        const plan = (filter: RunFilter) =>
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            yield* sql`select set_config('tropism.project', ${story.projectId}, true)`
            const page: Statement.Fragment = pageOfRuns(sql, story.projectId as never, filter, undefined, 50)
            const rows = yield* sql<Record<string, string>>`explain (analyze, timing off, costs off) ${page}`
            return rows.map((row) => Object.values(row)[0]).join("\n")
          }).pipe((reading) =>
            Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(reading)).pipe(
              Effect.provide(
                poolLayer({ url: access.serverUrl, startupParameters: access.serverStartupParameters })
              ),
              Effect.orDie
            )
          )
        const cheap = [
          [{ status: ["failed"] }, "agent_runs_status"],
          [{ status: ["failed", "running", "queued", "paused"] }, "agent_runs_"],
          [{ trigger: ["manual"] }, "agent_runs_trigger"],
          [{ from: first.createdAt }, "agent_runs_created"],
          [{ parentRunId: first.id }, "agent_runs_children"],
          [{ query: "done" }, "agent_runs_words"]
        ] as const
        for (const [filter, index] of cheap) {
          const text = yield* plan(filter)
          expect(text).toContain(index)
          expect(text).not.toContain("Seq Scan")
          expect(text).not.toMatch(/Rows Removed by Filter: \d{3,}/)
        }
        const all = yield* plan({})
        expect(all).toMatch(/Index .*agent_runs_pkey/)
      })
    )
  })
})
