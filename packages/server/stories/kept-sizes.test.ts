/**
 * Numbers that are short where they are sent and long where they are kept: measured as they are kept, at every door.
 */
import { describe, expect, layer } from "@effect/vitest"
import { jsonBounds } from "@tropism/domain/json"
import { keptBytes, keptChars } from "@tropism/domain/kept-size"
import { Effect } from "effect"
import { toolLimits } from "../src/limits.ts"
import { deliver, listenerWithHook } from "../testing/delivery-words.ts"
import { importLines, jsonl } from "../testing/import-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { atTheDoor } from "../testing/person-words.ts"
import { scripted, type Story } from "../testing/platform.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import { asker } from "../testing/question-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"
import { naming } from "../testing/naming.ts"

/** So many numbers, of 7 characters each where they are sent and 327 where they are kept, the comma included. */
const tiny = (count: number): ReadonlyArray<number> => Array.from({ length: count }, () => 5e-324)

const thing = (count: number) => ({ type: "Thing", properties: { tiny: tiny(count) } })

const longest = (story: Story, table: string, column: string) =>
  Effect.map(
    ask(story.access, `select max(length(${column}::text)) from kb.${table} where project_id = $1`, [
      story.projectId
    ]),
    ([row]) => Number(row?.[0] ?? 0)
  )

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A document is measured as it is kept", () => {
    it.effect("to the character, as PostgreSQL writes it", () =>
      Effect.gen(function* () {
        const { access } = yield* SharedServer
        const powers = Array.from({ length: 633 }, (_, index) => index - 324)
        const numbers = [1, -1, 1.5, -9.87654321e-7, 1e21, 0.1, 5e-324, Number.MAX_VALUE].concat(
          powers.flatMap((power) => [Number(`1e${power}`), Number(`-1.2345678901234567e${power}`)])
        )
        const values = [numbers, ...numbers, { a: { "é 1e-7": [1e-7, "1e-7 \n", null] } }, "5e-324"]
        const rows = yield* ask(
          access,
          "select length(one::jsonb::text), octet_length(one::jsonb::text) from unnest($1::text[]) with ordinality as given(one, place) order by place",
          [values.map((value) => JSON.stringify(value))]
        )
        // PostgreSQL puts a space behind each comma and each colon.
        const spaces = values.map((value) =>
          Array.isArray(value) ? value.length - 1 : typeof value === "object" ? 4 : 0
        )
        expect(rows).toEqual(
          values.map((value, index) => [
            keptChars(value) + (spaces[index] ?? 0),
            keptBytes(value) + (spaces[index] ?? 0)
          ])
        )
      })
    )

    it.effect("as properties of an object, however they come, and nothing is written", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { maxObjectBytes } = jsonBounds
        const most = Math.floor((maxObjectBytes - `{"tiny":[]}`.length) / 327)
        const kept = yield* story.post("/objects", thing(most))
        const before = yield* countRows(story)
        const refused = yield* story.ask("POST", "/objects", thing(most + 1))
        expectProblem(refused, 422, "/properties")
        const added = { properties: { more: tiny(10) } }
        expectProblem(yield* story.ask("PATCH", `/objects/${kept.id}`, added), 422, "/properties")
        const told = yield* importLines(story, jsonl(thing(2 * most)))
        expect(told.find(({ type }) => type === "badLine")).toMatchObject({
          message: expect.stringContaining("/properties")
        })
        expect(yield* countRows(story)).toEqual(before)
        expect(yield* longest(story, "graph_objects", "properties")).toBeLessThan(1.1 * maxObjectBytes)
      })
    )

    it.effect("as a body that is kept as it comes", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, hook } = yield* listenerWithHook(story)
        const large = { input: tiny(10_000) }
        const refused = yield* story.ask("POST", `/agents/${agent.id}/trigger`, large)
        expectProblem(refused, 422, "")
        expect(refused.body.detail).toEqual(naming(/\b32\d{5}\b/, 1048576))
        expect((yield* deliver(story, hook, JSON.stringify(large))).status).toBe(422)
        expect((yield* story.get("/runs")).items).toEqual([])
      })
    )

    it.effect("as arguments of a person's call, of which one that may not be made keeps the beginning", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const admin = yield* atTheDoor(story)
        const { argumentsMaxChars, deniedArgumentsMaxChars } = toolLimits
        const { isError, result } = yield* admin.call("create_object", thing(2_000))
        expect(isError).toBe(true)
        expect(result.error).toMatch(/\b400000\b/)
        const viewer = yield* atTheDoor(yield* asUser(story, "viewer"))
        const denied = { reason: "forbidden", error: naming("editor", "viewer") }
        for (const count of [700, 2_000])
          expect(yield* viewer.call("create_object", thing(count))).toEqual({ isError: true, result: denied })
        const { items } = yield* story.get("/denials")
        expect(items.map(({ change }: { change: unknown }) => change)).toEqual([
          null,
          { type: "create", objectType: "Thing", key: null, data: { tiny: expect.any(Array) } }
        ])
        expect(yield* longest(story, "denials", "change")).toBeLessThan(1.1 * deniedArgumentsMaxChars)
        expect(yield* longest(story, "tool_calls", "arguments")).toBeLessThan(1.1 * deniedArgumentsMaxChars)
        expect(argumentsMaxChars).toBeGreaterThan(10 * deniedArgumentsMaxChars)
      })
    )

    it.effect("as arguments of an agent's call, which is told so and goes on", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const model = scripted([
          { when: "step == 0", calls: [{ tool: "create_object", arguments: thing(2_000) }] },
          { say: "Done." }
        ])
        const agent = yield* asker(story, model)
        const run = yield* story.post(`/agents/${agent.id}/trigger`)
        expect(run.status).toBe("completed")
        const [call] = yield* callsOf(story, run)
        expect(call).toMatchObject({
          status: "failed",
          result: { error: expect.any(String) }
        })
        expect(yield* longest(story, "context_events", "payload")).toBeLessThan(toolLimits.argumentsMaxChars)
      })
    )
  })
})
