/**
 * A suggestion is judged by what its run had read, and not by what lay there when it was written down.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { answer, asker, asking, questionsOf } from "../testing/question-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { change, endedRuns, feedOf, make, type ScriptedCall, suggestionsOf } from "../testing/story-words.ts"
import { approve, pendingOf, suggesting, suggestingOnce, updating } from "../testing/suggestion-words.ts"

/** An agent that reads and asks a person, who moves the graph and answers, and then suggests what it had in mind. */
const movedBetween = Effect.fnUntraced(function* (
  story: Story,
  reads: ReadonlyArray<ScriptedCall>,
  suggests: ScriptedCall,
  meanwhile: Effect.Effect<unknown>,
  overrides: Record<string, unknown> = {},
  begin: (agent: Json) => Effect.Effect<unknown> = (agent) => story.post(`/agents/${agent.id}/trigger`)
) {
  const model = scripted([
    { when: "step == 0", calls: reads },
    { when: "step == 1", calls: [asking("Shall I?")] },
    { when: "step == 2", calls: [suggests] },
    { say: "Done." }
  ])
  const agent = yield* asker(story, model, { executionMode: "suggest", ...overrides })
  yield* begin(agent)
  const [question] = yield* eventually(questionsOf(story), (found) => found.length === 1)
  yield* meanwhile
  yield* answer(story, { id: question.runId }, "Yes", question)
  yield* endedRuns(story, agent, 1)
  const [task] = yield* suggestionsOf(story, 1)
  return task
})

const reading = (object: Json): ScriptedCall => ({ tool: "get_object", arguments: { objectId: object.id } })
const around = (object: Json): ScriptedCall => ({ tool: "neighbors", arguments: { objectId: object.id } })

const outdated = Effect.fnUntraced(function* (story: Story, task: Json) {
  const refused = yield* approve(story, task)
  expect([refused.status, refused.body.reason]).toEqual([409, "outdated"])
  return refused.body
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: Staleness, seen from what the run had read", () => {
    it.effect("S000-R29 what a person wrote between the read and the suggestion is not overwritten", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1 })
        const task = yield* movedBetween(
          story,
          [reading(person)],
          updating(person, { age: 2 }),
          change(story, person, { age: 36 })
        )
        expect([task.baseVersion, task.staleness.state]).toEqual([1, "outdated"])
        expect((yield* outdated(story, task)).conflicts).toEqual([
          { pointer: "/age", base: 1, current: 36, suggested: 2 }
        ])
        expect((yield* story.get(`/objects/${person.id}`)).properties).toEqual({ age: 36 })
      })
    )

    it.effect("S000-R29 nor what was written since the event that woke it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [other, person] = [yield* make(story, "Thing"), yield* make(story, "Thing", { age: 1 })]
        yield* feedOf(story, 2)
        const task = yield* movedBetween(
          story,
          [reading(other)],
          updating(person, { age: 3 }),
          change(story, person, { age: 36 }),
          { triggerType: "reaction", reactionConfig: { objectTypes: ["Thing"], events: ["updated"] } },
          () => change(story, person, { age: 2 })
        )
        expect([task.baseVersion, task.staleness.state]).toEqual([2, "outdated"])
        yield* outdated(story, task)
      })
    )

    it.effect("S000-R29 nor a relationship that was shown, changed and then suggested", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [from, to] = [yield* make(story, "Person"), yield* make(story, "Person")]
        const knows = yield* story.post("/relationships", {
          type: "KNOWS",
          fromId: from.id,
          toId: to.id,
          properties: { since: 1 }
        })
        const task = yield* movedBetween(
          story,
          [around(from)],
          { tool: "update_relationship", arguments: { relationshipId: knows.id, properties: { since: 2 } } },
          story.patch(`/relationships/${knows.id}`, { properties: { since: 3 } })
        )
        expect(task.baseVersion).toBe(1)
        expect((yield* outdated(story, task)).conflicts).toMatchObject([{ pointer: "/since", base: 1 }])
      })
    )

    it.effect(
      "S000-R29 nor is a relationship deleted with its object that was made while the agent waited",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [from, to] = [yield* make(story, "Person"), yield* make(story, "Person")]
          const task = yield* movedBetween(
            story,
            [around(from)],
            { tool: "delete_object", arguments: { objectId: from.id } },
            Effect.andThen(
              story.post("/relationships", { type: "KNOWS", fromId: from.id, toId: to.id }),
              feedOf(story, 3)
            )
          )
          expect((yield* outdated(story, task)).relationships).toMatchObject([{ type: "KNOWS" }])
        })
    )

    it.effect("S000-R29 what the run has written itself it has seen", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1 })
        const task = yield* movedBetween(
          story,
          [reading(person), updating(person, { age: 2 })],
          {
            tool: "update_object",
            arguments: { objectId: person.id, properties: { age: 3 }, suggest: true }
          },
          Effect.void,
          { executionMode: "execute" }
        )
        expect([task.baseVersion, task.staleness.state]).toEqual([2, "fresh"])
      })
    )

    it.effect("S000-R29 a refinement that has read nothing newer is judged from where the first was", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1 })
        const agent = yield* suggesting(story)
        yield* suggestingOnce(story, agent, updating(person, { age: 2 }))
        yield* change(story, person, { age: 36 })
        yield* suggestingOnce(story, agent, updating(person, { age: 3 }))
        const [task] = yield* pendingOf(story)
        expect([task.revision, task.baseVersion, task.staleness.state]).toEqual([2, 1, "outdated"])
        yield* outdated(story, task)
      })
    )
  })
})
