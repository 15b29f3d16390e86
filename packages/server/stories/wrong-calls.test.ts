/**
 * Tool calls that go wrong: the model reads why, and what would be right, and mends its call.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { chatChunk, chatEnd, type FakeAnswer, toEvent } from "../testing/fake-model-server.ts"
import { answering, newProviderStory } from "../testing/provider-story.ts"
import { type Json, scripted, type Story } from "../testing/platform.ts"
import { asker, logOfRun } from "../testing/question-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, type ScriptedCall } from "../testing/story-words.ts"

/** A run of a model that makes one call, and another when that has failed. */
const mending = Effect.fnUntraced(function* (story: Story, wrong: Json, mended: ScriptedCall) {
  const model = scripted([
    { when: "step == 0", calls: [wrong] },
    { when: "step == 1 and results[0].isError", calls: [mended] },
    { say: "Done." }
  ])
  const agent = yield* asker(story, model)
  const run = yield* story.post(`/agents/${agent.id}/trigger`)
  return { run, calls: yield* callsOf(story, run) }
})

const creating = (args: Record<string, unknown> = {}): ScriptedCall => ({
  tool: "create_object",
  arguments: { type: "Thing", properties: {}, ...args }
})

/** The tools that a refused call is told of, in their order and without the one that it named. */
const toolsIn = ({ result, tool }: Json): ReadonlyArray<string> =>
  result.error.replace(tool, "").match(/\b[a-z]+_[a-z_]+\b/g) ?? []

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A tool call that goes wrong is answered so that the model can mend it", () => {
    it.effect("an unknown tool is answered with the nearest name and with what there is", () =>
      Effect.gen(function* () {
        for (const name of ["create_objct", "graph.create_object", "graph__createObject", "Create-Object"]) {
          const story = yield* newStoryHere
          const { calls, run } = yield* mending(story, { ...creating(), tool: name }, creating())
          expect(run.status).toBe("completed")
          expect(calls).toMatchObject([
            { tool: name, status: "refused" },
            { tool: "create_object", status: "completed" }
          ])
          const [nearest, ...all] = toolsIn(calls[0])
          expect([nearest, all[0], all.at(-1)]).toEqual(["create_object", "search_objects", "ask_user"])
        }
      })
    )

    it.effect("a tool that nobody has is the model's mistake, and no error of the server", () =>
      Effect.gen(function* () {
        const { log } = yield* SharedServer
        for (const name of ["send_email", "nowhere__send"]) {
          const story = yield* newStoryHere
          const { calls, run } = yield* mending(story, { tool: name, arguments: {} }, creating())
          expect(calls[0]).toMatchObject({ status: "refused", decision: "refuse" })
          const told = log.filter(({ message }) => JSON.stringify(message).includes(run.id))
          expect(told).toMatchObject([
            {
              level: "Info",
              message: [expect.any(String), { agentId: run.agentId, tool: name }]
            }
          ])
        }
      })
    )

    it.effect("a name like no other is answered with what there is alone", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { calls } = yield* mending(story, { tool: "send_email", arguments: {} }, creating())
        const [first, ...others] = toolsIn(calls[0])
        expect([first, others.at(-1)]).toEqual(["search_objects", "ask_user"])
      })
    )

    it.effect("arguments that do not fit are answered with each field, and with what the tool takes", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const wrong = {
          tool: "create_object",
          arguments: { type: 3, props: {}, confidence: 2 }
        }
        const { calls, run } = yield* mending(story, wrong, creating())
        expect(run.status).toBe("completed")
        const [first, second] = calls
        expect(first).toMatchObject({ status: "failed", result: { reason: "invalid" } })
        for (const part of ["/type: ", "/properties: ", "/props: ", "/confidence: "])
          expect(first.result.error).toContain(part)
        expect(first.result.error).toContain("{type: string, key?: string, properties: object, ")
        expect(second.status).toBe("completed")
        expect((yield* story.get("/objects?type=Thing")).items).toHaveLength(1)
      })
    )

    it.effect("arguments too long for any tool are not kept, and the model reads how long they may be", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        // A template of one line makes more than 600,000 characters.
        const long =
          "{% assign text = '0123456789' %}{% for n in (1..16) %}{% assign text = text | append: text %}{% endfor %}{{ text }}"
        const { calls, run } = yield* mending(story, creating({ properties: { long } }), creating())
        expect(run.status).toBe("completed")
        expect(calls).toMatchObject([
          { status: "failed", result: { error: expect.stringContaining("400000") } },
          { status: "completed" }
        ])
        const log = yield* logOfRun(story, run)
        expect(JSON.stringify(log).length).toBeLessThan(20_000)
      })
    )

    it.effect("a result that is too long is cut, says so, and is JSON all the same", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        for (let number = 0; number < 5; number++)
          yield* story.post("/objects", {
            type: "Book",
            key: `book-${number}`,
            properties: { text: "page ".repeat(10_000), number }
          })
        const agent = yield* asker(
          story,
          scripted([
            { when: "step == 0", calls: [{ tool: "search_objects", arguments: { type: "Book" } }] },
            {
              say: "{{ results[0].result.isTruncated }} {% for item in results[0].result.items %}{{ item.key }} {{ item.properties.number }} {% endfor %}{{ results[0].result.total }}"
            }
          ])
        )
        const run = yield* story.post(`/agents/${agent.id}/trigger`)
        expect(run.summary).toBe("true book-4 4 book-3 3 book-2 2 book-1 1 book-0 0 5")
        const [call] = yield* callsOf(story, run)
        expect(JSON.stringify(call.result).length).toBeLessThanOrEqual(100_000)
        expect(call.result.note).toMatch(/\b2\d{5}\b/)
        expect(call.result.items[0].properties.text).toMatch(/^(page )+.{0,5}…$/)
      })
    )
  })
})

