/**
 * What reading a log costs follows what is read, not how long the log is.
 *
 * The logs are filled by the owner of the database; what is counted is the rows
 * that PostgreSQL looks at, under the server's role.
 */
import { describe, expect, layer } from "@effect/vitest"
import { ContextName } from "@tropism/domain/context-event"
import { ProjectId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { Contexts } from "../src/contexts/contexts.ts"
import { Database } from "../src/database/database.ts"
import { agentLimits } from "../src/limits.ts"
import { filledBy } from "../testing/filled-database.ts"
import { rowsReadIn, times } from "../testing/rows-read.ts"

const project = ProjectId.make("01990000-0000-7000-8000-000000000001")
const agent = "01990000-0000-7000-8000-000000000002"
const [log, fork] = [ContextName.make("log"), ContextName.make("fork")]

/** Events of the log, and of these those that the fork shares; it has as many of its own. */
const [long, shared] = [5_000, 2_000]

const eventsOf = (name: string, from: number, to: number) =>
  `insert into kb.context_events (project_id, context_name, number, type, payload, parent_event_id, triggers_agent_turn, created_at)
    select '${project}', '${name}', n, 'UserMessageEvent', jsonb_build_object('content', 'Remark ' || n), null, false, now()
    from generate_series(${from}, ${to}) n`

const filling: ReadonlyArray<string> = [
  `insert into kb.projects (id, name, created_by) values ('${project}', 'x', 'ada')`,
  `insert into kb.agents (id, project_id, name, version, prompt, flow_type, tools, trigger_type, timezone, execution_mode, enabled)
    values ('${agent}', '${project}', 'speaker', 1, '', 'single', '{}', 'manual', 'UTC', 'execute', true)`,
  `insert into kb.contexts (project_id, name, agent_id, last_event_number) values ('${project}', 'log', '${agent}', ${long})`,
  `insert into kb.contexts (project_id, name, agent_id, last_event_number, forked_from, forked_at)
    values ('${project}', 'fork', '${agent}', ${2 * shared}, 'log', ${shared})`,
  eventsOf("log", 1, long),
  eventsOf("fork", shared + 1, 2 * shared),
  `analyze`
]

const rowsOf = rowsReadIn(project)

/** Contexts, feeds and the like. */
const beside = 20

layer(filledBy(filling), { excludeTestServices: true })((it) => {
  describe("Cost of reading a log", () => {
    it.effect("a page looks at its own events, wherever in a long log it lies", () =>
      Effect.gen(function* () {
        const contexts = yield* Contexts
        const rows = yield* rowsOf((time) =>
          Effect.map(contexts.read(log, time * 600, 100), (page) => {
            expect(page.map(({ id }) => id)).toEqual(
              Array.from({ length: 100 }, (_, index) => `log:${time * 600 + index + 1}`)
            )
          })
        )
        expect([rows >= 100, rows < 100 + beside]).toEqual([true, true])
        expect(times * 600 + 100).toBeLessThan(long)
      })
    )

    it.effect("opening a log looks at each of its events once", () =>
      Effect.gen(function* () {
        const contexts = yield* Contexts
        const pages = Math.ceil(long / agentLimits.logPageEvents) + 1
        const rows = yield* rowsOf(() =>
          Effect.map(contexts.load(log), ({ nextEventNumber, lastEventId }) => {
            expect([nextEventNumber, lastEventId]).toMatchObject([long + 1, { value: `log:${long}` }])
          })
        )
        expect([rows >= long, rows < long + pages * beside]).toEqual([true, true])
      })
    )

    it.effect(
      "a fork is read from both logs, where one ends in the middle of a page and where it does not",
      () =>
        Effect.gen(function* () {
          const contexts = yield* Contexts
          const { inProject } = yield* Database
          const page = yield* inProject(project, contexts.read(fork, shared - 2, 4))
          expect(page.map(({ agentName, id }) => [agentName, id])).toEqual([
            ["log", `log:${shared - 1}`],
            ["log", `log:${shared}`],
            ["fork", `fork:${shared + 1}`],
            ["fork", `fork:${shared + 2}`]
          ])
          const { lastEventId, nextEventNumber, spoken } = yield* inProject(project, contexts.load(fork))
          expect([nextEventNumber, lastEventId, spoken.turns]).toMatchObject([
            2 * shared + 1,
            { value: `fork:${2 * shared}` },
            2 * shared
          ])
        })
    )
  })
})
