/**
 * Agents that name what is not there, say nothing or can do nothing: refused or warned of when they are saved, not by their first run.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { runOf, shownTo } from "../testing/mcp-runs.ts"
import { addServer, newDiary, program } from "../testing/mcp-words.ts"
import { type Json, scripted, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { agentsOf, calling, endedRuns, make, saying, suggestionsOf } from "../testing/story-words.ts"

/** An agent in the specification's own fields: nothing says which tools it has. */
const specified = {
  name: "specified",
  prompt: "A person came. Say who it is.",
  triggerType: "reaction",
  reactionConfig: { objectTypes: ["Person"], events: ["created"] }
}

const nothingAllowed = {
  canCreateObjects: false,
  canUpdateObjects: false,
  canDeleteObjects: false,
  canCreateRelationships: false,
  canUpdateRelationships: false,
  canDeleteRelationships: false
}

const reading = ["graph.search_objects", "graph.get_object", "graph.neighbors"]

const codesOf = ({ warnings }: Json): ReadonlyArray<readonly [string, string]> =>
  warnings.map(({ code, pointer }: Json) => [code, pointer])

const applied = (story: Story, agent: Json, dryRun = false): Effect.Effect<Json> =>
  Effect.map(story.post("/agents/apply", { agents: [agent], dryRun }), ({ agents }) => agents[0])

