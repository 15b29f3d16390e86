/**
 * Tools that an event defines: another name for a tool of the agent, with some of its arguments given.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { addEvent, countOf, firstOf, logOf, newContext } from "../testing/context-words.ts"
import { defineTool, newestRun, talk } from "../testing/define-words.ts"
import { shownTo } from "../testing/mcp-runs.ts"
import { addServer, newDiary, program } from "../testing/mcp-words.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { ofType } from "../testing/run-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { answer } from "../testing/question-words.ts"
import { calling, callsOf, saying, type ScriptedCall, suggestionsOf } from "../testing/story-words.ts"
import { worker } from "../testing/sub-agent-words.ts"
import { naming } from "../testing/naming.ts"

const noteFinding = { name: "note_finding", tool: "create_object", arguments: { type: "Finding" } }

const chargeFive = { name: "charge_five", tool: "shop__charge", arguments: { amount: 5 } }

const noting = (
  args: Record<string, unknown> = { reasoning: "It is severe", properties: { severity: "high" } }
): ScriptedCall => ({
  tool: "note_finding",
  arguments: args
})

/** A conversation whose agent makes these calls when it is spoken to. */
const conversation = Effect.fnUntraced(function* (
  calls: ReadonlyArray<ScriptedCall>,
  overrides: Record<string, unknown> = {}
) {
  const story = yield* newStoryHere
  const agent = yield* newContext(story, "talk", calling(...calls), overrides)
  return { story, agent }
})

/** The tools that the model was shown in the newest run, by name. */
const shownNow = (story: Story): Effect.Effect<Record<string, Json>> =>
  Effect.map(
    Effect.flatMap(newestRun(story), (run) => shownTo(story, run)),
    (tools) => Object.fromEntries(tools.map((tool) => [tool.name, tool]))
  )

