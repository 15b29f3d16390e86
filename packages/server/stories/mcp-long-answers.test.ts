/**
 * Answers at the MCP door that are longer than is told: cut, and still what their tools promise, so that what was done is told as done.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Run } from "@tropism/domain/run"
import { Effect, Schema } from "effect"
import { toolLimits } from "../src/limits.ts"
import { connect, revisions } from "../testing/mcp-clients.ts"
import { addressOf, resultOf, taskOf } from "../testing/mcp-extension-words.ts"
import { type Json, scripted, type Story } from "../testing/platform.ts"
import { asker, ended, logOfRun } from "../testing/question-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

const longText = "page ".repeat(30_000)

/** A template of more than 160,000 characters. */
const longSaying =
  "{% assign text = '0123456789' %}{% for n in (1..14) %}{% assign text = text | append: text %}{% endfor %}{{ text }}"

/** The official client, which holds each answer against what the tool says of it. */
const promised = Effect.fnUntraced(function* (story: Story, revision: (typeof revisions)[number]) {
  const client = yield* connect(story, addressOf(story), revision)
  yield* Effect.promise(() => client.listTools())
  return (name: string, args: Record<string, unknown>): Effect.Effect<Json> =>
    Effect.map(
      Effect.promise(() => client.callTool({ name, arguments: args })),
      (told) => {
        expect(told.isError).toBe(false)
        expect(JSON.stringify(told.structuredContent).length).toBeLessThanOrEqual(toolLimits.resultMaxChars)
        return told.structuredContent
      }
    )
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  for (const revision of revisions)
    describe(`A client of ${revision} that is told less than there is`, () => {
      it.effect("is told that its change was made, and of what", () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const call = yield* promised(story, revision)
          const made = yield* call("create_object", {
            type: "Book",
            key: "long",
            properties: { title: "Long", text: longText }
          })
          expect(made).toMatchObject({
            isTruncated: true,
            note: expect.stringMatching(/\b15\d{4}\b/),
            status: "applied",
            object: { type: "Book", key: "long", version: 1, properties: { title: "Long" } }
          })
          expect(made.object.properties.text).toMatch(/^(page )+.{0,5}…$/)
          const change = { objectId: made.object.id, properties: { title: "Longer" } }
          expect(yield* call("update_object", change)).toMatchObject({
            isTruncated: true,
            status: "applied",
            object: { version: 2, properties: { title: "Longer" } }
          })
          expect(yield* call("update_object", change)).toMatchObject({ status: "unchanged" })
          expect((yield* story.get("/objects?type=Book")).items).toMatchObject([
            { version: 2, properties: { title: "Longer", text: longText } }
          ])
        })
      )

      it.effect("reads all events of a log, on one page or on many", () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* asker(story, scripted([{ say: longSaying }]))
          const run = yield* ended(story, yield* story.post(`/agents/${agent.id}/trigger?wait=false`))
          const kept = (yield* logOfRun(story, run)).map(({ id, type }) => [id, type])
          const call = yield* promised(story, revision)
          const whole = yield* call("get_run_log", { runId: run.id })
          expect(whole.isTruncated).toBe(true)
          expect(whole.items.map(({ id, type }: Json) => [id, type])).toEqual(kept)
          const read: Array<Json> = []
          let cursor: string | null = null
          do {
            const page: Json = yield* call("get_run_log", { runId: run.id, limit: 1, cursor })
            read.push(...page.items)
            cursor = page.nextCursor
          } while (cursor !== null && read.length < kept.length)
          expect(cursor).toBe(null)
          expect(read.map(({ id, type }) => [id, type])).toEqual(kept)
        })
      )
    })

  describe("A client that knows tasks", () => {
    it.effect("gets the task of a run to which it has said much", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* asker(story, scripted([{ say: "Read." }]))
        const call = { name: "trigger_agent", arguments: { agent: agent.name, input: longText } }
        const handle = yield* resultOf(story, "tools/call", call)
        expect(handle).toMatchObject({ resultType: "task", taskId: expect.any(String) })
        expect((yield* story.get("/runs")).items).toMatchObject([{ id: handle.taskId }])
      })
    )

    it.effect("gets as much of a run that was told much as a tool answers, and is told that it is less", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* asker(story, scripted([{ say: "Read." }]))
        const begun = yield* story.post(`/agents/${agent.id}/trigger?wait=false`, {
          input: { pages: 1, text: longText }
        })
        const run = yield* ended(story, begun)
        const { result, status } = yield* taskOf(story, run)
        expect(status).toBe("completed")
        expect(result.content).toEqual([{ type: "text", text: "Read." }])
        expect(JSON.stringify(result.structuredContent).length).toBeLessThanOrEqual(toolLimits.resultMaxChars)
        const { run: told, ...said } = result.structuredContent
        expect(said).toEqual({
          isTruncated: true,
          note: expect.stringMatching(/\b15\d{4}\b/)
        })
        const input = { pages: 1, text: expect.stringMatching(/^(page ){5000,}.{0,5}…$/) }
        expect(told).toEqual({ ...run, trigger: { ...run.trigger, input } })
        expect(Schema.decodeUnknownExit(Run)(told)).toMatchObject({ _tag: "Success" })
      })
    )
  })
})
