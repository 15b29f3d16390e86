/**
 * Agents and what they did are rows, and outlive the program.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { migrate } from "../src/database/schema.ts"
import { freshDatabase, unmigratedDatabase } from "../testing/fresh-database.ts"
import { ask, refusalOf } from "../testing/owner-rows.ts"
import { newProject, newStory, startServer, type Story } from "../testing/platform.ts"
import { whileServing } from "../testing/restarts.ts"
import {
  agentsOf,
  calling,
  endedRuns,
  entriesOf,
  entriesWhen,
  feedOf,
  make,
  runsOf,
  suggestionsOf,
  watcher
} from "../testing/story-words.ts"

const columnsOf =
  "select column_name from information_schema.columns where table_schema = 'kb' and table_name = $1"

describe("Requirement: Agent Persistence", () => {
  it.live(
    "S000-R34, R35 migrations on a fresh database make the tables agents and agent_runs, with their columns",
    () =>
      Effect.gen(function* () {
        const access = yield* unmigratedDatabase
        expect(
          yield* ask(access, "select 1 from information_schema.tables where table_schema = 'kb'")
        ).toEqual([])
        yield* Effect.orDie(migrate(access.ownerUrl))
        const tables = yield* ask(
          access,
          "select table_name from information_schema.tables where table_schema = 'kb'"
        )
        expect(tables.flat()).toEqual(expect.arrayContaining(["agents", "agent_runs"]))
        expect((yield* ask(access, columnsOf, ["agents"])).flat()).toEqual(
          expect.arrayContaining([
            "prompt",
            "cron_schedule",
            "role",
            "trigger_type",
            "reaction_config",
            "execution_mode",
            "capabilities"
          ])
        )
        // What they made works: a server serves from it.
        const story = yield* newProject(yield* startServer(access), access)
        expect(yield* story.post("/agents", watcher())).toMatchObject({ name: "watcher", version: 1 })
      })
  )

  it.live("S000-R36 agent configurations and execution history are there after a restart", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const projectId = yield* Effect.scoped(
        Effect.flatMap(startServer(access), (doors) =>
          Effect.map(newProject(doors, access), (made) => made.projectId)
        )
      )
      const before = yield* whileServing(access, projectId, (story) =>
        Effect.gen(function* () {
          const person = yield* make(story, "Start")
          const agent = yield* story.post(
            "/agents",
            watcher({
              role: "clerk",
              systemPrompt: "You are a clerk",
              executionMode: "suggest",
              capabilities: { canDeleteObjects: false },
              maxSteps: 5,
              model: calling({
                tool: "update_object",
                arguments: { objectId: person.id, properties: { seen: true } }
              })
            })
          )
          yield* story.patch(`/agents/${agent.id}`, { prompt: agent.prompt + "!" })
          yield* story.post("/agents", watcher({ name: "off", enabled: false, triggerType: "manual" }))
          yield* make(story, "Person")
          yield* endedRuns(story, agent, 1)
          yield* entriesWhen(story, agent, 1)
          const [task] = yield* suggestionsOf(story, 1)
          yield* story.post(`/tasks/${task.id}/approve`, { digest: task.digest })
          // What was approved has its place in the feed, too.
          yield* feedOf(story, 3)
          return yield* everythingOf(story, agent)
        })
      )
      expect(before.runs).toMatchObject([{ status: "completed", summary: "Done.", stepCount: 2 }])
      expect(before.calls.items).toHaveLength(1)
      expect(before.events.items.length).toBeGreaterThan(5)
      expect(before.agents).toHaveLength(2)
      const [agent] = before.agents.toReversed()
      expect(agent).toMatchObject({ version: 2, role: "clerk" })
      expect(yield* whileServing(access, projectId, (story) => everythingOf(story, agent))).toEqual(before)
    })
  )

  it.live(
    "S000-R37, R38, R39 the row of a reaction agent has its configuration, execution mode and capabilities",
    () =>
      Effect.gen(function* () {
        const story = yield* newStory
        const agent = yield* story.post(
          "/agents",
          watcher({
            reactionConfig: {
              objectTypes: ["Person", "Company"],
              events: ["created", "deleted"],
              concurrencyStrategy: "parallel",
              ignoreAgentTriggered: true
            },
            executionMode: "hybrid",
            capabilities: { canDeleteObjects: false, allowedObjectTypes: ["Person"] }
          })
        )
        const config = {
          objectTypes: ["Person", "Company"],
          events: ["created", "deleted"],
          concurrencyStrategy: "parallel",
          ignoreSelfTriggered: true,
          ignoreAgentTriggered: true,
          relationshipTypes: null,
          where: null,
          debounceMs: 0,
          maxWaitMs: null,
          batchSize: 1,
          rateLimit: null,
          maxConcurrency: null
        }
        const [row] = yield* ask(
          story.access,
          "select trigger_type, reaction_config, execution_mode, capabilities from kb.agents where id = $1",
          [agent.id]
        )
        const capabilities = { canDeleteObjects: false, allowedObjectTypes: ["Person"] }
        expect(row).toEqual(["reaction", config, "hybrid", capabilities])
        const types = yield* ask(
          story.access,
          `select column_name, data_type from information_schema.columns where table_schema = 'kb' and table_name = 'agents'
         and column_name in ('reaction_config', 'capabilities') order by 1`
        )
        expect(types).toEqual([
          ["capabilities", "jsonb"],
          ["reaction_config", "jsonb"]
        ])
        expect(agent).toMatchObject({ reactionConfig: config, executionMode: "hybrid", capabilities })
      })
  )

  it.live(
    "S001-R51, R52, R53, R54 an agent has one of the triggers and modes, and may have neither config nor capabilities",
    () =>
      Effect.gen(function* () {
        const story = yield* newStory
        const define = (overrides: Record<string, unknown>) =>
          story.ask("POST", "/agents", watcher({ name: "other", ...overrides }))
        for (const [overrides, pointer] of [
          [{ triggerType: "sometimes" }, "/triggerType"],
          [{ executionMode: "maybe" }, "/executionMode"]
        ] as const) {
          const refused = yield* define(overrides)
          expect([refused.status, refused.body.errors[0].pointer]).toEqual([422, pointer])
        }
        const made = yield* Effect.forEach(
          [
            { triggerType: "manual", executionMode: "suggest" },
            { triggerType: "schedule", cronSchedule: "0 0 1 1 *", executionMode: "execute" },
            { triggerType: "manual", executionMode: "hybrid" }
          ],
          (overrides, index) =>
            story.post(
              "/agents",
              watcher({ name: `agent-${index}`, reactionConfig: null, capabilities: null, ...overrides })
            )
        )
        expect(made).toMatchObject([
          { triggerType: "manual", executionMode: "suggest", reactionConfig: null, capabilities: null },
          { triggerType: "schedule", executionMode: "execute", reactionConfig: null, capabilities: null },
          { triggerType: "manual", executionMode: "hybrid", reactionConfig: null, capabilities: null }
        ])
        const set = (column: string, value: string) =>
          refusalOf(story.access, `update kb.agents set ${column} = '${value}' where id = '${made[0].id}'`)
        expect(yield* set("trigger_type", "sometimes")).toBe("23514")
        expect(yield* set("execution_mode", "maybe")).toBe("23514")
        expect(yield* set("trigger_type", "reaction")).toBe("23514")
      })
  )
})

/** All that a project keeps of an agent and its work. */
const everythingOf = (story: Story, agent: { readonly id: string }) =>
  Effect.gen(function* () {
    const runs = yield* runsOf(story, agent)
    return {
      agents: yield* agentsOf(story),
      runs,
      entries: yield* entriesOf(story, agent),
      events: yield* story.get(`/runs/${runs[0].id}/events?limit=200`),
      calls: yield* story.get(`/runs/${runs[0].id}/tool-calls`),
      tasks: yield* story.get("/tasks"),
      feed: yield* story.get("/events"),
      objects: yield* story.get("/objects")
    }
  })
