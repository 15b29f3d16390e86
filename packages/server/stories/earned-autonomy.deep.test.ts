/**
 * An agent whose suggestions people accept need not ask for ever, and asks again when it was trusted too much.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  askedBy,
  creating,
  decide,
  decideEach,
  type Decision,
  earned,
  earner,
  promoted,
  reverse,
  told,
  toldOf
} from "../testing/autonomy-words.ts"
import type { Json } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { make } from "../testing/story-words.ts"
import { approve, reject, updating } from "../testing/suggestion-words.ts"
import { naming } from "../testing/naming.ts"

const notes = { note: creating("Note") }

/** What a promotion is decided by, and whether it was. */
const counts = ({ accepted, edited, rejected, counting, promotionId }: Json) => [
  [accepted, edited, rejected],
  [counting.reviews, counting.acceptanceRate],
  promotionId !== null
]

layer(SharedServer.layer)((it) => {
  describe("Requirement: What people say of suggestions is measured", () => {
    it.effect("for each version, type and operation, with the share that was taken as it was", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [ada, acme] = [yield* make(story, "Person"), yield* make(story, "Company")]
        const knows = yield* story.post("/relationships", { type: "KNOWS", fromId: ada.id, toId: acme.id })
        const deeds = {
          note: creating("Note"),
          letter: creating("Letter"),
          ada: updating(ada, { kind: "better" }),
          acme: { tool: "delete_object", arguments: { objectId: acme.id } },
          admire: {
            tool: "create_relationship",
            arguments: { type: "ADMIRES", fromId: ada.id, toId: acme.id }
          },
          since: {
            tool: "update_relationship",
            arguments: { relationshipId: knows.id, properties: { n: 1 } }
          },
          forget: { tool: "delete_relationship", arguments: { relationshipId: knows.id } }
        }
        const agent = yield* story.post("/agents", earner(deeds, { hybridPolicy: null }))
        yield* decideEach(story, agent, "note", ["accept", "edit", "reject", "accept"])
        yield* decideEach(story, agent, "letter", ["reject"])
        for (const deed of ["ada", "since", "admire", "forget", "acme"])
          yield* decideEach(story, agent, deed, ["accept"])

        const { records, ...rest } = yield* earned(story, agent)
        expect(rest).toEqual({
          agentId: agent.id,
          agentVersion: 1,
          withoutEffect: expect.any(String),
          promotions: [],
          truncated: false
        })
        expect(
          records.map((record: Json) => [
            record.operation,
            record.objectType,
            record.accepted,
            record.edited,
            record.rejected,
            record.acceptanceRate
          ])
        ).toEqual([
          ["delete", "Company", 1, 0, 0, 1],
          ["deleteRelationship", "KNOWS", 1, 0, 0, 1],
          ["createRelationship", "ADMIRES", 1, 0, 0, 1],
          ["updateRelationship", "KNOWS", 1, 0, 0, 1],
          ["update", "Person", 1, 0, 0, 1],
          ["create", "Letter", 0, 0, 1, 0],
          ["create", "Note", 2, 1, 1, 0.5]
        ])
      })
    )

    it.effect("what a person says over again in other order is taken as it was", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1 })
        const agent = yield* story.post(
          "/agents",
          earner({ older: updating(person, { age: 2, n: { a: 1, b: 2 } }) })
        )
        const task = yield* askedBy(story, agent, "older")
        const same = { suggestedChanges: { data: { n: { b: 2, a: 1 }, age: 2 } } }
        expect((yield* approve(story, task, same)).status).toBe(200)
        expect((yield* earned(story, agent)).records).toMatchObject([{ accepted: 1, edited: 0 }])
      })
    )

    it.effect("a decision that is refused counts for nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1 })
        const agent = yield* story.post("/agents", earner({ older: updating(person, { age: 2 }) }))
        const task = yield* askedBy(story, agent, "older")
        yield* story.patch(`/objects/${person.id}`, { properties: { age: 3 } })
        expect((yield* approve(story, task)).status).toBe(409)
        expect((yield* approve(story, task, { digest: "0".repeat(64) })).status).toBe(409)
        expect((yield* earned(story, agent)).records).toEqual([])
        yield* decide(story, task, "reject")
        expect((yield* reject(story, task)).status).toBe(409)
        expect((yield* earned(story, agent)).records).toMatchObject([{ accepted: 0, rejected: 1 }])
      })
    )

    it.effect("what one agent earned is not another's, nor another project's", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent } = yield* promoted(story, notes, "note")
        const twin = yield* story.post("/agents", earner(notes, { name: "twin" }))
        expect((yield* earned(story, twin)).records).toEqual([])
        expect((yield* told(story, twin, "note")).decision).toBe("suggest")
        const elsewhere = yield* newStoryHere
        expect((yield* elsewhere.ask("GET", `/agents/${agent.id}/autonomy`)).status).toBe(404)
      })
    )
  })

  describe("Requirement: An agent is promoted after enough reviews at a rate", () => {
    it.effect("and then does without asking what it had to ask for, and nothing else", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const note = yield* make(story, "Note")
        const deeds = {
          ...notes,
          letter: creating("Letter"),
          change: updating(note, { kind: "changed" }),
          unsure: creating("Note", { confidence: 0.1 }),
          wish: creating("Note", { suggest: true, confidence: 1 })
        }
        const agent = yield* story.post("/agents", earner(deeds))
        yield* decideEach(story, agent, "note", ["accept"])
        expect((yield* earned(story, agent)).records.map(counts)).toEqual([[[1, 0, 0], [1, 1], false]])
        expect((yield* told(story, agent, "unsure")).decision).toBe("suggest")
        yield* decideEach(story, agent, "note", ["accept"])

        const { promotions, records } = yield* earned(story, agent)
        expect(records.map(counts)).toEqual([[[2, 0, 0], [2, 1], true]])
        expect(promotions).toMatchObject([
          {
            id: records[0].promotionId,
            agentId: agent.id,
            agentVersion: 1,
            operation: "create",
            objectType: "Note",
            reviews: 2,
            acceptanceRate: 1,
            endedAt: null
          }
        ])
        for (const deed of ["note", "unsure"]) {
          const call = yield* told(story, agent, deed)
          expect([call.decision, call.promotionId, call.result.status]).toEqual([
            "execute",
            promotions[0].id,
            "applied"
          ])
          const why = yield* story.get(`/objects/${call.result.object.id}/provenance`)
          expect(why.properties[0].toolCall.promotionId).toBe(promotions[0].id)
        }
        for (const deed of ["letter", "change", "wish"]) {
          const call = yield* told(story, agent, deed)
          expect([deed, call.decision, call.promotionId]).toEqual([deed, "suggest", null])
        }
      })
    )

    it.effect("of which people are told by a task in the one list", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, promotion } = yield* promoted(story, notes, "note")
        const [task] = yield* toldOf(story)
        expect(task).toMatchObject({
          id: promotion.taskId,
          type: "promotion",
          status: "pending",
          number: 3,
          title: naming("earner", "Note"),
          agentId: agent.id,
          agentName: "earner",
          digest: expect.stringMatching(/^[0-9a-f]{64}$/),
          payload: {
            promotionId: promotion.id,
            agentId: agent.id,
            agentVersion: 1,
            operation: "create",
            objectType: "Note",
            reviews: 2,
            rate: 1
          }
        })
        expect(yield* story.get(`/tasks/${task.id}`)).toEqual(task)
        const seen = yield* approve(story, task, { digest: task.digest })
        expect([seen.status, seen.body.status]).toEqual([200, "completed"])
        expect((yield* told(story, agent, "note")).decision).toBe("execute")
        expect((yield* approve(story, task)).body.reason).toBe("alreadyDecided")
      })
    )

    const decisions: ReadonlyArray<readonly [ReadonlyArray<Decision>, object, boolean]> = [
      [["accept", "accept"], { minReviews: 3, minRate: 0 }, false],
      [["accept", "accept", "accept"], { minReviews: 3, minRate: 1 }, true],
      [["accept", "accept", "edit"], { minReviews: 3, minRate: 1 }, false],
      [["reject", "accept", "accept"], { minReviews: 3, minRate: 0.66 }, true],
      [["reject", "accept", "accept"], { minReviews: 3, minRate: 0.67 }, false],
      [["accept", "accept", "reject"], { minReviews: 3, minRate: 0.66 }, true],
      [["edit"], { minReviews: 1, minRate: 0 }, true]
    ]
    for (const [reviews, promotion, isPromoted] of decisions)
      it.effect(`${reviews.join(", ")} under ${JSON.stringify(promotion)}: ${isPromoted}`, () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", earner(notes, { hybridPolicy: { promotion } }))
          yield* decideEach(story, agent, "note", reviews)
          expect((yield* earned(story, agent)).promotions.length).toBe(isPromoted ? 1 : 0)
          expect((yield* told(story, agent, "note")).decision).toBe(isPromoted ? "execute" : "suggest")
        })
      )

    it.effect("a new version begins with nothing, and what an old one suggested promotes nobody", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", earner(notes))
        const waiting = yield* askedBy(story, agent, "note")
        yield* story.patch(`/agents/${agent.id}`, {
          hybridPolicy: { promotion: { minReviews: 1, minRate: 0 } }
        })
        yield* decide(story, waiting, "accept")
        expect((yield* earned(story, agent, 1)).records.map(counts)).toEqual([[[1, 0, 0], [1, 1], false]])
        expect((yield* earned(story, agent)).records).toEqual([])
        yield* decideEach(story, agent, "note", ["accept"])
        expect((yield* earned(story, agent)).promotions).toMatchObject([{ agentVersion: 2, reviews: 1 }])
      })
    )
  })

  describe("Requirement: A promotion can be taken back", () => {
    it.effect("by rejecting its task: the agent asks again, and the reviews count anew", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, promotion } = yield* promoted(story, notes, "note")
        const me = (yield* story.send("GET", "/api/me")).body.userId
        const [task] = yield* toldOf(story)
        const decided = yield* reject(story, task, { reason: "Too early" })
        expect([decided.status, decided.body.status]).toEqual([200, "rejected"])
        const after = yield* earned(story, agent)
        expect(after.promotions).toMatchObject([
          {
            id: promotion.id,
            endReason: "reversed",
            endedBy: me,
            note: "Too early",
            endedAt: expect.any(String)
          }
        ])
        expect(after.records.map(counts)).toEqual([[[2, 0, 0], [0, null], false]])

        yield* decideEach(story, agent, "note", ["accept"])
        expect((yield* told(story, agent, "note")).decision).toBe("suggest")
        yield* decideEach(story, agent, "note", ["accept"])
        const again = yield* earned(story, agent)
        expect(again.promotions.map((one: Json) => [one.reviews, one.endReason])).toEqual([
          [2, null],
          [2, "reversed"]
        ])
        expect((yield* told(story, agent, "note")).decision).toBe("execute")
      })
    )

    it.effect("by its own door, before its task was decided, which then expires with a note", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, promotion } = yield* promoted(story, notes, "note")
        const reversed = yield* reverse(story, agent, promotion, { reason: "Not yet" })
        expect([reversed.status, reversed.body.endReason, reversed.body.note]).toEqual([
          200,
          "reversed",
          "Not yet"
        ])
        expect(yield* toldOf(story, "expired")).toMatchObject([
          { id: promotion.taskId, resolutionNote: expect.any(String) }
        ])
        expect(yield* toldOf(story)).toEqual([])
        expect((yield* told(story, agent, "note")).decision).toBe("suggest")
      })
    )

    it.effect("by its own door, also when a person had seen it, and then stays so", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, promotion } = yield* promoted(story, notes, "note")
        const [task] = yield* toldOf(story)
        yield* decide(story, task, "accept")
        expect((yield* reverse(story, agent, promotion)).status).toBe(200)
        expect((yield* story.get(`/tasks/${task.id}`)).status).toBe("completed")
        expect((yield* told(story, agent, "note")).decision).toBe("suggest")
      })
    )
  })
})
