/**
 * What an agent may not do is refused, on record, with nothing written.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Json, Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  callsOf,
  calling,
  endedRuns,
  entriesWhen,
  feedOf,
  make,
  type ScriptedCall,
  watcher
} from "../testing/story-words.ts"
import { approve, suggested } from "../testing/suggestion-words.ts"
import { naming } from "../testing/naming.ts"

/** Lets an agent with these capabilities make the calls, and answers its run and what was recorded of them. */
const attempt = Effect.fnUntraced(function* (
  story: Story,
  capabilities: unknown,
  calls: ReadonlyArray<ScriptedCall>,
  overrides: Record<string, unknown> = {}
) {
  const agent = yield* story.post(
    "/agents",
    watcher({
      reactionConfig: { objectTypes: ["Start"], events: ["created"] },
      capabilities,
      model: calling(...calls),
      ...overrides
    })
  )
  yield* make(story, "Start")
  const [run] = yield* endedRuns(story, agent, 1)
  yield* story.delete(`/agents/${agent.id}`)
  return { agent, run, calls: yield* callsOf(story, run) }
})

const refusedBy = (word: string) => ({
  status: "refused",
  decision: "refuse",
  result: { error: expect.stringContaining(word), reason: "notPermitted" }
})

/** One change of each kind, all of them possible. */
const someOfEach = Effect.fnUntraced(function* (story: Story) {
  const [ada, grace, acme] = [
    yield* make(story, "Person"),
    yield* make(story, "Person"),
    yield* make(story, "Company")
  ]
  const related = yield* story.post("/relationships", { type: "KNOWS", fromId: ada.id, toId: grace.id })
  const calls = {
    canCreateObjects: { tool: "create_object", arguments: { type: "Person", properties: {} } },
    canUpdateObjects: { tool: "update_object", arguments: { objectId: ada.id, properties: { seen: true } } },
    canDeleteObjects: { tool: "delete_object", arguments: { objectId: acme.id } },
    canCreateRelationships: {
      tool: "create_relationship",
      arguments: { type: "ADMIRES", fromId: ada.id, toId: grace.id }
    },
    canUpdateRelationships: {
      tool: "update_relationship",
      arguments: { relationshipId: related.id, properties: { seen: true } }
    },
    canDeleteRelationships: { tool: "delete_relationship", arguments: { relationshipId: related.id } }
  }
  return calls satisfies Record<string, ScriptedCall>
})

/** Everything that could have been written; equal before and after a refusal. */
const stateOf = (story: Story): Effect.Effect<Json> =>
  Effect.all({
    objects: Effect.map(story.get("/objects?limit=200"), (page) =>
      page.items.filter((object: Json) => object.type !== "Start")
    ),
    relationships: story.get("/relationships?limit=200"),
    tasks: story.get("/tasks")
  })