/** What a definition says, the place that is wrong, and a value that the refusal names. */
const impossible: ReadonlyArray<readonly [string, Record<string, unknown>, string, string?]> = [
  ["a built-in tool that does not exist", { tools: ["graph.*", "run.ask"] }, "/tools/1", "run.ask_user"],
  [
    "a glob of built-in tools that stands for none",
    { tools: ["graph.getobj*"] },
    "/tools/0",
    "graph.get_object"
  ],
  [
    "a repeatable tool that does not exist",
    { repeatableTools: ["graph.nope"] },
    "/repeatableTools/0",
    "graph."
  ],
  [
    "a tool of a step that does not exist",
    { flowType: "loop", steps: [{ name: "a", prompt: "A", tools: ["run.exit"] }] },
    "/steps/0/tools/0",
    "run.exit_loop"
  ],
  ["a tool that spawns, and nobody to spawn", { tools: ["run.spawn_agent"], subAgents: [] }, "/subAgents"],
  [
    "reasoning of a script",
    { model: { ...scripted([{ say: "Hi." }]), reasoning: "low" } },
    "/model/reasoning",
    "scripted"
  ],
  [
    "options of a recorded run",
    { model: { provider: "replay", name: "r", providerOptions: { a: 1 } } },
    "/model/providerOptions",
    "replay"
  ],
  [
    "an option that sends requests elsewhere",
    { model: { provider: "openai-compatible", name: "m", providerOptions: { base_url: "http://a" } } },
    "/model/providerOptions/base_url",
    "base_url"
  ],
  [
    "an option inside others that holds a key",
    { model: { provider: "anthropic", name: "m", providerOptions: { a: [{ authorizationToken: "t" }] } } },
    "/model/providerOptions/a/0/authorizationToken"
  ],
  [
    "an option in place of what the server sends",
    { model: { provider: "openrouter", name: "m", providerOptions: { messages: [] } } },
    "/model/providerOptions/messages"
  ],
  [
    "options that are too long",
    { model: { provider: "openai", name: "m", providerOptions: { user: "u".repeat(5_000) } } },
    "/model/providerOptions",
    "4096"
  ],
  [
    "an option of a step's model that keeps requests at the provider",
    {
      flowType: "loop",
      steps: [
        { name: "a", prompt: "A", model: { provider: "openai", name: "m", providerOptions: { store: true } } }
      ]
    },
    "/steps/0/model/providerOptions/store"
  ],
  ["a prompt of blanks", { prompt: " \n\t" }, "/prompt"],
  [
    "a step's prompt of blanks",
    { flowType: "sequential", steps: [{ name: "a", prompt: "  " }] },
    "/steps/0/prompt"
  ],
  [
    "a scripted model without a script",
    { model: { provider: "scripted", name: "nobody" } },
    "/model/script",
    "nobody"
  ],
  [
    "a step's scripted model without a script",
    {
      flowType: "loop",
      steps: [{ name: "a", prompt: "A", model: { provider: "scripted", name: "nobody" } }]
    },
    "/steps/0/model/script",
    "nobody"
  ],
  [
    "a scripted fallback without a script",
    { model: { provider: "openai", name: "x", fallback: { provider: "scripted", name: "nobody" } } },
    "/model/fallback/name",
    "nobody"
  ]
]

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("An agent that names what is not there is refused when it is saved", () => {
    it.effect.each(impossible)("%s", ([, overrides, pointer, value = ""]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = { name: "somebody", prompt: "Look.", triggerType: "manual" }
        const someone = yield* story.post("/agents", agent)
        const refused = yield* story.ask("POST", "/agents", { ...agent, name: "other", ...overrides })
        expectProblem(refused, 422, pointer)
        expect(refused.body.detail).toContain(value)
        expectProblem(yield* story.ask("PATCH", `/agents/${someone.id}`, overrides), 422, pointer)
        expect(yield* agentsOf(story)).toEqual([someone])
      })
    )
  })

  describe("An agent whose definition names no tools", () => {
    it.effect("S000-R21 S002-R02 has those of the graph, and what it changes waits for a person", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const call = { type: "Note", properties: {}, reasoning: "It is new." }
        const agent = yield* story.post("/agents", {
          ...specified,
          model: calling({ tool: "create_object", arguments: call })
        })
        expect([agent.tools, agent.warnings]).toEqual([["graph.*"], []])
        yield* make(story, "Person")
        const [run] = yield* endedRuns(story, agent, 1)
        expect((yield* shownTo(story, run)).map(({ name }: Json) => name)).toEqual([
          "search_objects",
          "get_object",
          "neighbors",
          "create_object",
          "update_object",
          "delete_object",
          "create_relationship",
          "update_relationship",
          "delete_relationship"
        ])
        expect(yield* suggestionsOf(story, 1)).toMatchObject([{ type: "object_create_suggestion" }])
      })
    )

    it.effect(
      "S001-R29 S001-R30 S001-R31 S001-R32 has none that its capabilities forbid, as they change",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const model = saying("Seen.")
          const agent = yield* story.post("/agents", { ...specified, model, capabilities: nothingAllowed })
          expect(agent.tools).toEqual(reading)
          const changed = (patch: Json) => story.patch(`/agents/${agent.id}`, patch)
          expect(yield* changed({ capabilities: { allowedObjectTypes: [] } })).toMatchObject({
            tools: reading
          })
          const some = yield* changed({
            capabilities: { canDeleteObjects: false, canDeleteRelationships: false }
          })
          expect(some.tools).toEqual([
            ...reading,
            "graph.create_object",
            "graph.update_object",
            "graph.create_relationship",
            "graph.update_relationship"
          ])
          expect(yield* changed({ capabilities: null })).toMatchObject({ tools: ["graph.*"] })
          // Tools that somebody chose stay.
          yield* changed({ tools: ["graph.get_object"] })
          expect(yield* changed({ capabilities: nothingAllowed })).toMatchObject({
            tools: ["graph.get_object"]
          })
          expect(yield* changed({ tools: null })).toMatchObject({ tools: reading })
        })
    )

    it.effect("S001-R55 gets none from a definition that names none where it was kept without any", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = { ...specified, model: saying("Seen.") }
        yield* applied(story, { ...agent, tools: [] })
        const again = yield* applied(story, agent)
        expect([again.outcome, codesOf(again)]).toEqual(["unchanged", [["noTools", "/tools"]]])
        expect(yield* agentsOf(story)).toMatchObject([{ tools: [], version: 1 }])
        expect(yield* applied(story, { ...agent, tools: ["graph.*"] })).toMatchObject({ outcome: "updated" })
      })
    )
  })

  describe("An agent that can do nothing is saved with a warning", () => {
    const idle: ReadonlyArray<readonly [string, Json, ReadonlyArray<readonly [string, string]>]> = [
      ["no tools", { tools: [] }, [["noTools", "/tools"]]],
      [
        "tools that its capabilities all forbid",
        { tools: ["graph.create_*", "graph.delete_object"], capabilities: nothingAllowed },
        [["nothingAllowed", "/capabilities"]]
      ],
      [
        "tools that no type of object is allowed for",
        { tools: ["graph.update_object"], capabilities: { allowedObjectTypes: [] } },
        [["nothingAllowed", "/capabilities"]]
      ],
      [
        "tools of a step alone",
        { tools: [], flowType: "loop", steps: [{ name: "a", prompt: "A", tools: ["tasks.*"] }] },
        []
      ],
      ["one tool that reads", { tools: ["graph.get_object"], capabilities: nothingAllowed }, []]
    ]

    it.effect.each(idle)("S000-R02 %s: in each answer about it", ([, overrides, codes]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = { ...specified, model: saying("Seen."), ...overrides }
        expect(codesOf(yield* applied(story, agent, true))).toEqual(codes)
        const made = yield* story.post("/agents", agent)
        expect(codesOf(made)).toEqual(codes)
        expect(codesOf(yield* story.get(`/agents/${made.id}`))).toEqual(codes)
        expect(codesOf(yield* story.patch(`/agents/${made.id}`, { role: "Waits" }))).toEqual(codes)
        expect((yield* agentsOf(story)).map(codesOf)).toEqual([codes])
      })
    )
  })

  describe("An agent that may only suggest, and has only what cannot be suggested", () => {
    it.effect("S000-R21 is saved with a warning, until it has a tool that reads or may act", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const server = yield* addServer(story, program(yield* newDiary))
        const agent = {
          name: "buyer",
          prompt: "Buy.",
          triggerType: "manual",
          tools: ["shop.charge", "shop.put"]
        }
        const codes = [["nothingAllowed", "/executionMode"]]
        const saved = yield* applied(story, agent, true)
        expect([codesOf(saved), saved.warnings[0].message]).toEqual([
          codes,
          expect.stringContaining("shop.put")
        ])
        const made = yield* story.post("/agents", agent)
        expect(codesOf(made)).toEqual(codes)
        const changed = (patch: Json) => Effect.map(story.patch(`/agents/${made.id}`, patch), codesOf)
        expect(yield* changed({ executionMode: "hybrid" })).toEqual([])
        expect(yield* changed({ executionMode: "suggest", tools: ["shop.*"] })).toEqual([])
        expect(yield* changed({ tools: ["shop.put", "graph.get_object"] })).toEqual([])
        const both = { tools: ["shop.put", "graph.create_object"], capabilities: nothingAllowed }
        expect(yield* changed(both)).toEqual(codes)
        // What the server does not offer now may read.
        yield* story.patch(`/mcp-servers/${server.id}`, { enabled: false })
        expect(yield* changed({ tools: ["shop.put"] })).toEqual([["unknownTool", "/tools/0"]])
      })
    )
  })

  describe("A tool of a foreign server that is not there", () => {
    it.effect(
      "S002-R02 is a warning until the server is there, and each run says what it was not offered",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const tools = ["graph.get_object", "shop.lookup", "shop.nope"]
          const step = { name: "a", prompt: "A", tools: ["shop.put"] }
          const overrides = {
            tools,
            flowType: "sequential",
            steps: [step],
            model: scripted([{ say: "Done." }])
          }
          const without = yield* runOf(story, [], overrides)
          const agent = yield* story.get(`/agents/${without.agentId}`)
          expect(codesOf(agent)).toEqual([
            ["unknownServer", "/tools/1"],
            ["unknownServer", "/tools/2"],
            ["unknownServer", "/steps/0/tools/0"]
          ])
          expect(without.missingTools).toEqual(["shop.lookup", "shop.nope", "shop.put"])
          const server = yield* addServer(story, program(yield* newDiary))
          expect(codesOf(yield* story.get(`/agents/${agent.id}`))).toEqual([["unknownTool", "/tools/2"]])
          yield* story.patch(`/agents/${agent.id}`, { steps: null, flowType: null })
          const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
          expect(run.missingTools).toEqual(["shop.nope"])
          expect((yield* story.get(`/runs/${without.id}`)).missingTools).toEqual(without.missingTools)
          yield* story.patch(`/mcp-servers/${server.id}`, { enabled: false })
          expect(codesOf(yield* story.get(`/agents/${agent.id}`))).toEqual([
            ["unknownTool", "/tools/1"],
            ["unknownTool", "/tools/2"]
          ])
        })
    )
  })
})
