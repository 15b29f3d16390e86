/**
 * What a person undoes ends the trust by which it was made.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { creating, decideEach, earned, earner, promoted, told, toldOf } from "../testing/autonomy-words.ts"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { make } from "../testing/story-words.ts"
import { approve, reject, updating } from "../testing/suggestion-words.ts"
import { undoRun } from "../testing/undo-words.ts"

const notes = { note: creating("Note"), letter: creating("Letter") }

/** Plans to undo what a call did, and approves it; answers the plan. */
const undone = Effect.fnUntraced(function* (story: Story, call: Json, body: unknown = {}) {
  const planned = yield* undoRun(story, { id: call.runId })
  expect(planned.status).toBe(201)
  expect((yield* approve(story, planned.body, body)).status).toBe(200)
  return planned.body
})

/** What is counted of one operation and type. */
const recordOf = (autonomy: Json, operation: string, objectType: string): Json =>
  autonomy.records.find((one: Json) => one.operation === operation && one.objectType === objectType)

layer(SharedServer.layer)((it) => {
  describe("Requirement: An agent is demoted at a revert", () => {
    it.effect("of what it did unasked: it asks again, and has to earn it anew", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const me = (yield* story.send("GET", "/api/me")).body.userId
        const { agent, promotion } = yield* promoted(story, notes, "note")
        const call = yield* told(story, agent, "note")
        expect(call.promotionId).toBe(promotion.id)
        const { number } = yield* undone(story, call)

        const after = yield* earned(story, agent)
        expect(after.promotions).toMatchObject([
          {
            id: promotion.id,
            endReason: "reverted",
            endedBy: me,
            endedAt: expect.any(String),
            note: expect.stringMatching(new RegExp(`\\b${number}\\b`))
          }
        ])
        expect(recordOf(after, "create", "Note")).toMatchObject({
          accepted: 2,
          reverted: 1,
          counting: { reviews: 0, acceptanceRate: null },
          promotionId: null
        })
        expect(yield* toldOf(story, "expired")).toMatchObject([
          { id: promotion.taskId, resolutionNote: expect.any(String) }
        ])
        expect((yield* told(story, agent, "note")).decision).toBe("suggest")
        yield* decideEach(story, agent, "note", ["accept", "accept"])
        expect((yield* earned(story, agent)).promotions).toHaveLength(2)
        expect((yield* told(story, agent, "note")).decision).toBe("execute")
      })
    )

    it.effect("of what a person had approved, also before it was promoted", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", earner(notes))
        const [first] = yield* decideEach(story, agent, "note", ["accept"])
        yield* undone(story, { runId: first.runId })
        expect(recordOf(yield* earned(story, agent), "create", "Note")).toMatchObject({
          accepted: 1,
          reverted: 1,
          counting: { reviews: 0 }
        })
        // One more would have been enough, had nothing been undone.
        yield* decideEach(story, agent, "note", ["accept"])
        expect((yield* earned(story, agent)).promotions).toEqual([])
        yield* decideEach(story, agent, "note", ["accept"])
        expect((yield* earned(story, agent)).promotions).toMatchObject([{ reviews: 2, endedAt: null }])
      })
    )

    it.effect("and nothing else of it is: not another type, another operation or another agent", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const note = yield* make(story, "Note", { kind: "made" })
        const deeds = {
          ...notes,
          change: updating(note, { kind: "changed" }),
          back: updating(note, { kind: "made" })
        }
        const { agent } = yield* promoted(story, deeds, "note")
        yield* decideEach(story, agent, "letter", ["accept", "accept"])
        yield* decideEach(story, agent, "change", ["accept"])
        yield* decideEach(story, agent, "back", ["accept"])
        const twin = yield* promoted(story, notes, "note", { name: "twin" })
        const standing = (autonomy: Json) =>
          autonomy.promotions
            .filter((one: Json) => one.endedAt === null)
            .map((one: Json) => `${one.operation} ${one.objectType}`)
            .toSorted()
        expect(standing(yield* earned(story, agent))).toEqual(["create Letter", "create Note", "update Note"])
        yield* undone(story, yield* told(story, agent, "note"))
        expect(standing(yield* earned(story, agent))).toEqual(["create Letter", "update Note"])
        expect(standing(yield* earned(story, twin.agent))).toEqual(["create Note"])
        for (const [deed, decision] of [
          ["note", "suggest"],
          ["letter", "execute"],
          ["change", "execute"]
        ] as const)
          expect([deed, (yield* told(story, agent, deed)).decision]).toEqual([deed, decision])
      })
    )

    it.effect("but not at a plan that is rejected, refused or leaves its change out", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent } = yield* promoted(story, notes, "note")
        const call = yield* told(story, agent, "note")
        const plan = () => Effect.map(undoRun(story, { id: call.runId }), ({ body }) => body)
        const before = yield* earned(story, agent)

        expect((yield* reject(story, yield* plan())).status).toBe(200)
        const second = yield* plan()
        const refused = yield* approve(story, second, { leaveOut: [call.result.object.id] })
        expect(refused.status).toBe(409)
        yield* story.patch(`/objects/${call.result.object.id}`, { properties: { kind: "mine" } })
        expect((yield* approve(story, second)).body.reason).toBe("outdated")
        expect(yield* earned(story, agent)).toEqual(before)
        expect((yield* told(story, agent, "note")).decision).toBe("execute")
      })
    )

    it.effect("a deletion that took relationships with it is one deletion", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [ada, grace] = [yield* make(story, "Person"), yield* make(story, "Person")]
        yield* story.post("/relationships", { type: "KNOWS", fromId: ada.id, toId: grace.id })
        const deeds = { forget: { tool: "delete_object", arguments: { objectId: ada.id } } }
        const agent = yield* story.post("/agents", earner(deeds))
        const [task] = yield* decideEach(story, agent, "forget", ["accept"])
        yield* undone(story, { runId: task.runId })
        expect((yield* story.get("/relationships")).items).toHaveLength(1)
        const { records } = yield* earned(story, agent)
        expect(records.map((one: Json) => [one.operation, one.objectType, one.reverted])).toEqual([
          ["delete", "Person", 1]
        ])
      })
    )
  })
})
