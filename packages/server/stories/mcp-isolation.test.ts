/**
 * Whatever the MCP door offers reaches the caller's project and the caller alone.
 *
 * The tools, resources and prompts are those that the server itself lists, so what is new is tried by being there.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ask } from "../testing/owner-rows.ts"
import { atTheDoor, type Person } from "../testing/person-words.ts"
import { type Json, promptWithObject, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { feedOf, make, saying } from "../testing/story-words.ts"
import { suggestedBy, updating } from "../testing/suggestion-words.ts"
import { asUser } from "../testing/token-words.ts"

const secret = "the-secret-of-another"

/** A project in which there is one of everything, and all of it says the secret. */
const furnished = Effect.gen(function* () {
  const story = yield* newStoryHere
  const one = yield* make(story, "Note", { text: secret })
  const two = yield* make(story, "Note", { text: secret })
  const relationship = yield* story.post("/relationships", { type: "KNOWS", fromId: one.id, toId: two.id })
  const { agent, task } = yield* suggestedBy(story, secret, updating(one, { text: `${secret}!` }))
  yield* story.post("/agents", {
    name: "speaker",
    prompt: promptWithObject,
    triggerType: "manual",
    model: saying(secret)
  })
  const owner = yield* asUser(story, "admin", [story.projectId], "owner")
  yield* owner.post("/tasks", { title: secret })
  // Two notes, what relates them and what woke the agent: nothing of it changes any more.
  const [event] = yield* feedOf(story, 4)
  const ids: Record<string, string> = {
    objectId: one.id,
    fromId: one.id,
    toId: two.id,
    relationshipId: relationship.id,
    agent: agent.id,
    runId: task.runId,
    eventId: event.id,
    taskId: task.id
  }
  return { story, ids, digest: task.digest as string }
})

/** Ids that nothing has. */
const missingIds = (ids: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.keys(ids).map((name, index) => [name, `00000000-0000-7000-8000-00000000000${index}`])
  )

/** Arguments that a tool takes, made after its schema: ids as given, all else something that fits. */
const argumentsFor = (schema: Json, ids: Record<string, string>, digest: string): Record<string, unknown> =>
  Object.fromEntries(
    (schema.required ?? []).map((name: string) => [
      name,
      ids[name] ??
        (
          { digest, properties: { text: "x" }, type: "Note", title: "x", answer: "x", task_id: 1 } as Record<
            string,
            unknown
          >
        )[name]
    ])
  )

/** What every row of a project says, to see that nothing of it has changed. */
const rowsOf = (story: Story) =>
  Effect.forEach(
    [
      "graph_objects",
      "graph_relationships",
      "graph_events",
      "tasks",
      "agent_runs",
      "tool_calls",
      "denials",
      "agents"
    ],
    (table) =>
      Effect.map(
        ask(
          story.access,
          `select md5(coalesce(string_agg(to_jsonb(row)::text, ',' order by row.id), '')) from kb.${table} row where project_id = $1`,
          [story.projectId]
        ),
        (rows) => [table, rows[0]?.[0]]
      )
  )

const withoutIds = (text: string, ids: Record<string, string>): string =>
  Object.values(ids).reduce((rest, id) => rest.replaceAll(id, "ID"), text)

const injected = {
  user_id: "owner",
  userId: "owner",
  project_id: "P",
  projectId: "P",
  agent_id: "A",
  agentId: "A",
  actor: "owner",
  role: "admin"
}