/** What became of the calls of the newest run. */
const callsNow = (story: Story) => Effect.flatMap(newestRun(story), (run) => callsOf(story, run))

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("S004-F02 DefineToolEvent: callable tools through events", () => {
    it.effect("is shown to the model with what is left to say, and described by what was given", () =>
      Effect.gen(function* () {
        const { story } = yield* conversation([])
        expect((yield* defineTool(story, "talk", noteFinding)).status).toBe(204)
        const described = { ...noteFinding, name: "note_risk", description: "Writes a risk down." }
        yield* defineTool(story, "talk", described)
        yield* talk(story, "talk", "Go")
        const { create_object, note_finding, note_risk } = yield* shownNow(story)
        const { type: _type, ...open } = create_object.inputSchema.properties
        expect(Object.keys(open)).toContain("key")
        const { inputSchema } = create_object
        expect(note_finding.inputSchema).toEqual({
          ...inputSchema,
          properties: open,
          required: inputSchema.required.filter((name: string) => name !== "type")
        })
        expect(note_finding.description).toEqual(
          naming("create_object", 'type = "Finding"', create_object.description)
        )
        expect(note_risk.description).toBe("Writes a risk down.")
      })
    )

    it.effect("a call of it is a call of the tool, with the given arguments beside the model's", () =>
      Effect.gen(function* () {
        const { story } = yield* conversation([noting()])
        yield* defineTool(story, "talk", noteFinding)
        const log = yield* talk(story, "talk", "Go")
        const { items } = yield* story.get("/objects?type=Finding")
        expect(items).toMatchObject([
          { type: "Finding", properties: { severity: "high" }, actorType: "agent" }
        ])
        const made = {
          tool: "create_object",
          arguments: { type: "Finding", properties: { severity: "high" } }
        }
        expect(yield* callsNow(story)).toMatchObject([{ ...made, status: "completed", decision: "execute" }])
        const [started, completed] = log.filter((event) => event.type.startsWith("ToolCall"))
        expect(started).toMatchObject({ ...noting(), standsFor: made })
        expect(completed).toMatchObject({ type: "ToolCallCompletedEvent", tool: "note_finding" })
        const { messages } = yield* story.get("/contexts/talk/state")
        const parts = messages.flatMap(({ content }: Json) => (Array.isArray(content) ? content : []))
        expect(parts.filter((part: Json) => "name" in part).map((part: Json) => part.name)).toEqual([
          "note_finding",
          "note_finding"
        ])
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect("a call that names what was given is refused, and says what the tool takes", () =>
      Effect.gen(function* () {
        const { story } = yield* conversation([
          noting({ type: "Person", properties: {} }),
          noting({ properties: 7 })
        ])
        yield* defineTool(story, "talk", noteFinding)
        yield* talk(story, "talk", "Go")
        const [named, unfit] = yield* callsNow(story)
        expect(named).toMatchObject({
          tool: "create_object",
          arguments: { type: "Finding" },
          status: "failed",
          result: { reason: "invalid", pointer: "/type" }
        })
        expect(named.result.error).toEqual(naming("/type: ", "note_finding"))
        expect(named.result.error).toContain("{key?: string, properties: object")
        expect(unfit).toMatchObject({ status: "failed", result: { pointer: "/properties" } })
        expect(unfit.result.error).not.toContain("type: string")
        expect((yield* story.get("/objects")).items).toEqual([])
      })
    )

    it.effect("goes through the same gate: capabilities and mode are those of the agent", () =>
      Effect.gen(function* () {
        const denied = yield* conversation([noting()], { capabilities: { allowedObjectTypes: ["Person"] } })
        yield* defineTool(denied.story, "talk", noteFinding)
        yield* talk(denied.story, "talk", "Go")
        expect(yield* callsNow(denied.story)).toMatchObject([{ status: "refused", decision: "refuse" }])
        const suggesting = yield* conversation([noting()], { executionMode: "suggest" })
        yield* defineTool(suggesting.story, "talk", noteFinding)
        yield* talk(suggesting.story, "talk", "Go")
        expect(yield* callsNow(suggesting.story)).toMatchObject([{ decision: "suggest" }])
        expect(yield* suggestionsOf(suggesting.story, 1)).toMatchObject([
          { type: "object_create_suggestion" }
        ])
        expect((yield* suggesting.story.get("/objects")).items).toEqual([])
      })
    )

    it.effect("is no way around the doom loop: a call under either name is the same call", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const same = { reasoning: "It is so", properties: { a: 1 } }
        const byName: ScriptedCall = { tool: "create_object", arguments: { type: "Finding", ...same } }
        const each = [byName, noting(same), { ...noting(same), tool: "note_again" }, byName, noting(same)]
        const model = scripted(each.map((call, step) => ({ when: `step == ${step}`, calls: [call] })))
        yield* newContext(story, "talk", model)
        yield* defineTool(story, "talk", noteFinding)
        yield* defineTool(story, "talk", { ...noteFinding, name: "note_again" })
        yield* talk(story, "talk", "Go")
        const run = yield* newestRun(story)
        expect(run.status).toBe("failed")
        expect(firstOf(yield* logOf(story, "talk"), "AgentTurnFailedEvent").reason).toBe("doomLoop")
        const calls = yield* callsOf(story, run)
        expect(calls.map(({ status, tool }) => [tool, status])).toEqual([
          ["create_object", "completed"],
          ["create_object", "completed"],
          ["create_object", "refused"],
          ["create_object", "refused"],
          ["create_object", "refused"]
        ])
        expect(calls.at(2)).toMatchObject({ arguments: byName.arguments, result: { reason: "doomLoop" } })
        expect((yield* story.get("/objects?type=Finding")).items).toHaveLength(2)
      })
    )

    it.effect("a name is taken back, and is one that the model does not have then", () =>
      Effect.gen(function* () {
        const { story } = yield* conversation([noting()])
        yield* defineTool(story, "talk", noteFinding)
        expect((yield* defineTool(story, "talk", { name: "note_finding", tool: null })).status).toBe(204)
        yield* talk(story, "talk", "Go")
        expect(Object.keys(yield* shownNow(story))).not.toContain("note_finding")
        const [call] = yield* callsNow(story)
        expect(call).toMatchObject({ tool: "note_finding", status: "refused" })
        expect(call.result.error).toContain("note_finding")
      })
    )

    it.effect("the newest definition of a name stands", () =>
      Effect.gen(function* () {
        const { story } = yield* conversation([noting()])
        yield* defineTool(story, "talk", noteFinding)
        yield* defineTool(story, "talk", { ...noteFinding, arguments: { type: "Risk" } })
        yield* talk(story, "talk", "Go")
        expect((yield* story.get("/objects")).items).toMatchObject([{ type: "Risk" }])
        const { config } = yield* story.get("/contexts/talk/state")
        const shown = { arguments: { type: "Risk" }, description: null, inputSchema: null, timeoutMs: null }
        expect(config.tools).toEqual([{ ...noteFinding, ...shown }])
      })
    )

    it.effect("an agent that lost the tool is not shown the name, and a call says why", () =>
      Effect.gen(function* () {
        const { agent, story } = yield* conversation([noting()])
        yield* defineTool(story, "talk", noteFinding)
        yield* story.patch(`/agents/${agent.id}`, { tools: ["graph.get_object"] })
        yield* talk(story, "talk", "Go")
        expect(Object.keys(yield* shownNow(story))).toEqual(["get_object"])
        const [call] = yield* callsNow(story)
        expect(call).toMatchObject({ tool: "create_object", status: "refused" })
        expect(call.result.error).toEqual(naming("note_finding", "create_object", "get_object"))
      })
    )

    it.effect("a fork has the names of the log that it shares, as far as its own agent has the tools", () =>
      Effect.gen(function* () {
        const { story } = yield* conversation([noting()])
        yield* defineTool(story, "talk", noteFinding)
        yield* story.post("/contexts/talk/fork", { name: "same" })
        const reader = yield* newContext(story, "reading", calling(noting()), { tools: ["graph.get_*"] })
        yield* story.post("/contexts/talk/fork", { name: "other", agentId: reader.id })
        yield* talk(story, "same", "Go")
        expect(yield* callsNow(story)).toMatchObject([{ tool: "create_object", status: "completed" }])
        yield* talk(story, "other", "Go")
        expect(yield* callsNow(story)).toMatchObject([{ tool: "create_object", status: "refused" }])
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect("works with a tool of a foreign server, as long as it says what a person saw", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        yield* addServer(story, program(diary))
        const call = { tool: "charge_five", arguments: {} }
        yield* newContext(story, "talk", calling(call), { tools: ["shop.charge"] })
        expect((yield* defineTool(story, "talk", chargeFive)).status).toBe(204)
        const log = yield* talk(story, "talk", "Go")
        expect(yield* diary.called).toEqual([{ tool: "charge", arguments: { amount: 5 } }])
        expect(yield* callsNow(story)).toMatchObject([
          { tool: "shop__charge", arguments: { amount: 5 }, status: "completed", result: "Charged 5." }
        ])
        expect(ofType(log, "ToolCallStartedEvent")).toMatchObject([
          { tool: "charge_five", standsFor: { tool: "shop__charge", arguments: { amount: 5 } } }
        ])
      })
    )

    it.effect("is not called when the foreign server says something else of its tool than a person saw", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        yield* addServer(story, program(diary))
        yield* newContext(story, "talk", calling({ tool: "charge_five", arguments: {} }), {
          tools: ["shop.*"]
        })
        yield* defineTool(story, "talk", chargeFive)
        yield* diary.say({ charge: { description: "Charges all there is." } })
        yield* talk(story, "talk", "Go")
        const [call] = yield* callsNow(story)
        expect(call).toMatchObject({ tool: "shop__charge", arguments: { amount: 5 }, status: "refused" })
        expect(call.result.error).toMatch(/\S/)
        expect(yield* diary.called).toEqual([])
        yield* talk(story, "talk", "Again")
        const names = Object.keys(yield* shownNow(story))
        expect(names).toContain("shop__lookup")
        expect(names.filter((name) => name.includes("charge"))).toEqual([])
      })
    )

    it.effect("a question under another name reaches a person, and its answer the model", () =>
      Effect.gen(function* () {
        const { story } = yield* conversation([{ tool: "may_i", arguments: { question: "May I?" } }], {
          tools: ["run.ask_user"]
        })
        const given = { options: ["yes", "no"] }
        yield* defineTool(story, "talk", { name: "may_i", tool: "ask_user", arguments: given })
        yield* addEvent(story, "talk", "Go")
        const run = yield* eventually(newestRun(story), (newest) => newest?.status === "paused")
        expect((yield* answer(story, run, "yes")).status).toBe(200)
        const log = yield* eventually(
          logOf(story, "talk"),
          (events) => countOf(events, "AgentTurnCompletedEvent") > 0
        )
        expect(ofType(log, "ToolCallCompletedEvent")).toMatchObject([
          { tool: "may_i", result: { answer: "yes" } }
        ])
        expect(yield* callsOf(story, run)).toMatchObject([{ tool: "ask_user", result: { answer: "yes" } }])
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect("a task is handed over under another name, and what came of it is told under that name", () =>
      Effect.gen(function* () {
        const { story } = yield* conversation([{ tool: "research", arguments: { task: "Look." } }], {
          tools: ["run.*"],
          subAgents: ["*"]
        })
        yield* story.post("/agents", worker("researcher", saying("Found it.")))
        yield* defineTool(story, "talk", {
          name: "research",
          tool: "spawn_agent",
          arguments: { agent: "researcher" }
        })
        const log = yield* talk(story, "talk", "Go")
        expect(ofType(log, "ToolCallStartedEvent")).toMatchObject([{ tool: "research", waitsFor: "run" }])
        expect(ofType(log, "ToolCallCompletedEvent")).toMatchObject([
          { tool: "research", result: { agent: "researcher", summary: "Found it." } }
        ])
        const run = (yield* story.get("/runs?limit=200")).items.find(
          (each: Json) => each.contextName === "talk"
        )
        expect(yield* callsOf(story, run)).toMatchObject([
          { tool: "spawn_agent", arguments: { agent: "researcher", task: "Look." }, status: "completed" }
        ])
      })
    )
  })
})
