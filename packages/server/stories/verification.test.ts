/**
 * Verification: everything recorded follows from the logs, and a difference is told.
 *
 * A project in which people and agents worked is broken by hand, one place at a
 * time, as a faulty disk or a careless administrator would; each time exactly
 * that is told, and after the repair nothing.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { runLimits } from "../src/limits.ts"
import { addEvent, newContext } from "../testing/context-words.ts"
import { importLines, jsonl } from "../testing/import-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { calling, change, endedRuns, make, watcher } from "../testing/story-words.ts"

const note = { tool: "create_object", arguments: { type: "Note", properties: { text: "Seen" } } }

/** A person makes, changes, relates and deletes; an agent reacts; somebody speaks with another. */
const busyProject = Effect.gen(function* () {
  const story = yield* newStoryHere
  const agent = yield* story.post("/agents", watcher({ model: calling(note) }))
  const ada = yield* make(story, "Person", { name: "Ada" })
  yield* change(story, ada, { age: 36 }, { age: 37, name: "Ada L." })
  const bob = yield* make(story, "Person", { name: "Bob" })
  const knows = yield* story.post("/relationships", {
    type: "knows",
    fromId: ada.id,
    toId: bob.id,
    properties: { since: 1 }
  })
  const gone = yield* make(story, "Thing")
  yield* story.delete(`/objects/${gone.id}`)
  const [run] = yield* endedRuns(story, agent, 2)
  yield* newContext(story, "chat")
  yield* addEvent(story, "chat", "Hello")
  yield* eventually(story.get("/runs?limit=200"), (page: Json) =>
    page.items.every((each: Json) => each.status === "completed")
  )
  return { story, ada, knows, run }
})

const verify = (story: Story): Effect.Effect<Json> => story.get("/verify")

