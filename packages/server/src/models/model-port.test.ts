/** Our models are effect's: whoever asks by its `LanguageModel` hears what the engine hears. */
import { describe, expect, it } from "@effect/vitest"
import type { Script } from "@tropism/domain/script"
import { Effect, Result, Stream } from "effect"
import { LanguageModel, Tool, Toolkit } from "effect/ai"
import { asking } from "../../testing/models.ts"
import type { ModelRequest } from "./model-request.ts"
import { fromScript } from "./models.ts"
import { attempt } from "./retry.ts"
import { compileScript } from "./script.ts"

const script: Script = {
  rules: [{ say: "I look for it.", calls: [{ tool: "search_objects", arguments: { type: "Person" } }] }]
}
const search = { name: "search_objects", inputSchema: { type: "object" } }

describe("the port of models", () => {
  it.effect("S004-R64 is what fills effect's LanguageModel, which hears the same as the engine", () =>
    Effect.gen(function* () {
      const port = fromScript(Result.getOrThrow(compileScript(script)))
      const languageModel = yield* LanguageModel.make({
        streamText: port,
        generateText: () => Effect.succeed([])
      })
      const parts = yield* Stream.runCollect(
        languageModel.streamText({
          prompt: "Who is there?",
          toolkit: Toolkit.make(Tool.dynamic(search.name, { parameters: search.inputSchema })),
          disableToolCallResolution: true
        })
      )
      const heard = parts.flatMap((part) => {
        if (part.type === "text-delta") return [part.delta]
        return part.type === "tool-call" ? [part.id, part.name, part.params] : []
      })
      const request: ModelRequest = asking("Who is there?", { tools: [search] })
      const asked = { provider: "scripted", name: "test", price: null, port } as const
      const answer = yield* Stream.runCollect(attempt(asked, request))
      expect(
        answer.flatMap((part) => {
          if (part.type === "text") return [part.delta]
          return part.type === "toolCall" ? [part.id, part.name, part.arguments] : []
        })
      ).toEqual(heard)
      expect(heard).toEqual(["I look for it.", "call_1_0_0", "search_objects", { type: "Person" }])
    })
  )
})
