/**
 * Proves that what an agent remembers is found through its indexes, under the server's own role and row-level security.
 */
import { describe, expect, layer } from "@effect/vitest"
import { ContextName } from "@tropism/domain/context-event"
import { AgentId, ProjectId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { freshDatabase } from "../../testing/fresh-database.ts"
import { ask } from "../../testing/owner-rows.ts"
import { poolLayer } from "../database/pool.ts"
import { counting, finding, type Reminder } from "./passages.ts"

const project = ProjectId.make("01990000-0000-7000-8000-000000000001")
const agents = ["01990000-0000-7000-8000-00000000000a", "01990000-0000-7000-8000-00000000000b"] as const
const passagesOfAgent = 10_000

class Furnished extends Context.Service<Furnished, Record<never, never>>()("test/Furnished") {}

/** Two agents that have said much, of which all has one word, a tenth another and little a third. */
const furnished = Layer.unwrap(
  Effect.gen(function* () {
    const access = yield* freshDatabase
    yield* ask(access, `insert into kb.projects (id, name, created_by) values ('${project}', 'x', 'ada')`)
    // Who the agents are says nothing here.
    yield* ask(access, "alter table kb.contexts drop constraint contexts_agent_id_fkey")
    for (const [place, agent] of agents.entries()) {
      yield* ask(
        access,
        `insert into kb.contexts (project_id, name, agent_id) select '${project}', 'context-${place}-' || n, '${agent}' from generate_series(1, 100) n`
      )
      for (const table of ["context_events", "passages"] as const)
        yield* ask(access, rowsOf(table, place, agent))
    }
    yield* ask(access, "vacuum analyze kb.passages")
    return Layer.merge(
      Layer.succeed(Furnished, {}),
      poolLayer({ url: access.serverUrl, startupParameters: access.serverStartupParameters })
    )
  })
)

const said = `'It is about thing' || n % (${passagesOfAgent} / 20) || case when n % 10 = 0 then ' and topics' else '' end || ' with words'`

const rowsOf = (table: "context_events" | "passages", place: number, agent: string): string => {
  const from = `from generate_series(1, ${passagesOfAgent}) n`
  const name = `'context-${place}-' || n % 100 + 1`
  return table === "passages"
    ? `insert into kb.passages (project_id, agent_id, context_name, number, type, created_at, words)
       select '${project}', '${agent}', ${name}, n, 'UserMessageEvent', to_timestamp(n), kb.passage_words(${said}) ${from}`
    : `insert into kb.context_events (project_id, context_name, number, type, payload, triggers_agent_turn, created_at)
       select '${project}', ${name}, n, 'UserMessageEvent', jsonb_build_object('content', ${said}), true, to_timestamp(n) ${from}`
}

const reminder: Reminder = {
  agentId: AgentId.make(agents[0]),
  context: ContextName.make("context-0-1"),
  asked: "What is it with thing7 and the topic?",
  known: [],
  limit: 5
}

/** What a statement answers, and how it came by it. */
const explained = Effect.fn("explained")(function* <A>(statement: Statement.Statement<A>) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`select set_config('tropism.project', ${project}, true)`
      const rows = yield* statement
      const lines = yield* sql<Record<string, string>>`explain (analyze, costs off) ${statement}`
      return { rows, plan: lines.map((line) => Object.values(line)[0]).join("\n") }
    })
  )
})

layer(furnished)((it) => {
  describe("The index serves", () => {
    it.effect("S004-F04 the sample by which the words of a question are judged", () =>
      Effect.gen(function* () {
        const { plan, rows } = yield* explained(counting(yield* SqlClient.SqlClient, reminder))
        expect(plan).toContain("passages_newest")
        expect(plan).not.toMatch(/Seq Scan on passages|Sort Method: external/)
        expect(rows.toSorted((one, other) => other.having - one.having)).toEqual([
          { word: "topic", having: 20, sampled: 200 },
          { word: "thing7", having: expect.any(Number), sampled: 200 }
        ])
      })
    )

    it.effect("S004-F04 the words of a question, rare and common ones", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        for (const [word, index] of [
          ["thing7", "passages_words"],
          ["topic", "passages_newest"],
          ["word", "passages_newest"]
        ] as const) {
          const { plan, rows } = yield* explained(finding(sql, project, reminder, [{ word, weight: 1 }]))
          expect(plan).toContain(index)
          expect(plan).not.toContain("Seq Scan on passages")
          expect(rows).toHaveLength(5)
        }
      })
    )
  })
})
