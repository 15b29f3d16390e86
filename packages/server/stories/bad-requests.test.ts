/**
 * Requests that are wrong as such: bodies that are none, fields that do not exist, definitions that cannot work.
 *
 * Whatever is sent, the answer is a problem document that says what to do, and
 * the project is as it was.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { gzipSync } from "node:zlib"
import { scripted } from "../testing/platform.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import type { Json } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

const nobody = "00000000-0000-7000-8000-000000000000"

const bytes = (...parts: ReadonlyArray<string | number>): Uint8Array =>
  new Uint8Array(
    parts.flatMap((part) => (typeof part === "number" ? [part] : [...new TextEncoder().encode(part)]))
  )

const agent = (overrides: Record<string, unknown> = {}) => ({
  name: "somebody",
  prompt: "Look at {{ object.properties.name }}.",
  triggerType: "manual",
  ...overrides
})

const reactionConfig = { objectTypes: ["Person"], events: ["created"] }

/** Definitions of agents that are refused, with the place that is wrong and a value that is named. */
const badAgents: ReadonlyArray<readonly [string, Record<string, unknown>, string, string?]> = [
  ["reaction and no reactionConfig", { triggerType: "reaction" }, "/reactionConfig"],
  ["a reactionConfig without events", { reactionConfig: { objectTypes: [] } }, "/reactionConfig/events"],
  ["an empty list of events", { reactionConfig: { objectTypes: [], events: [] } }, "/reactionConfig/events"],
  [
    "an event that does not exist",
    { reactionConfig: { objectTypes: [], events: ["renamed"] } },
    "/reactionConfig/events/0"
  ],
  [
    "a misspelt safety setting",
    { reactionConfig: { ...reactionConfig, ignoreSelfTrigered: true } },
    "/reactionConfig/ignoreSelfTrigered"
  ],
  ["a misspelt capability", { capabilities: { canDeleteObject: false } }, "/capabilities/canDeleteObject"],
  ["schedule and no cronSchedule", { triggerType: "schedule" }, "/cronSchedule"],
  ["a cron that never fires", { triggerType: "schedule", cronSchedule: "0 0 30 2 *" }, "/cronSchedule"],
  ["six fields", { triggerType: "schedule", cronSchedule: "0 0 9 * * 1" }, "/cronSchedule"],
  ["four fields", { triggerType: "schedule", cronSchedule: "0 9 * *" }, "/cronSchedule"],
  ["minute 61", { triggerType: "schedule", cronSchedule: "61 * * * *" }, "/cronSchedule"],
  [
    "words for a cron",
    { triggerType: "schedule", cronSchedule: "every day at nine o'clock" },
    "/cronSchedule"
  ],
  [
    "an unknown zone",
    { triggerType: "schedule", cronSchedule: "0 9 * * *", timezone: "Mars/Olympus" },
    "/timezone"
  ],
  ["an unknown zone of an agent without a schedule", { timezone: "Mars/Olympus" }, "/timezone"],
  ["a prompt that is no Liquid", { prompt: "{{ event.id" }, "/prompt"],
  ["a tag that is not closed", { prompt: "{% if event %}yes" }, "/prompt"],
  ["a tag that does not exist", { prompt: "{% wheel %}" }, "/prompt"],
  ["a filter that does not exist", { prompt: "{{ event | jsn }}" }, "/prompt"],
  ["a template that includes a file", { prompt: "{% include '/etc/hostname' %}" }, "/prompt"],
  ["a template that includes what it computes", { prompt: "{% include input.file %}" }, "/prompt"],
  ["a template that renders another", { prompt: "{% render input.file %}" }, "/prompt"],
  ["a system prompt with a layout", { systemPrompt: "{% layout 'x' %}" }, "/systemPrompt"],
  ["a condition that breaks off", { model: scripted([{ when: "step ==" }]) }, "/model/script/rules/0/when"],
  [
    "an answer with a filter that does not exist",
    { model: scripted([{ when: "step == 0" }, { say: "{{ message | shout }}" }]) },
    "/model/script/rules/1/say",
    "shout"
  ],
  [
    "an answer that includes a file",
    { model: scripted([{ say: "{% include message %}" }]) },
    "/model/script/rules/0/say"
  ],
  [
    "an argument that is not understood",
    { model: scripted([{ calls: [{ tool: "t", arguments: { a: "{{ message message }}" } }] }]) },
    "/model/script/rules/0/calls/0/arguments"
  ],
  ["a tool that stands twice", { tools: ["graph.*", "github.*", "graph.*"] }, "/tools/2", "graph.*"],
  [
    "a choice of nothing",
    {
      reactionConfig: {
        ...reactionConfig,
        where: { properties: [{ property: "a", op: "in", value: [] }] }
      }
    },
    "/reactionConfig/where/properties/0/value"
  ],
  [
    "what a deletion changed",
    { reactionConfig: { ...reactionConfig, events: ["deleted"], where: { changedProperties: ["a"] } } },
    "/reactionConfig/where/changedProperties"
  ],
  [
    "a longest wait that is shorter than the shortest",
    { reactionConfig: { ...reactionConfig, debounceMs: 1_000, maxWaitMs: 10 } },
    "/reactionConfig/maxWaitMs"
  ],
  ["a prompt that names an unknown root", { prompt: "{{ evnt.id }}" }, "/prompt"],
  ["a system prompt that names an unknown root", { systemPrompt: "{{ user.name }}" }, "/systemPrompt"],
  ["an empty prompt", { prompt: "" }, "/prompt"],
  ["NUL in a prompt", { prompt: "a\u0000b" }, "/prompt"],
  [
    "NUL deep in a script",
    { model: { provider: "scripted", name: "s", script: { rules: [{ say: "\u0000" }] } } },
    "/model/script/rules/0/say"
  ],
  ["a name with a colon", { name: "a:b" }, "/name"],
  ["a name of 10,000 characters", { name: "n".repeat(10_000) }, "/name"],
  ["an empty name", { name: "" }, "/name"],
  ["no name", { name: undefined }, "/name"],
  ["a number for a name", { name: 7 }, "/name"],
  ["an unknown provider", { model: { provider: "oracle", name: "x" } }, "/model/provider"],
  [
    "a base URL of a model",
    { model: { provider: "openai", name: "x", baseUrl: "http://evil" } },
    "/model/baseUrl"
  ],
  ["maxSteps of nothing", { maxSteps: 0 }, "/maxSteps"],
  ["maxSteps of one and a half", { maxSteps: 1.5 }, "/maxSteps"],
  ["more steps than any run has", { maxSteps: 10_001 }, "/maxSteps"],
  ["a timeout of nothing", { defaultTimeoutMs: 0 }, "/defaultTimeoutMs"],
  ["a timeout of more than a week", { defaultTimeoutMs: 604_800_001 }, "/defaultTimeoutMs"],
  ["a tool that is no server.tool", { tools: ["everything"] }, "/tools/0"],
  ["an execution mode that does not exist", { executionMode: "yolo" }, "/executionMode"],
  ["an unknown field", { naem: "x" }, "/naem"]
]

