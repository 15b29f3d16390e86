/**
 * Whoever operates the server sees in one scrape what waits for people, what was asked, and how the program fares.
 */
import { expect, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { eventSource } from "../testing/mcp-event-source.ts"
import { receiver, subscribing } from "../testing/mcp-receiver.ts"
import { calls, says, wiredStory, wireModel } from "../testing/model-words.ts"
import { ask, holding, lockOf } from "../testing/owner-rows.ts"
import { eventually, newStory, type Story } from "../testing/platform.ts"
import { parsePrometheus, sumOf } from "../testing/prometheus.ts"
import { clerk, passUntil, periodsBefore } from "../testing/schedule-words.ts"
import { addSource, listener, listening } from "../testing/source-words.ts"
import { feedOf, make, watcher } from "../testing/story-words.ts"

const scrape = (story: Story) =>
  Effect.map(story.send("GET", "/metrics"), (answer) => {
    expect(answer.status).toBe(200)
    return parsePrometheus(answer.body)
  })

it.live("a scrape counts requests by route and status, and no address that a client invents", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const story = yield* newStory
      yield* story.send("GET", "/metrics")
      const before = yield* scrape(story)
      yield* story.ask("GET", "/objects")
      yield* story.ask("GET", "/objects/01990000-0000-7000-8000-000000000001")
      yield* story.send("GET", "/api/invented-by-a-client")
      yield* story.send("GET", "/metrics", undefined, { authorization: "" })
      const after = yield* scrape(story)
      const requests = (labels: Readonly<Record<string, string>>) =>
        sumOf(after, "tropism_http_requests_total", labels) -
        sumOf(before, "tropism_http_requests_total", labels)
      const objects = "/api/projects/:projectId/objects"
      expect(requests({ method: "GET", route: objects, status: "200" })).toBe(1)
      expect(requests({ method: "GET", route: `${objects}/:objectId`, status: "404" })).toBe(1)
      expect(requests({ route: "/metrics", status: "401" })).toBe(1)
      const text = (yield* story.send("GET", "/metrics")).body
      expect(text).not.toContain("invented-by-a-client")
      expect(text).not.toContain(story.projectId)
      const durations = after.get("tropism_http_request_duration_seconds")?.samples
      expect(durations?.get(`tropism_http_request_duration_seconds_count{route="${objects}"}`)).toBe(1)
      expect(sumOf(after, "process_resident_memory_bytes")).toBeGreaterThan(10_000_000)
      expect(sumOf(after, "tropism_live_subscribers")).toBe(0)
      // It is looked at from time to time, and not between any two scrapes.
      yield* eventually(scrape(story), (now) => sumOf(now, "tropism_event_loop_lag_seconds") > 0)
    })
  )
)

it.live(
  "a scrape tells of dead letters, of tasks that wait, and for how long an event is being handled",
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { story } = yield* wiredStory([
          calls({
            id: "c1",
            tool: "create_object",
            arguments: { type: "Note", properties: {}, reasoning: "To keep it" }
          }),
          says("I proposed a note.")
        ])
        const proposer = { ...watcher(), name: "proposer", triggerType: "manual", executionMode: "suggest" }
        const agent = yield* story.post("/agents", { ...proposer, tools: ["graph.*"], model: wireModel })
        yield* story.post(`/agents/${agent.id}/trigger`)
        yield* story.post("/agents", watcher())
        yield* story.ask("PUT", "/kill-switch", { stopped: true, reason: "To look" })
        yield* make(story, "Person")
        yield* make(story, "Person")
        yield* feedOf(story, 2)
        // No sweep finds stuck meanwhile what seems to be handled for an hour.
        yield* holding(story.access, lockOf(`stuck ${story.projectId}`))
        yield* ask(
          story.access,
          `with numbered as (select id, row_number() over (order by id) as place from kb.agent_processing_log where project_id = $1)
         update kb.agent_processing_log entry
         set status = case place when 1 then 'failed' else 'processing' end, started_at = now() - interval '1 hour',
           dead_lettered_at = case place when 1 then now() end
         from numbered where numbered.id = entry.id`,
          [story.projectId]
        )
        const seen = yield* scrape(story)
        expect(sumOf(seen, "tropism_dead_letters")).toBe(1)
        expect(sumOf(seen, "tropism_pending_tasks")).toBe(1)
        expect(sumOf(seen, "tropism_oldest_processing_entry_seconds")).toBeGreaterThanOrEqual(3_600)
      })
    )
)

