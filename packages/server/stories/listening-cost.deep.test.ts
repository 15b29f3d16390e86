/**
 * What listening costs follows what happens, not what there is: to the graph's events by MCP, and to those of foreign servers.
 *
 * The tables are filled by the owner of the database, and each way to listen is
 * used as the server does it. What it asks is counted, and the rows that
 * PostgreSQL looks at for it.
 */
import { describe, expect, layer } from "@effect/vitest"
import type { ServerContext } from "@modelcontextprotocol/server"
import { ProjectId, UserId } from "@tropism/domain/ids"
import { Effect, Fiber, Tracer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Database } from "../src/database/database.ts"
import { makeEventSources } from "../src/reactions/external-events.ts"
import { streamLimits } from "../src/http/limits.ts"
import { eventLimits, EventReading, type Listening, eventTypes } from "../src/mcp/events.ts"
import { EventStreams } from "../src/mcp/event-delivery.ts"
import { ProcessingLog } from "../src/runs/processing-log.ts"
import { filledBy } from "../testing/filled-database.ts"
import { rowsReadIn } from "../testing/rows-read.ts"
import { asTimePasses } from "../testing/shared-server.ts"

const project = ProjectId.make("01990000-0000-7000-8000-000000000001")
const agent = "01990000-0000-7000-8000-000000000002"
const tokenHash = "a".repeat(64)
const caller = {
  principal: { userId: UserId.make("ada"), role: "admin", projectIds: [project], roles: null },
  projectId: project,
  tokenHash
} as const

/** How many rows there are in each of the large tables, and how many projects listen to nothing. */
const many = 5_000
const others = 500

const filling: ReadonlyArray<string> = [
  `insert into kb.projects (id, name, created_by) values ('${project}', 'x', 'ada')`,
  `insert into kb.projects (id, name, created_by) select gen_random_uuid(), 'x', 'ada' from generate_series(1, ${others})`,
  `insert into kb.feeds (project_id, last_position) select id, ${many} from kb.projects
    on conflict (project_id) do update set last_position = excluded.last_position`,
  `insert into kb.api_tokens (id, hash, user_id, role) values (gen_random_uuid(), '${tokenHash}', 'ada', 'admin')`,
  `insert into kb.graph_events (id, project_id, position, entity_type, object_type, entity_id, version, type, changed_properties, snapshot,
      actor_type, root_event_id, depth, dispatched_at)
    select id, '${project}', n, 'graphObject', 'Package', gen_random_uuid(), 1, 'created', '{size}', '{"properties": {"size": 1}}',
      'user', id, 0, now() from (select gen_random_uuid() as id, n from generate_series(1, ${many}) n) made`,
  `insert into kb.agents (id, project_id, name, version, prompt, flow_type, tools, trigger_type, timezone, execution_mode, enabled)
    values ('${agent}', '${project}', 'listener', 1, '', 'single', '{}', 'manual', 'UTC', 'execute', true)`,
  // One source of many is due; the others are asked later, or by nobody.
  `insert into kb.mcp_event_sources (id, project_id, server_name, name, arguments, arguments_digest, due_at)
    select gen_random_uuid(), '${project}', 'orders', 'order.placed', '{}', n::text,
      case when n % 2 = 0 then now() + interval '1 hour' end from generate_series(1, ${many}) n`,
  `insert into kb.agent_mcp_events (agent_id, source_id, project_id) select '${agent}', id, project_id from kb.mcp_event_sources`,
  `insert into kb.mcp_occurrences (id, project_id, source_id, number, event_id, happened_at)
    select gen_random_uuid(), project_id, id, 1, 'e', now() from kb.mcp_event_sources`,
  `analyze`
]

const rowsOf = rowsReadIn(project)

const listeningTo = (name: string): Listening => {
  const type = eventTypes.get(name)
  if (!type) throw new Error(`Unknown event ${name}`)
  return { type, filter: {} }
}