const toolsOf = ({ client }: Person) =>
  Effect.map(
    Effect.promise(() => client.listTools()),
    ({ tools }) => tools
  )

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("S003-R46 P3-MCP-06 Isolation at the MCP door", () => {
    it.effect("every tool tells a foreign id like one that nothing has, and touches nothing", () =>
      Effect.gen(function* () {
        const { digest, ids, story: foreign } = yield* furnished
        const story = yield* newStoryHere
        const mallory = yield* atTheDoor(yield* asUser(story, "admin", [story.projectId], "mallory"))
        const before = yield* rowsOf(foreign)
        const tools = yield* toolsOf(mallory)
        expect(tools.length).toBeGreaterThan(25)
        const missing = missingIds(ids)
        let tried = 0
        for (const { inputSchema, name } of tools) {
          const named = Object.keys(inputSchema.properties ?? {}).some((each) => each in ids)
          const there = yield* mallory.call(name, argumentsFor(inputSchema, ids, digest))
          const nowhere = yield* mallory.call(name, argumentsFor(inputSchema, missing, digest))
          expect(JSON.stringify(there)).not.toContain(secret)
          const required = (inputSchema.required ?? []).some((each) => each in ids)
          if (!named || !required) continue
          tried += 1
          expect([name, there.isError]).toEqual([name, true])
          expect(withoutIds(JSON.stringify([name, there]), ids)).toBe(
            withoutIds(JSON.stringify([name, nowhere]), missing)
          )
        }
        expect(tried).toBeGreaterThan(12)
        expect(yield* rowsOf(foreign)).toEqual(before)
      })
    )

    it.effect("S003-R44 no tool takes who is calling from an argument or from _meta", () =>
      Effect.gen(function* () {
        const { digest, ids, story } = yield* furnished
        const other = yield* newStoryHere
        const mallory = yield* atTheDoor(yield* asUser(story, "editor", [story.projectId], "mallory"))
        const who = { ...injected, projectId: other.projectId, project_id: other.projectId }
        const before = [
          yield* rowsOf(other),
          yield* story.get("/objects"),
          yield* story.get("/tasks?type=todo")
        ]
        for (const { inputSchema, name } of yield* toolsOf(mallory))
          for (const [field, value] of Object.entries(who)) {
            const words = name === "update_task" ? { title: "x" } : {}
            const args = { ...argumentsFor(inputSchema, ids, digest), ...words, [field]: value }
            const { isError, result } = yield* mallory.call(name, args)
            expect([name, field, isError]).toEqual([name, field, true])
            if (result.reason !== "forbidden")
              expect([name, result.error]).toEqual([name, expect.stringContaining(field)])
          }
        expect([
          yield* rowsOf(other),
          yield* story.get("/objects"),
          yield* story.get("/tasks?type=todo")
        ]).toEqual(before)
        const { result } = yield* mallory.call("add_task", { title: "Mine" }, who)
        expect(result.task_id).toBe(1)
        const { items } = yield* story.get("/tool-calls?userId=mallory&limit=200")
        expect(items[0]).toMatchObject({ userId: "mallory", tool: "add_task", arguments: { title: "Mine" } })
        for (const { arguments: kept } of items)
          expect(
            Object.keys(kept).filter((name) => /^user_?id$|^project_?id$|^agent_?id$/i.test(name))
          ).toEqual([])
        expect((yield* story.get("/tool-calls?userId=owner")).items).toEqual([])
      })
    )

    it.effect("nobody reaches the todos of another by a number, through a tool or through an agent", () =>
      Effect.gen(function* () {
        const { story } = yield* furnished
        const mallory = yield* atTheDoor(yield* asUser(story, "editor", [story.projectId], "mallory"))
        for (const [tool, more] of [
          ["complete_task", {}],
          ["delete_task", {}],
          ["update_task", { title: "Taken" }]
        ] as const)
          for (const number of [1, 999])
            expect(yield* mallory.call(tool, { task_id: number, ...more })).toEqual({
              isError: true,
              result: { error: expect.any(String), task_id: number }
            })
        expect((yield* mallory.call("list_tasks")).result).toEqual([])
        yield* mallory.call("add_task", { title: "Mine" })
        const { result } = yield* mallory.call("list_review", { limit: 200 })
        expect(result.items.map(({ type }: Json) => type)).not.toContain("todo")
      })
    )

    it.effect("resources and prompts are of the caller's project alone", () =>
      Effect.gen(function* () {
        const { ids, story: foreign } = yield* furnished
        const story = yield* newStoryHere
        const { client } = yield* atTheDoor(yield* asUser(story, "admin", [story.projectId], "mallory"))
        const reading = (uri: string) =>
          Effect.promise(() =>
            client.readResource({ uri }).then(
              (read) => JSON.stringify(read),
              (error: unknown) => `${Reflect.get(Object(error), "code")} ${String(error)}`
            )
          )
        const { resourceTemplates } = yield* Effect.promise(() => client.listResourceTemplates())
        expect(resourceTemplates.length).toBeGreaterThan(2)
        const missing = missingIds(ids)
        for (const { uriTemplate } of resourceTemplates) {
          const filled = (values: Record<string, string>) =>
            uriTemplate
              .replace(/\{\?[^}]*\}/g, "")
              .replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? name)
          const there = yield* reading(filled(ids))
          expect(there).toMatch(/not found/i)
          expect(withoutIds(there, ids)).toBe(withoutIds(yield* reading(filled(missing)), missing))
        }
        const { resources } = yield* Effect.promise(() => client.listResources())
        expect(resources.map(({ uri }) => uri)).toEqual(["tropism://inbox"])
        for (const { uri } of resources) expect(yield* reading(uri)).not.toContain(secret)
        const { prompts } = yield* Effect.promise(() => client.listPrompts())
        expect(prompts.length).toBeGreaterThan(2)
        for (const { arguments: taken = [], name } of prompts) {
          const getting = (values: Record<string, string>) =>
            Effect.promise(() =>
              client
                .getPrompt({
                  name,
                  arguments: Object.fromEntries(
                    taken.filter(({ required }) => required).map((one) => [one.name, values[one.name] ?? "x"])
                  )
                })
                .then(JSON.stringify, String)
            )
          const there = yield* getting(ids)
          expect(there).not.toContain(secret)
          expect(withoutIds(there, ids)).toBe(withoutIds(yield* getting(missing), missing))
        }
        for (const [name, uri] of [
          ["agent", "tropism://agents/{agent}"],
          ["objectId", "tropism://objects/{objectId}"],
          ["runId", "tropism://runs/{runId}/log{?after}"]
        ] as const) {
          const completed = yield* Effect.promise(() =>
            client.complete({ ref: { type: "ref/resource", uri }, argument: { name, value: "" } })
          )
          for (const value of Object.values(ids)) expect(completed.completion.values).not.toContain(value)
          expect(completed.completion.values).not.toContain(secret)
        }
        expect(foreign.projectId).not.toBe(story.projectId)
      })
    )
  })
})
