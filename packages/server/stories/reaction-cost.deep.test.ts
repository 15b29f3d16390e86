/**
 * What a reaction costs follows what it touches, not what there is.
 *
 * A thousand agents that do not match and a twenty thousand log entries are
 * put there by the owner of the database. PostgreSQL counts the rows that are
 * looked at in each table; what the server does for a few events must not come
 * near the number of rows that are there.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { countedReads } from "../testing/rows-read.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { change, isOver, make, saying, watcher } from "../testing/story-words.ts"

const growing = [
  "agent_processing_log",
  "agent_runs",
  "agents",
  "agent_reactions",
  "graph_events",
  "contexts"
]

/** Agents that listen to types that nobody makes. */
const fillAgents = (story: Story, template: Json, count: number) =>
  ask(
    story.access,
    `with made as (
      insert into kb.agents (id, project_id, name, version, prompt, flow_type, tools, trigger_type, timezone, reaction_config, execution_mode,
        enabled, enabled_at)
      select gen_random_uuid(), project_id, 'other-' || n, 1, prompt, flow_type, tools, trigger_type, timezone,
        jsonb_set(reaction_config, '{objectTypes}', '["Other"]'), execution_mode, true, enabled_at
      from kb.agents, generate_series(1, $2::int) n where id = $1 returning id, project_id
    )
    insert into kb.agent_reactions (project_id, object_type, event_type, agent_id) select project_id, 'Other', 'created', id from made`,
    [template.id, count]
  )

/** Entries with runs that have ended, of the agent itself and of objects of their own; by their ids they are the oldest. */
const fillLog = (story: Story, agent: Json, count: number) =>
  ask(
    story.access,
    `with event as (
      insert into kb.graph_events (id, project_id, entity_type, object_type, entity_id, version, type, changed_properties, snapshot,
        actor_type, root_event_id, depth, dispatched_at, created_at)
      select id, $1::uuid, 'graphObject', 'Person', gen_random_uuid(), 1, 'created', '{}', '{}', 'user', id, 0, now(), now() - interval '1 day'
      from (select overlay(gen_random_uuid()::text placing '00000000' from 1)::uuid as id from generate_series(1, $3::int)) made returning id, entity_id, root_event_id
    ), run as (
      insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, trigger, context_name, root_event_id, depth, created_at)
      select id, $1::uuid, $2::uuid, 1, 'completed', '{"type": "reaction"}', 'run-' || id, root_event_id, 0, now() - interval '1 day' from event
    ), context as (
      insert into kb.contexts (project_id, name, agent_id) select $1::uuid, 'run-' || id, $2::uuid from event
    )
    insert into kb.agent_processing_log (id, project_id, agent_id, graph_object_id, object_version, event_type, event_id, run_id, exclusive,
      status, created_at)
    select id, $1::uuid, $2::uuid, entity_id, 1, 'created', id, id, true, 'completed', now() - interval '1 day' from event`,
    [story.projectId, agent.id, count]
  )

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Cost of a reaction", () => {
    it.effect("1,000 agents that do not match and 20,000 log entries behind are not read", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const events = ["created", "updated"]
        const rule = { objectTypes: ["Person"], events, rateLimit: { maxRuns: 1_000, perSeconds: 60 } }
        const rules = [
          { concurrencyStrategy: "queue" },
          { concurrencyStrategy: "latest", debounceMs: 30 },
          { concurrencyStrategy: "skip", batchSize: 5, maxWaitMs: 30 },
          { concurrencyStrategy: "parallel" }
        ]
        const agents = yield* Effect.forEach(rules, (reaction, index) =>
          story.post(
            "/agents",
            watcher({
              name: `agent-${index}`,
              model: saying("Seen."),
              reactionConfig: { ...rule, ...reaction }
            })
          )
        )
        yield* fillAgents(story, agents[0], 1_000)
        yield* fillLog(story, agents[0], 20_000)
        yield* ask(story.access, "analyze")
        const round = (name: string) =>
          Effect.gen(function* () {
            const person = yield* make(story, "Person", { name })
            yield* change(story, person, { name: `${name}!` }, { name: `${name}?` })
            for (const agent of agents)
              yield* eventually(
                story.get(`/agents/${agent.id}/processing-log?limit=10`),
                ({ items }: { items: ReadonlyArray<Json> }) =>
                  items.filter((entry) => entry.graphObjectId === person.id && isOver(entry)).length === 3
              )
          })
        // Early rounds are planned with what was known of empty tables: one of the first rounds must be cheap.
        const costs: Array<number> = []
        let before = yield* countedReads(story, growing)
        while (costs.length < 5 && costs.every((cost) => cost >= 5_000)) {
          yield* round(`round-${costs.length}`)
          const after = yield* countedReads(story, growing)
          costs.push(after.rows - before.rows)
          before = after
        }
        // Twelve entries, with all that looks at them: one look at everything would be more, in every round.
        expect(Math.min(...costs)).toBeLessThan(5_000)
      })
    )
  })
})