layer(SharedServer.layer)((it) => {
  describe("Requirement: Agent Capabilities", () => {
    it.effect(
      "S001-R29, R30, R31, R32 with the four flags of the specification false an agent changes nothing",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const wanted = yield* someOfEach(story)
          const before = yield* stateOf(story)
          const four = {
            canCreateObjects: false,
            canUpdateObjects: false,
            canDeleteObjects: false,
            canCreateRelationships: false
          }
          for (const executionMode of ["execute", "suggest"]) {
            const { calls } = yield* attempt(story, four, Object.values(wanted), { executionMode })
            expect(calls).toMatchObject(Object.keys(wanted).map(refusedBy))
            expect(yield* stateOf(story)).toEqual(before)
          }
          // What is granted by its own flag follows no other.
          const granted = { ...four, canUpdateRelationships: true, canDeleteRelationships: true }
          const { calls } = yield* attempt(story, granted, Object.values(wanted))
          expect(calls.filter(({ status }: Json) => status === "completed")).toMatchObject([
            { tool: "update_relationship", decision: "execute" },
            { tool: "delete_relationship", decision: "execute" }
          ])
        })
    )

    it.effect(
      "S000-R26, R27 an agent with canDeleteObjects false deletes nothing, and an error is logged",
      () =>
        Effect.gen(function* () {
          const { log } = yield* SharedServer
          const story = yield* newStoryHere
          const agent = yield* story.post(
            "/agents",
            watcher({
              capabilities: { canDeleteObjects: false },
              model: calling({ tool: "delete_object", arguments: { objectId: "{{ input.object.id }}" } })
            })
          )
          const person = yield* make(story, "Person")
          const [run] = yield* endedRuns(story, agent, 1)
          expect(yield* story.get(`/objects/${person.id}`)).toEqual(person)
          expect(yield* feedOf(story, 0)).toHaveLength(1)

          const [call] = yield* callsOf(story, run)
          expect(call).toMatchObject({
            runId: run.id,
            agentId: agent.id,
            tool: "delete_object",
            arguments: { objectId: person.id },
            ...refusedBy("canDeleteObjects")
          })
          const events = yield* story.get(`/runs/${run.id}/events`)
          expect(events.items.filter((event: Json) => event.type === "ToolCallFailedEvent")).toMatchObject([
            { tool: "delete_object", error: call.result }
          ])
          const told = log.filter(({ message }) => JSON.stringify(message).includes(run.id))
          expect(told).toMatchObject([
            {
              level: "Error",
              message: [expect.any(String), { agentId: agent.id, tool: "delete_object" }]
            }
          ])
          // The agent is told and goes on: a refusal does not end its run.
          expect(run).toMatchObject({ status: "completed", summary: "Done." })
          expect(yield* entriesWhen(story, agent, 1)).toMatchObject([{ status: "completed" }])
        })
    )

    it.effect("S000-R28 an agent for Person and Company may not create a Document", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const create = (type: string) => ({ tool: "create_object", arguments: { type, properties: {} } })
        const { calls } = yield* attempt(story, { allowedObjectTypes: ["Person", "Company"] }, [
          create("Document"),
          create("Person"),
          create("Company")
        ])
        expect(calls).toMatchObject([
          refusedBy("Document"),
          { status: "completed", decision: "execute" },
          { status: "completed", decision: "execute" }
        ])
        expect((yield* story.get("/objects?type=Document")).items).toEqual([])
        expect((yield* story.get("/objects?type=Person")).items).toHaveLength(1)
        expect((yield* story.get("/objects?type=Company")).items).toHaveLength(1)
      })
    )
  })

  describe("Decision: capability restrictions", () => {
    it.effect.each([
      ["S001-R29", "canCreateObjects"],
      ["S001-R30", "canUpdateObjects"],
      ["S001-R31", "canDeleteObjects"],
      ["S001-R32", "canCreateRelationships"],
      ["beyond the design:", "canDeleteRelationships"]
    ] as const)(
      "%s %s is enforced where it is false, and allows where it is true, null or missing",
      ([, flag]) =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const wanted = yield* someOfEach(story)
          const before = yield* stateOf(story)
          const refused = yield* attempt(story, { [flag]: false }, [wanted[flag]])
          expect(refused.calls).toMatchObject([refusedBy(flag)])
          const asked = yield* attempt(story, { [flag]: false }, [wanted[flag]], { executionMode: "suggest" })
          expect(asked.calls).toMatchObject([refusedBy(flag)])
          expect(yield* stateOf(story)).toEqual(before)

          for (const capabilities of [null, {}, { [flag]: null }, { [flag]: true }]) {
            const fresh = yield* newStoryHere
            const { calls } = yield* attempt(fresh, capabilities, [(yield* someOfEach(fresh))[flag]])
            expect([capabilities, calls[0].status, calls[0].decision]).toEqual([
              capabilities,
              "completed",
              "execute"
            ])
          }
        })
    )

    it.effect("S001-R29…R32, K04 a flag that is false forbids its own kind of change and no other", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const wanted = yield* someOfEach(story)
        const { calls } = yield* attempt(story, { canCreateObjects: false }, Object.values(wanted))
        expect(calls.map((call) => [call.tool, call.status])).toEqual([
          ["create_object", "refused"],
          ["update_object", "completed"],
          ["delete_object", "completed"],
          ["create_relationship", "completed"],
          ["update_relationship", "completed"],
          ["delete_relationship", "completed"]
        ])
      })
    )

    it.effect("S001-R33 allowedObjectTypes null or missing is all types, and [] is none", () =>
      Effect.gen(function* () {
        for (const capabilities of [null, {}, { allowedObjectTypes: null }]) {
          const story = yield* newStoryHere
          const wanted = yield* someOfEach(story)
          const { calls } = yield* attempt(story, capabilities, Object.values(wanted))
          expect(calls.map((call) => call.status)).toEqual(calls.map(() => "completed"))
          expect(calls).toHaveLength(6)
        }
        const story = yield* newStoryHere
        const wanted = yield* someOfEach(story)
        const before = yield* stateOf(story)
        const { calls } = yield* attempt(story, { allowedObjectTypes: [] }, Object.values(wanted))
        expect(calls).toMatchObject(calls.map(() => refusedBy("allowedObjectTypes")))
        expect(calls).toHaveLength(6)
        expect(yield* stateOf(story)).toEqual(before)
      })
    )

    it.effect(
      "S001-R33 allowedObjectTypes holds for what is updated and deleted, and for both ends of a relationship",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const person = yield* make(story, "Person")
          const other = yield* make(story, "Person")
          const company = yield* make(story, "Company")
          const relate = (fromId: string, toId: string) => ({
            tool: "create_relationship",
            arguments: { type: "KNOWS", fromId, toId }
          })
          const worksAt = yield* story.post("/relationships", {
            type: "WORKS_AT",
            fromId: person.id,
            toId: company.id
          })
          const { calls } = yield* attempt(story, { allowedObjectTypes: ["Person"] }, [
            { tool: "update_object", arguments: { objectId: company.id, properties: { seen: true } } },
            { tool: "delete_object", arguments: { objectId: company.id } },
            relate(person.id, company.id),
            relate(company.id, person.id),
            {
              tool: "update_relationship",
              arguments: { relationshipId: worksAt.id, properties: { seen: true } }
            },
            { tool: "delete_relationship", arguments: { relationshipId: worksAt.id } },
            relate(person.id, other.id),
            { tool: "update_object", arguments: { objectId: person.id, properties: { seen: true } } }
          ])
          expect(calls).toMatchObject([
            ...Array.from({ length: 6 }, () => refusedBy("Company")),
            { status: "completed", decision: "execute" },
            { status: "completed", decision: "execute" }
          ])
          expect(yield* story.get(`/objects/${company.id}`)).toEqual(company)
          const relationships = yield* story.get("/relationships")
          expect(relationships.items).toMatchObject([
            { type: "KNOWS", fromId: person.id, toId: other.id },
            { id: worksAt.id }
          ])
        })
    )

    it.effect("S001-R31, R33 an object is no way around to the relationships that would go with it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person")
        const company = yield* make(story, "Company")
        const worksAt = yield* story.post("/relationships", {
          type: "WORKS_AT",
          fromId: person.id,
          toId: company.id
        })
        const deletion = [{ tool: "delete_object", arguments: { objectId: person.id } }]
        for (const [capabilities, word] of [
          [{ canDeleteRelationships: false }, "canDeleteRelationships"],
          [{ allowedObjectTypes: ["Person"] }, "allowedObjectTypes"]
        ] as const)
          for (const executionMode of ["execute", "suggest"]) {
            const { calls } = yield* attempt(story, capabilities, deletion, { executionMode })
            expect(calls).toMatchObject([refusedBy("WORKS_AT")])
            expect(calls[0].result.error).toContain(word)
          }
        expect(yield* story.get(`/objects/${person.id}`)).toEqual(person)
        expect((yield* story.get("/tasks")).items).toEqual([])
        yield* story.delete(`/relationships/${worksAt.id}`)
        const { calls } = yield* attempt(story, { canDeleteRelationships: false }, deletion)
        expect(calls).toMatchObject([{ status: "completed", decision: "execute" }])
      })
    )

    it.effect("S001-R31 what would go with an object is judged again when its deletion is approved", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person")
        const company = yield* make(story, "Company")
        yield* story.post("/relationships", { type: "WORKS_AT", fromId: person.id, toId: company.id })
        const { task } = yield* suggested(story, {
          tool: "delete_object",
          arguments: { objectId: person.id }
        })
        yield* story.patch(`/agents/${task.agentId}`, { capabilities: { canDeleteRelationships: false } })
        const answer = yield* approve(story, task)
        expectProblem(answer, 409)
        expect(answer.body).toMatchObject({
          reason: "notPermitted",
          detail: naming("WORKS_AT", "Person", "Company")
        })
        expect((yield* story.get(`/tasks/${task.id}`)).status).toBe("pending")
        expect(yield* story.get(`/objects/${person.id}`)).toEqual(person)
      })
    )
  })
})
