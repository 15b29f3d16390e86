/**
 * What one provider refuses and others take: Anthropic's ids and blocks, Mistral's order, a `tool_choice` that is not known.
 *
 * The rules, as their providers state them:
 * - Anthropic: `tool_use.id` has the pattern `^[a-zA-Z0-9_-]+$`; "text content blocks must contain non-whitespace text"; "final
 *   assistant content cannot end with trailing whitespace" (docs.anthropic.com, errors of the Messages API).
 * - Mistral: "Unexpected role 'user' after role 'tool'" (docs.mistral.ai, chat completions).
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ModelsOnTheWire, type WireAnswer, type WireOptions } from "../testing/model-on-the-wire.ts"
import { newModel, sendCompletion } from "../testing/openai-words.ts"
import type { Json } from "../testing/platform.ts"
import { claudeSays } from "../testing/provider-answers.ts"

type Answers = readonly [WireAnswer, ...ReadonlyArray<WireAnswer>]

const search = (id: string, query = id) => ({ id, name: "search_objects", input: { query } })

const blocksOf = ({ messages }: Json): ReadonlyArray<Json> => messages.flatMap(({ content }: Json) => content)

/** Why Claude's API refuses a request. */
const claudeRefuses = (body: Json): string | undefined => {
  const blocks = blocksOf(body)
  if (blocks.some((each) => each.type === "tool_use" && !/^[a-zA-Z0-9_-]+$/.test(each.id)))
    return "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
  const uses = new Set(blocks.flatMap((each) => (each.type === "tool_use" ? [each.id] : [])))
  if (blocks.some((each) => each.type === "tool_result" && !uses.has(each.tool_use_id)))
    return "unexpected `tool_use_id` found in `tool_result` blocks"
  if (blocks.some((each) => each.type === "text" && each.text.trim() === ""))
    return "messages: text content blocks must contain non-whitespace text"
  const last = body.messages.at(-1)
  if (last.role === "assistant" && /\s$/.test(last.content.at(-1)?.text ?? ""))
    return "messages: final assistant content cannot end with trailing whitespace"
  return JSON.stringify(body.tools ?? []).includes("eager_input_streaming")
    ? "tools.0.custom.eager_input_streaming: Extra inputs are not permitted"
    : undefined
}

/** Why Mistral's API refuses a request. */
const mistralRefuses = ({ messages }: Json): string | undefined => {
  const at = messages.findIndex(({ role }: Json, index: number) => {
    const before = messages[index - 1]?.role
    return (role === "user" || role === "system") && before === "tool" ? true : role === "system" && index > 0
  })
  return at === -1
    ? undefined
    : `Unexpected role '${messages[at].role}' after role '${messages[at - 1].role}'`
}

const runWith = Effect.fnUntraced(function* (answers: Answers, options: WireOptions, more: Json = {}) {
  const models = yield* ModelsOnTheWire
  const story = yield* models.newStory
  const model = yield* models.model(answers, options)
  const agent = yield* newModel(story, "speaker", model.config, more)
  const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
  return { agent, model, run, story }
})

const claude: WireOptions = { provider: "anthropic", refusal: claudeRefuses }

layer(ModelsOnTheWire.ofEveryProvider, { excludeTestServices: true })((it) => {
  describe("Anthropic's API", () => {
    it.effect("is sent ids that it takes, each call's the same as its result's", () =>
      Effect.gen(function* () {
        const { run } = yield* runWith(
          [
            { raw: claudeSays("", "tool_use", search("functions.search_objects:0")) },
            { raw: claudeSays("", "tool_use", search("toolu_1")) },
            { raw: claudeSays("Done.", "end_turn") }
          ],
          claude
        )
        expect(run).toMatchObject({ status: "completed", errorMessage: null, summary: "Done." })
      })
    )

    it.effect("is sent no block of white space, and no white space at the end of a last answer", () =>
      Effect.gen(function* () {
        const { model, run } = yield* runWith(
          [
            { raw: claudeSays("\n", "tool_use", search("toolu_1")) },
            { raw: claudeSays("I go on \n", "pause_turn") },
            { raw: claudeSays("and end.", "end_turn") }
          ],
          claude
        )
        expect(run).toMatchObject({ status: "completed", errorMessage: null })
        expect(model.requests[2].messages.at(-1)).toEqual({
          role: "assistant",
          content: [{ type: "text", text: "I go on" }]
        })
      })
    )

    it.effect("at another address than Anthropic's is not sent eager_input_streaming", () =>
      Effect.gen(function* () {
        const { model, run } = yield* runWith([{ raw: claudeSays("Done.", "end_turn") }], claude)
        expect(run.status).toBe("completed")
        expect(model.requests[0].tools.length).toBeGreaterThan(0)
      })
    )
  })

  describe("A provider that takes no user behind a tool's result", () => {
    const mistral: WireOptions = { refusal: mistralRefuses }
    const calls = [{ tool: "search_objects", arguments: { query: "tea" } }]

    it.effect("is sent an assistant's turn between, at the limit of steps and from then on", () =>
      Effect.gen(function* () {
        const refused = { say: "Refused." }
        const soFar = { say: "So far." }
        const { agent, model, run, story } = yield* runWith(
          [{ calls }, refused, refused, soFar, { calls }, soFar],
          mistral,
          { maxSteps: 1 }
        )
        expect(run).toMatchObject({ status: "paused", pauseReason: "stepLimit", summary: "So far." })
        const last = model.requests.at(-1).messages
        expect(last.slice(-3).map(({ role }: Json) => role)).toEqual(["tool", "assistant", "user"])
        const again = yield* story.post(`/agents/${agent.id}/trigger`, {})
        expect(again).toMatchObject({ status: "paused", summary: "So far." })
        expect(model.requests).toHaveLength(6)
      })
    )
  })

  describe("A server that does not know `tool_choice: none`", () => {
    const calls = [{ tool: "search_objects", arguments: { query: "tea" } }]
    const options: WireOptions = {
      refusal: ({ tool_choice }) =>
        tool_choice === "none" ? "body.tool_choice: Input should be 'auto' or 'any'" : undefined
    }

    it.effect("is asked for the summary without tools", () =>
      Effect.gen(function* () {
        const { model, run } = yield* runWith([{ calls }, { say: "Refused." }, { say: "So far." }], options, {
          maxSteps: 1
        })
        expect(run).toMatchObject({ status: "paused", pauseReason: "stepLimit", summary: "So far." })
        expect(model.requests.at(-1)).not.toHaveProperty("tools")
        expect(model.requests.at(-1)).not.toHaveProperty("tool_choice")
      })
    )
  })

  describe("An assistant's words at the end of a prompt", () => {
    it.effect("have no white space at their end", () =>
      Effect.gen(function* () {
        const models = yield* ModelsOnTheWire
        const story = yield* models.newStory
        const model = yield* models.model([{ raw: claudeSays("blue.", "end_turn") }], claude)
        yield* newModel(story, "speaker", model.config)
        const answer = yield* sendCompletion(story, {
          model: "speaker",
          messages: [
            { role: "user", content: "What colour is the sky?" },
            { role: "assistant", content: "The sky is " }
          ]
        })
        expect(answer.status).toBe(200)
      })
    )
  })
})