layer(SharedServer.layer)((it) => {
  describe("Verification", () => {
    it.effect("finds nothing in a project in which people and agents worked", () =>
      Effect.gen(function* () {
        const { story } = yield* busyProject
        const found = yield* verify(story)
        expect(found).toMatchObject({ differenceCount: 0, differences: [] })
        // Ada, Bob, the thing and the notes of two runs; versions 3 + 1 + 2 + 2 and one of the relationship.
        expect(found.checked).toMatchObject({
          objects: 5,
          relationships: 1,
          versions: 9,
          contexts: 3,
          runs: 3
        })
        expect(found.checked.contextEvents).toBeGreaterThan(20)
      })
    )

    it.effect("tells each place that was broken, and nothing once it is mended", () =>
      Effect.gen(function* () {
        const { ada, knows, run, story } = yield* busyProject
        const context = run.contextName
        /** What is broken, how it is mended, and the rule that tells it of which thing. */
        const faults: ReadonlyArray<readonly [string, string, string, string]> = [
          [
            `update kb.graph_objects set properties = properties || '{"age": 38}' where id = '${ada.id}'`,
            `update kb.graph_objects set properties = properties || '{"age": 37}' where id = '${ada.id}'`,
            "present",
            ada.id
          ],
          [
            `update kb.graph_object_versions set version = 12 where object_id = '${ada.id}' and version = 2`,
            `update kb.graph_object_versions set version = 2 where object_id = '${ada.id}' and version = 12`,
            "versions",
            ada.id
          ],
          [
            `update kb.graph_events set snapshot = jsonb_set(snapshot, '{properties,age}', '35') where entity_id = '${ada.id}' and version = 2`,
            `update kb.graph_events set snapshot = jsonb_set(snapshot, '{properties,age}', '36') where entity_id = '${ada.id}' and version = 2`,
            "event",
            ada.id
          ],
          [
            `update kb.graph_events set actor_id = 'somebody' where entity_id = '${ada.id}' and version = 2`,
            `update kb.graph_events set actor_id = 'admin' where entity_id = '${ada.id}' and version = 2`,
            "event",
            ada.id
          ],
          [
            `update kb.graph_events set changed_properties = '{name}' where entity_id = '${ada.id}' and version = 3`,
            `update kb.graph_events set changed_properties = '{age,name}' where entity_id = '${ada.id}' and version = 3`,
            "changedProperties",
            ada.id
          ],
          [
            `update kb.graph_objects set property_versions = '{"name": 2, "age": 3}' where id = '${ada.id}'`,
            `update kb.graph_objects set property_versions = '{"name": 3, "age": 3}' where id = '${ada.id}'`,
            "propertyVersions",
            ada.id
          ],
          [
            `update kb.graph_relationship_versions set properties = '{}' where relationship_id = '${knows.id}'`,
            `update kb.graph_relationship_versions set properties = '{"since": 1}' where relationship_id = '${knows.id}'`,
            "present",
            knows.id
          ],
          [
            `update kb.contexts set last_event_number = last_event_number + 1 where name = '${context}'`,
            `update kb.contexts set last_event_number = last_event_number - 1 where name = '${context}'`,
            "logNumbers",
            context
          ],
          [
            `update kb.contexts set open_turn_number = 1 where name = '${context}'`,
            `update kb.contexts set open_turn_number = null where name = '${context}'`,
            "openTurn",
            context
          ],
          [
            `update kb.context_events set parent_event_id = '${context}:9' where context_name = '${context}' and number = 3`,
            `update kb.context_events set parent_event_id = '${context}:2' where context_name = '${context}' and number = 3`,
            "parents",
            context
          ],
          [
            `update kb.context_events set payload = jsonb_set(payload, '{turnNumber}', '7') where context_name = '${context}' and type = 'AgentTurnCompletedEvent'`,
            `update kb.context_events set payload = jsonb_set(payload, '{turnNumber}', '1') where context_name = '${context}' and type = 'AgentTurnCompletedEvent'`,
            "turns",
            context
          ],
          [
            `update kb.agent_runs set step_count = 9 where id = '${run.id}'`,
            `update kb.agent_runs set step_count = 2 where id = '${run.id}'`,
            "run",
            context
          ],
          [
            `update kb.agent_runs set usage = jsonb_set(usage, '{inputTokens}', '1') where id = '${run.id}'`,
            `update kb.agent_runs set usage = jsonb_set(usage, '{inputTokens}', '${run.usage.inputTokens}') where id = '${run.id}'`,
            "run",
            context
          ],
          [
            `update kb.tool_calls set status = 'failed' where run_id = '${run.id}'`,
            `update kb.tool_calls set status = 'completed' where run_id = '${run.id}'`,
            "toolCall",
            context
          ]
        ]
        for (const [breaks, mends, rule, id] of faults) {
          yield* ask(story.access, breaks)
          const found = yield* verify(story)
          expect([
            breaks,
            found.differences.map((difference: Json) => [difference.rule, difference.id])
          ]).toEqual([breaks, expect.arrayContaining([[rule, id]])])
          yield* ask(story.access, mends)
          expect([mends, (yield* verify(story)).differences]).toEqual([mends, []])
        }
      })
    )

    it.effect("tells the first differences of many and counts the others", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const count = runLimits.differencesShown + 5
        const things = Array.from({ length: count }, (_, number) => ({
          type: "Thing",
          key: `thing-${number}`,
          properties: { number }
        }))
        yield* importLines(story, jsonl(...things))
        yield* ask(story.access, `update kb.graph_objects set properties = '{}' where project_id = $1`, [
          story.projectId
        ])
        const found = yield* verify(story)
        expect(found.differenceCount).toBe(count)
        expect(found.differences).toHaveLength(runLimits.differencesShown)
        expect(new Set(found.differences.map(({ rule }: Json) => rule))).toEqual(new Set(["present"]))
      })
    )

    it.effect("answers 404 for a project that is not there", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const answer = yield* story.send("GET", "/api/projects/01990000-0000-7000-8000-000000000000/verify")
        expect(answer.status).toBe(404)
      })
    )
  })
})
