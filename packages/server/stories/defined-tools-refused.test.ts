/**
 * Definitions of tools that are refused when they are sent, with the place.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { newContext, typesOf, logOf, countOf } from "../testing/context-words.ts"
import { defineTool } from "../testing/define-words.ts"
import { addServer, newDiary, program } from "../testing/mcp-words.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

const finding = { name: "note_finding", tool: "create_object", arguments: { type: "Finding" } }

/** A definition that is refused: what is wrong with it, where, and a value that the refusal names. */
const wrong: ReadonlyArray<readonly [string, Record<string, unknown>, string, string?]> = [
  ["a tool that does not exist", { tool: "create_objekt" }, "/tool", "create_object"],
  ["a tool by the name of its server, too", { tool: "graph.create_object" }, "/tool", "create_object"],
  ["a tool that the agent may not use", { tool: "delete_object" }, "/tool", "delete_object"],
  ["a tool that needs agents to spawn", { tool: "spawn_agent" }, "/tool", "spawn_agent"],
  ["the end of a loop", { tool: "exit_loop", arguments: {} }, "/tool"],
  ["a name that is none", { name: "note finding" }, "/name"],
  ["a name that is empty", { name: "" }, "/name", "64"],
  ["a name that is too long", { name: "n".repeat(65) }, "/name", "64"],
  ["a name that the agent's tool has", { name: "get_object" }, "/name", "get_object"],
  ["a tool's name that the agent lacks", { name: "delete_object" }, "/name", "delete_object"],
  ["the name of the end of a loop", { name: "exit_loop" }, "/name", "exit_loop"],
  ["the name by which tasks are handed over", { name: "spawn_agent" }, "/name", "spawn_agent"],
  ["the name by which a person is asked", { name: "ask_user" }, "/name", "ask_user"],
  ["a name as foreign servers have them", { name: "shop__note" }, "/name"],
  ["its own name", { name: "again", tool: "again" }, "/tool", "again"],
  ["a chain", { tool: "known", arguments: {} }, "/tool", "create_object"],
  ["an argument that the tool does not have", { arguments: { tipe: "A" } }, "/arguments/tipe", "type"],
  ["a value that does not fit", { arguments: { type: 7 } }, "/arguments/type"],
  ["a value out of bounds", { arguments: { confidence: 2 } }, "/arguments/confidence", "1"],
  ["a text that the tool itself refuses", { arguments: { type: "" } }, "/arguments/type"],
  ["a text of the wrong form", { arguments: { type: "7 up" } }, "/arguments/type"],
  [
    "an id that the tool itself refuses",
    { tool: "get_object", arguments: { objectId: "7" } },
    "/arguments/objectId"
  ],
  ["an identity", { arguments: { user_id: "me" } }, "/arguments/user_id", "user_id"],
  ["an identity that the tool knows", { tool: "shop__put", arguments: { token: "abc" } }, "/arguments/token"],
  ["arguments that are none", { arguments: ["Finding"] }, "/arguments"],
  [
    "more arguments than can be given",
    { arguments: { properties: { text: "ä".repeat(33_000) } } },
    "/arguments",
    "65536"
  ],
  ["a tool that the foreign server does not list", { tool: "shop__nothing" }, "/tool", "shop__nothing"],
  [
    "a value that the foreign tool does not take",
    { tool: "shop__charge", arguments: { amount: 0 } },
    "/arguments/amount",
    "1"
  ],
  ["no tool at all", { tool: undefined }, "/tool"],
  ["a description that is too long", { description: "d".repeat(4_001) }, "/description", "4000"]
]

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A tool that cannot be defined is refused when it is sent, and nothing is kept", () => {
    it.effect.each(wrong)("S004-F02 %s", ([, overrides, pointer, value = ""]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        if (JSON.stringify(overrides).includes("shop__")) {
          const diary = yield* newDiary
          yield* diary.say({
            put: { inputSchema: { type: "object", properties: { token: { type: "string" } } } }
          })
          yield* addServer(story, program(diary))
        }
        const tools = ["graph.get_*", "graph.create_*", "graph.update_object", "run.*", "shop.*"]
        yield* newContext(story, "talk", undefined, { tools })
        yield* defineTool(story, "talk", { ...finding, name: "known" })
        const before = yield* countRows(story)
        const answer = yield* defineTool(story, "talk", { ...finding, ...overrides })
        expectProblem(answer, 422, pointer)
        expect(JSON.stringify(answer.body)).toContain(value)
        expect(yield* countRows(story)).toEqual(before)
      })
    )

    it.effect("one that would trigger a turn keeps nothing either, and begins no run", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk")
        const before = yield* countRows(story)
        const event = { ...finding, tool: "nothing", triggersAgentTurn: true }
        expectProblem(yield* defineTool(story, "talk", event), 422, "/tool")
        expect(yield* countRows(story)).toEqual(before)
      })
    )

    it.effect("of sixty that are sent at once fifty are kept, whichever they are", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk")
        const answers = yield* Effect.forEach(
          Array.from({ length: 60 }, (_, n) => `note_${n}`),
          (name) => defineTool(story, "talk", { ...finding, name }),
          { concurrency: "unbounded" }
        )
        const refusals = answers.filter(({ status }) => status !== 204)
        expect(refusals).toHaveLength(10)
        for (const refusal of refusals) expectProblem(refusal, 422, "/name")
        const log = yield* logOf(story, "talk")
        expect(countOf(log, "DefineToolEvent")).toBe(50)
        const [known] = log.filter(({ type }) => type === "DefineToolEvent")
        // A name that is there already takes no further place, and one that is taken back makes room.
        expect((yield* defineTool(story, "talk", { ...finding, name: known.name })).status).toBe(204)
        yield* defineTool(story, "talk", { name: known.name, tool: null })
        expect((yield* defineTool(story, "talk", { ...finding, name: "another" })).status).toBe(204)
        expect(typesOf(log)).not.toContain("AgentTurnStartedEvent")
      })
    )
  })
})