it.live(
  "a scrape tells how long writes waited for their runs, what was taken over, and when sweeps came to their end",
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { story } = yield* wiredStory([says("Seen.")])
        const agent = yield* story.post("/agents", { ...watcher(), model: wireModel })
        yield* make(story, "Person")
        const lag = (suffix: string, seen: Effect.Success<ReturnType<typeof scrape>>) =>
          seen.get("tropism_reaction_lag_seconds")?.samples.get(`tropism_reaction_lag_seconds_${suffix}`) ?? 0
        const first = yield* eventually(scrape(story), (seen) => lag("count", seen) === 1)
        expect(lag("sum", first)).toBeGreaterThan(0)
        expect(lag("sum", first)).toBeLessThan(60)
        expect(sumOf(first, "tropism_leases_taken_over_total")).toBe(0)

        // Its worker seems to have died before the run ended; another run waits for a person.
        yield* ask(
          story.access,
          `update kb.agent_runs set status = 'running', completed_at = null, attempt_token = gen_random_uuid(),
             lease_expires_at = now() - interval '1 second' where agent_id = $1`,
          [agent.id]
        )
        yield* ask(
          story.access,
          `insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, pause_reason, trigger, context_name, depth)
           values (gen_random_uuid(), $1, $2, 1, 'paused', 'stepLimit', '{"type": "manual"}', 'run-p', 0)`,
          [story.projectId, agent.id]
        )
        const then = yield* eventually(
          scrape(story),
          (seen) => sumOf(seen, "tropism_leases_taken_over_total") === 1
        )
        // A run that is taken over waited for a worker, and not for its first one.
        expect(lag("count", then)).toBe(1)
        expect(sumOf(then, "tropism_live_runs", { status: "paused" })).toBe(1)
        expect(sumOf(then, "tropism_waiting_runs", { reason: "stepLimit" })).toBe(1)
        expect(sumOf(then, "tropism_waiting_runs")).toBe(1)
        const nowSeconds = yield* Effect.map(Clock.currentTimeMillis, (ms) => ms / 1_000)
        const swept = sumOf(then, "tropism_sweep_last_success_seconds", { sweep: "The log's retention" })
        expect(Math.abs(nowSeconds - swept)).toBeLessThan(600)
      })
    )
)

it.live(
  "a scrape tells which of the server's own loops breaks, of what project it does not, and what is late by it",
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const story = yield* newStory
        const faults = (seen: Effect.Success<ReturnType<typeof scrape>>) =>
          sumOf(seen, "tropism_loop_faults_total", { loop: "Scheduler" })
        yield* eventually(scrape(story), (seen) => seen.has("tropism_loop_faults_total"))
        const before = yield* scrape(story)
        expect(sumOf(before, "tropism_overdue_schedule_seconds")).toBe(0)
        const agent = yield* story.post("/agents", clerk("*/5 * * * *"))
        yield* ask(story.access, "alter table kb.agent_runs add constraint none_due check (due_at is null)")
        const due = periodsBefore(agent.nextFireAt, 2, 300_000)
        yield* passUntil(story.access, agent, due)
        const seen = yield* eventually(scrape(story), (now) => faults(now) > faults(before))
        expect(sumOf(seen, "tropism_overdue_schedule_seconds")).toBeGreaterThan(300)
        expect((yield* story.send("GET", "/metrics")).body).not.toContain(story.projectId)
      })
    )
)

it.live("a scrape tells how many agents disabled themselves, and not of those that somebody disabled", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const story = yield* newStory
      const unreachable = { provider: "anthropic", name: "none" }
      const manual = watcher({ triggerType: "manual", model: unreachable, disableAfterFailures: 1 })
      const agent = yield* story.post("/agents", manual)
      yield* story.post("/agents", { ...manual, name: "put-away", enabled: false })
      expect(sumOf(yield* scrape(story), "tropism_disabled_agents")).toBe(0)
      yield* story.post(`/agents/${agent.id}/trigger`)
      yield* eventually(scrape(story), (seen) => sumOf(seen, "tropism_disabled_agents") === 1)
    })
  )
)

it.live(
  "a scrape tells which subscriptions are suspended, which sources nobody asks, and how large all is",
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const story = yield* newStory
        const [hook, source] = [yield* receiver(), yield* eventSource()]
        yield* subscribing(story, hook.url)
        yield* addSource(story, source.url)
        yield* story.post("/agents", listener())
        yield* listening(story)
        const before = yield* scrape(story)
        const figures = ["tropism_suspended_subscriptions", "tropism_overdue_source_seconds"] as const
        for (const figure of figures) expect(sumOf(before, figure)).toBe(0)
        yield* ask(story.access, "update kb.event_subscriptions set status = 'suspended'")
        // Nobody can claim it any more.
        yield* ask(
          story.access,
          "alter table kb.mcp_event_sources add constraint no_claims check (claim_token is null) not valid"
        )
        yield* ask(
          story.access,
          "update kb.mcp_event_sources set due_at = now() - interval '1 hour', claim_token = null, claimed_until = null"
        )
        const seen = yield* scrape(story)
        expect(sumOf(seen, "tropism_suspended_subscriptions")).toBe(1)
        expect(sumOf(seen, "tropism_overdue_source_seconds")).toBeGreaterThanOrEqual(3_600)
        expect(sumOf(seen, "tropism_database_bytes")).toBeGreaterThan(1_000_000)
        const claimed = "update kb.mcp_event_sources set claimed_until ="
        // Where one is asked the others have to wait for their turn.
        yield* ask(story.access, `${claimed} now() + interval '1 minute'`)
        expect(sumOf(yield* scrape(story), "tropism_overdue_source_seconds")).toBe(0)
        yield* ask(story.access, `${claimed} null`)
        const path = `/api/projects/${story.projectId}/kill-switch`
        yield* story.send("PUT", path, { stopped: true, reason: "It is held" })
        const stopped = yield* scrape(story)
        expect(sumOf(stopped, "tropism_overdue_source_seconds")).toBe(0)
        expect(sumOf(stopped, "tropism_kill_switches", { scope: "project" })).toBe(1)
        expect(sumOf(stopped, "tropism_kill_switches")).toBe(1)
      })
    )
)

it.live("a scrape asks nothing for which the server's role would need a right of its own", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const story = yield* newStory
      yield* ask(
        story.access,
        "do $$ begin execute format('revoke connect on database %I from public', current_database()); end $$"
      )
      expect(sumOf(yield* scrape(story), "tropism_database_bytes")).toBeGreaterThan(1_000_000)
    })
  )
)