/** One answer of the provider that calls a tool with arguments as it spells them. */
const callingWith = (id: string, args: string): FakeAnswer => ({
  kind: "stream",
  chunks: [
    chatChunk({
      tool_calls: [{ index: 0, id, type: "function", function: { name: "create_object", arguments: args } }]
    }),
    ...chatEnd("tool_calls")
  ].map(toEvent),
  ending: "end"
})

describe("Arguments that are no JSON", () => {
  it.effect("are answered with what is wrong with them; the run goes on, and the model mends its call", () =>
    Effect.gen(function* () {
      const { agent, provider, story } = yield* newProviderStory(
        [
          callingWith("a", '{"type": "Thing", "properties": {'),
          callingWith("b", '{"type": "Thing", "properties": {"text": "\\u0000"}}'),
          callingWith("c", "[1]"),
          callingWith("d", '{"type": "Thing", "properties": {"text": "right"}}'),
          answering("Done.")
        ],
        { executionMode: "execute" }
      )
      const run = yield* story.post(`/agents/${agent.id}/trigger`)
      expect(run).toMatchObject({ status: "completed", summary: "Done.", stepCount: 5 })
      const calls = yield* callsOf(story, run)
      expect(calls).toMatchObject([
        {
          status: "failed",
          arguments: '{"type": "Thing", "properties": {',
          result: {
            reason: "invalid",
            error: expect.any(String)
          }
        },
        { status: "failed", result: { reason: "invalid", error: expect.stringContaining("U+0000") } },
        { status: "failed", arguments: [1], result: { reason: "invalid" } },
        { status: "completed" }
      ])
      // The model was told so: the provider saw the reason in the next request.
      const [told] = Object(provider.requests[1]?.body).messages.filter(({ role }: Json) => role === "tool")
      expect(told.content).toContain(calls[0].result.error)
      expect((yield* story.get("/objects?type=Thing")).items).toMatchObject([
        { properties: { text: "right" } }
      ])
    })
  )
})