/** A project with an object, an agent and a context to be wrong about. */
const furnished = Effect.gen(function* () {
  const story = yield* newStoryHere
  const object = yield* story.post("/objects", { type: "Thing", key: "taken", properties: { kept: true } })
  const someone = yield* story.post("/agents", agent())
  yield* story.post("/contexts", { name: "open", agentId: someone.id })
  return { story, object, someone, before: yield* countRows(story) }
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A field that is named in snake_case", () => {
    const named = (errors: ReadonlyArray<Json>) =>
      errors.filter(({ field }) => field !== undefined).map(({ field, pointer }) => [pointer, field])

    it.effect("S001-R51 S000-R35 is refused with its name in camelCase, wherever it stands", () =>
      Effect.gen(function* () {
        const { before, story } = yield* furnished
        const reaction_config = { object_types: [] }
        const answer = yield* story.ask("POST", "/agents", {
          name: "snake",
          prompt: "Look.",
          trigger_type: "reaction",
          reaction_config,
          naem_of: 1,
          reactionConfig: { object_types: [], events: ["created"] }
        })
        expectProblem(answer, 422)
        expect(named(answer.body.errors)).toEqual([
          ["/trigger_type", "triggerType"],
          ["/reaction_config", "reactionConfig"],
          ["/reactionConfig/object_types", "objectTypes"]
        ])
        expect(answer.body.errors.map(({ pointer }: Json) => pointer)).toContain("/naem_of")
        const applied = yield* story.ask("POST", "/agents/apply", {
          agents: [{ name: "snake", prompt: "Look.", trigger_type: "manual" }]
        })
        expect(named(applied.body.errors)).toEqual([["/agents/0/trigger_type", "triggerType"]])
        const chat = yield* story.ask("POST", "/chat", { agent_id: "x", message: "Hello" })
        expect(named(chat.body.errors)).toEqual([["/agent_id", "agentId"]])
        expect(yield* countRows(story)).toEqual(before)
      })
    )
  })

  describe("A body that cannot be read", () => {
    const good = `{"type":"Thing","properties":{}}`
    it.effect.each<readonly [string, string | Uint8Array, Record<string, string>, number]>([
      ["no JSON", `{nope`, {}, 400],
      ["JSON that breaks off", `{"type":"Thing"`, {}, 400],
      ["something after the JSON", `${good} x`, {}, 400],
      ["nothing at all", "", {}, 422],
      ["nothing at all, as a form", "", { "content-type": "application/x-www-form-urlencoded" }, 400],
      ["null", "null", {}, 422],
      ["a list", "[]", {}, 422],
      ["a text", `"Thing"`, {}, 422],
      ["plain text", good, { "content-type": "text/plain" }, 400],
      ["a form", "type=Thing", { "content-type": "application/x-www-form-urlencoded" }, 400],
      ["multipart", "--x", { "content-type": "multipart/form-data; boundary=x" }, 400],
      ["another kind of JSON", good, { "content-type": "application/merge-patch+json" }, 400],
      ["bytes that are no UTF-8", bytes(`{"type":"Thing","properties":{"a":"`, 0xff, 0xfe, `"}}`), {}, 400],
      ["UTF-16", bytes(0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00), {}, 400],
      ["gzip, announced", gzipSync(good), { "content-encoding": "gzip" }, 400],
      ["gzip, not announced", gzipSync(good), {}, 400],
      ["more than 1 MiB", `{"type":"Thing","properties":{"a":"${"x".repeat(1_048_576)}"}}`, {}, 413],
      ["a hundred thousand brackets", "[".repeat(100_000), {}, 422]
    ])("%s", ([, body, headers, status]) =>
      Effect.gen(function* () {
        const { story, before } = yield* furnished
        const answer = yield* story.send("POST", `/api/projects/${story.projectId}/objects`, body, headers)
        expectProblem(answer, status)
        expect(yield* countRows(story)).toEqual(before)
      })
    )

    it.effect("is read when it is UTF-8 that says so, or begins with a byte order mark", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const path = `/api/projects/${story.projectId}/objects`
        const said = yield* story.send("POST", path, good, {
          "content-type": "Application/JSON; charset=UTF-8"
        })
        expect(said.status).toBe(201)
        expect((yield* story.send("POST", path, `\ufeff${good}`)).status).toBe(201)
      })
    )
  })

  describe("A field that does not fit", () => {
    it.effect("is named with its pointer, in each body of the contract", () =>
      Effect.gen(function* () {
        const { story, object, someone, before } = yield* furnished
        const relationship = { type: "NEAR", fromId: object.id, toId: nobody }
        const bodies: ReadonlyArray<readonly [string, string, Record<string, unknown>]> = [
          ["POST", "/objects", { type: "Thing" }],
          ["PATCH", `/objects/${object.id}`, { properties: { kept: false } }],
          ["POST", "/relationships", relationship],
          ["POST", "/agents", agent({ name: "other" })],
          ["PATCH", `/agents/${someone.id}`, { prompt: "Other." }],
          ["POST", "/contexts", { name: "other", agentId: someone.id }],
          ["POST", "/contexts/open/events", { type: "UserMessageEvent", content: "Hello" }],
          ["POST", `/tasks/${nobody}/approve`, {}],
          ["POST", `/tasks/${nobody}/reject`, {}]
        ]
        for (const [method, path, body] of bodies) {
          const answer = yield* story.ask(method, path, { ...body, surplus: 1 })
          expectProblem(answer, 422, "/surplus")
          expect(answer.body.detail).toContain("/surplus")
          for (const field of Object.keys(body)) {
            const wrong = yield* story.ask(method, path, { ...body, [field]: 1.5, x: 1 })
            expectProblem(wrong, 422)
          }
        }
        const made = yield* story.send("POST", "/api/projects", { name: "A project", surplus: 1 })
        expectProblem(made, 422, "/surplus")
        expect(yield* countRows(story)).toEqual(before)
        expect(yield* story.get(`/objects/${object.id}`)).toEqual(object)
        expect(yield* story.get(`/agents/${someone.id}`)).toEqual(someone)
      })
    )

    it.effect("all of several faults are told, each with its place", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const answer = yield* story.ask("POST", "/objects", { type: 1, key: [], properties: "x" })
        expectProblem(answer, 422, "/type")
        expect(answer.body).toMatchObject({
          detail: expect.stringContaining("/type"),
          errors: [{ pointer: "/type" }, { pointer: "/key" }, { pointer: "/properties" }]
        })
        expectProblem(yield* story.ask("POST", "/objects", {}), 422, "/type")
      })
    )

    it.effect("a parameter that does not fit is named too", () =>
      Effect.gen(function* () {
        const { story, someone } = yield* furnished
        const wrong: ReadonlyArray<readonly [string, string]> = [
          ["/objects?limit=0", "limit"],
          ["/objects?limit=-1", "limit"],
          ["/objects?limit=ten", "limit"],
          ["/objects?limit=1.5", "limit"],
          ["/objects?cursor=nowhere", "cursor"],
          ["/objects?tpye=Thing", "tpye"],
          ["/objects?type=a&type=b", "type"],
          ["/objects?type=%00", "type"],
          ["/objects?key=a%00b", "key"],
          ["/relationships?objectId=nope", "objectId"],
          ["/runs?status=asleep", "status"],
          ["/tasks?type=homework", "type"],
          ["/events?after=-1", "after"],
          ["/events?cursor=nowhere", "cursor"],
          [`/agents/${someone.id}/explain?eventId=7`, "eventId"],
          [`/agents/${someone.id}/explain`, "eventId"]
        ]
        for (const [path, name] of wrong) expectProblem(yield* story.ask("GET", path), 422, name)
        expectProblem(yield* story.ask("POST", `/agents/${someone.id}/trigger?wait=maybe`, {}), 422, "wait")
        expect((yield* story.get("/runs")).items).toEqual([])
      })
    )
  })

  describe("A name that cannot be", () => {
    it.effect("a key that another object of the type has: 409, and nothing is written", () =>
      Effect.gen(function* () {
        const { story, object, before } = yield* furnished
        const again = yield* story.ask("POST", "/objects", { type: "Thing", key: "taken" })
        expectProblem(again, 409)
        expect(again.body.reason).toBe("keyTaken")
        const same = yield* story.ask("POST", "/agents", agent())
        expectProblem(same, 409)
        expect(same.body.reason).toBe("nameTaken")
        expect(yield* countRows(story)).toEqual(before)
        expect(yield* story.get(`/objects/${object.id}`)).toEqual(object)
      })
    )

    it.effect("colons, 10,000 characters, and what is no name at all", () =>
      Effect.gen(function* () {
        const { story, someone, before } = yield* furnished
        const long = "x".repeat(10_000)
        const context = (name: unknown) => story.ask("POST", "/contexts", { name, agentId: someone.id })
        for (const name of ["a:b", long, "", " ", "-a", "a/b", "ä", "a\n", null, 1])
          expectProblem(yield* context(name), 422, "/name")
        for (const type of ["a:b", long, "", "1a", "a b", "Tür", null])
          expectProblem(yield* story.ask("POST", "/objects", { type }), 422, "/type")
        for (const key of [long, "", 1]) {
          expectProblem(yield* story.ask("POST", "/objects", { type: "Thing", key }), 422, "/key")
        }
        for (const name of [long, "", "   ", "a\u0000", null])
          expectProblem(yield* story.send("POST", "/api/projects", { name }), 422, "/name")
        expect(yield* countRows(story)).toEqual(before)
      })
    )
  })

  describe("An agent that could not work is refused when it is saved", () => {
    it.effect.each(badAgents)("%s", ([, overrides, pointer, value = ""]) =>
      Effect.gen(function* () {
        const { story, someone, before } = yield* furnished
        const refused = yield* story.ask("POST", "/agents", agent({ name: "other", ...overrides }))
        expectProblem(refused, 422, pointer)
        expect(refused.body.detail).toContain(value)
        const patch = yield* story.ask("PATCH", `/agents/${someone.id}`, overrides)
        if (overrides.name !== undefined || !("name" in overrides)) expectProblem(patch, 422, pointer)
        expect(yield* countRows(story)).toEqual(before)
        expect(yield* story.get(`/agents/${someone.id}`)).toEqual(someone)
      })
    )
  })

  describe("A reference to nothing", () => {
    it.effect("is refused with its pointer, and nothing is written", () =>
      Effect.gen(function* () {
        const { story, object, before } = yield* furnished
        const relate = (fromId: string, toId: string) =>
          story.ask("POST", "/relationships", { type: "NEAR", fromId, toId })
        expectProblem(yield* relate(nobody, object.id), 422, "/fromId")
        expectProblem(yield* relate(object.id, nobody), 422, "/toId")
        expectProblem(yield* relate(object.id, object.id), 422, "/toId")
        expectProblem(yield* relate(object.id, "no id"), 422, "/toId")
        expectProblem(yield* story.ask("POST", "/contexts", { name: "x", agentId: nobody }), 422, "/agentId")
        expectProblem(
          yield* story.ask("POST", "/contexts/open/events", {
            type: "AssistantMessageEvent",
            content: "I am the agent"
          }),
          422,
          "/type"
        )
        for (const body of [{ type: "Nope" }, { events: [] }]) {
          const none = yield* story.ask("POST", "/contexts/open/events", body)
          expectProblem(none, 422, "/type")
          expect(none.body.detail).toMatch(
            /"UserMessageEvent", "SystemPromptEvent", "FileAttachmentEvent"(?:, "\w+")*/
          )
        }
        expect(yield* countRows(story)).toEqual(before)
      })
    )
  })
})