/** Counts the questions to the database that an effect asks. */
const counting = () => {
  let count = 0
  const tracer = Tracer.make({
    span: (options) => {
      if (options.kind === "client" && options.name !== "sql.transaction") count += 1
      return new Tracer.NativeSpan(options)
    }
  })
  return { tracer, count: () => count }
}

layer(filledBy(filling), { excludeTestServices: true })((it) => {
  describe("Cost of listening to the graph", () => {
    it.effect("a poll behind which nothing happened looks at no event, however many there are", () =>
      Effect.gen(function* () {
        const { begin, look } = yield* EventReading
        const idle = Effect.gen(function* () {
          const { position } = yield* begin({ after: many, maxAgeMs: 60_000 })
          expect(yield* look(listeningTo("object.created"), position, 50)).toEqual({
            occurrences: [],
            position: many,
            hasMore: false
          })
        })
        // One row of the feed for each of the two.
        expect(yield* rowsOf(() => idle)).toBe(2)
      })
    )

    it.effect("a poll looks at what it tells, or at one stretch of what it does not mean", () =>
      Effect.gen(function* () {
        const { look } = yield* EventReading
        const told = yield* rowsOf(() => look(listeningTo("object.created"), 1_000, 50))
        expect([told > 50, told < 60]).toEqual([true, true])
        // What never comes: each look goes on by a stretch, and what is there lies far beyond it.
        const unmeant = yield* rowsOf(() => look(listeningTo("object.deleted"), 1_000, 50))
        expect([unmeant >= eventLimits.lookPlaces, unmeant < eventLimits.lookPlaces + 10]).toEqual([
          true,
          true
        ])
      })
    )

    it.effect("a stream in which nothing happens asks a bounded number of questions for each heartbeat", () =>
      Effect.gen(function* () {
        const { stream } = yield* EventStreams
        const told: Array<string> = []
        const context = {
          mcpReq: {
            id: 1,
            signal: new AbortController().signal,
            notify: ({ method }: { readonly method: string }) => Promise.resolve(void told.push(method))
          }
        } as unknown as ServerContext
        const { count, tracer } = counting()
        const listening = yield* stream(
          caller,
          listeningTo("object.created"),
          { after: many, maxAgeMs: null },
          context
        ).pipe(Effect.withTracer(tracer), Effect.forkChild)
        const beats = 10
        yield* asTimePasses(
          streamLimits.heartbeatIntervalMs,
          Effect.sync(() => told.length),
          (length) => length > beats
        )
        yield* Fiber.interrupt(listening)
        expect(told.slice(0, 2)).toEqual(["notifications/events/active", "notifications/events/heartbeat"])
        // Where the feed ends, and nothing else; whether the token still opens the project is asked for many callers at once.
        expect(count()).toBeGreaterThanOrEqual(beats)
        expect(count()).toBeLessThanOrEqual(2 * (told.length + 1))
      }).pipe(Effect.provide(TestClock.layer()))
    )
  })

  describe("Cost of listening to foreign servers", () => {
    it.effect("looking for what is due looks at that, and not at sources that wait or sleep", () =>
      Effect.gen(function* () {
        const sources = yield* makeEventSources
        const sql = yield* SqlClient.SqlClient
        expect(yield* rowsOf(() => Effect.andThen(sources.due, sources.claim(4)))).toBeLessThan(10)
        const database = yield* Database
        // Each is asked for by one program at a time.
        const claimed = yield* database.inProject(
          project,
          Effect.andThen(
            sql`update kb.mcp_event_sources set due_at = now() where arguments_digest = any(${["2", "4"]}::text[])`,
            sources.claim(4)
          )
        )
        expect(claimed).toHaveLength(2)
      })
    )

    it.effect("forgetting old occurrences looks at the old alone", () =>
      Effect.gen(function* () {
        const { forget } = yield* ProcessingLog
        expect(yield* rowsOf(() => forget)).toBeLessThan(100)
      })
    )
  })
})
