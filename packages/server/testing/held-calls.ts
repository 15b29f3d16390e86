/**
 * Servers whose calls are held until the story lets them go, so that it sees which of them are there at once.
 */
import { Effect } from "effect"
import { answering, oddServer, oddTool, said } from "./mcp-odd-server.ts"
import { addServer } from "./mcp-words.ts"
import { eventually, type Json, type Story } from "./platform.ts"
import type { ScriptedCall } from "./story-words.ts"

const tools = [
  oddTool({ name: "read", annotations: { readOnlyHint: true } }),
  oddTool({ name: "write", annotations: { readOnlyHint: false } })
]

/** A server that holds its answers until the story lets them go. */
export const holdingServer = (story: Story, name: string, overrides: Record<string, unknown> = {}) =>
  Effect.gen(function* () {
    const held: Array<{
      readonly word: string
      readonly answer: () => void
      readonly isGone: () => boolean
    }> = []
    const arrived: Array<string> = []
    const { url } = yield* oddServer(
      ({ isGone, message }) => {
        if (message?.method !== "tools/call") return undefined
        const { word } = message.params.arguments
        arrived.push(word)
        return new Promise<Response>((resolve) =>
          held.push({ word, isGone, answer: () => resolve(answering(message, said(`${word}.`))) })
        )
      },
      { tools }
    )
    yield* addServer(story, { type: "http", url }, { name, callTimeoutMs: 600_000, ...overrides })
    return {
      /** The words of all calls so far. */
      arrived,
      held,
      /** Waits until these calls are held, and lets them go, the last first. */
      release: (...words: ReadonlyArray<string>) =>
        Effect.map(
          eventually(
            Effect.sync(() => held.filter(({ word }) => words.includes(word))),
            (those) => those.length === words.length
          ),
          (those) => {
            for (const one of those.toReversed()) {
              held.splice(held.indexOf(one), 1)
              one.answer()
            }
          }
        )
    }
  })

/** A call that only reads. */
export const reading = (word: string, server = "shop"): ScriptedCall => ({
  tool: `${server}__read`,
  arguments: { word }
})
/** A call that may do anything. */
export const writing = (word: string, server = "shop"): ScriptedCall => ({
  tool: `${server}__write`,
  arguments: { word }
})

/** What a run's second request shows of the calls before it, in order. */
export const resultsRead = (story: Story, run: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/runs/${run.id}/model-calls/2`), ({ request }) =>
    request.messages.flatMap(({ content, role }: Json) =>
      role === "tool" ? content.map(({ result }: Json) => result) : []
    )
  )
