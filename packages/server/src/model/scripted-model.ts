/**
 * The `scripted` model: a script that speaks like any other model.
 *
 * It needs no network and is honest: whatever it answers is marked with the
 * provider `scripted`. Time passes through Clock, so a test or a simulation
 * decides how long an answer takes. Token counts are estimates, so that budgets
 * and charts have something to show.
 */
import { Effect, Result, Stream } from "effect"
import { AiError, LanguageModel, type Response } from "effect/ai"
import { collectParts } from "./collect-parts.ts"
import { cutShort } from "./ai-sdk-error.ts"
import type { CompiledScript, ScriptAnswer } from "./script.ts"
import { charsOfList, tokensOf } from "./estimated-usage.ts"
import { scopeOf, SpokenSoFar } from "./script-scope.ts"

type Parts = Stream.Stream<Response.StreamPartEncoded, AiError.AiError>

/** Makes a `LanguageModel` that follows a script. */
export const fromScript = (script: CompiledScript): Effect.Effect<LanguageModel.LanguageModel> => {
  const streamText = (request: LanguageModel.ProviderOptions): Parts =>
    Stream.unwrap(
      Effect.gen(function* () {
        const tools = request.toolChoice === "none" ? [] : request.tools.map((tool) => tool.name)
        const scope = scopeOf(request.prompt, tools, script.values, yield* SpokenSoFar)
        const answer = script.answer(scope, request.prompt)
        if (Result.isFailure(answer))
          return fail(new AiError.InvalidRequestError({ description: answer.failure }))
        yield* pause(answer.success.latencyMs)
        return speak(answer.success, tokensOf(charsOfList(request.prompt.content)))
      })
    )
  return LanguageModel.make({ streamText, generateText: (request) => collectParts(streamText(request)) })
}

const speak = (answer: ScriptAnswer, inputTokens: number): Parts => {
  switch (answer.fault?.kind) {
    case "error":
      return fail(new AiError.InternalProviderError({ description: answer.fault.message }))
    case "rateLimited":
      return fail(new AiError.RateLimitError({ metadata: { description: answer.fault.message } }))
    case "hang":
      return Stream.never
    case "cut":
      return Stream.concat(
        say({ ...answer, text: answer.text.slice(0, Math.ceil(answer.text.length / 2)) }),
        Stream.fail(cutShort(answer.fault.message))
      )
    case undefined:
      return Stream.concat(say(answer), Stream.fromIterable(closing(answer, inputTokens)))
  }
}

const textId = "0"

const say = (answer: ScriptAnswer): Parts => {
  if (answer.text === "") return Stream.empty
  const pace = answer.tokensPerSecond
  const deltas =
    pace === null
      ? Stream.succeed(answer.text)
      : Stream.mapEffect(Stream.fromIterable(wordsOf(answer.text)), (word) =>
          Effect.as(pause((tokensOf(word.length) * 1000) / pace), word)
        )
  return Stream.make<[Response.StreamPartEncoded]>({ type: "text-start", id: textId }).pipe(
    Stream.concat(
      Stream.map(deltas, (delta): Response.StreamPartEncoded => ({ type: "text-delta", id: textId, delta }))
    ),
    Stream.concat(Stream.make<[Response.StreamPartEncoded]>({ type: "text-end", id: textId }))
  )
}

const closing = (answer: ScriptAnswer, inputTokens: number): ReadonlyArray<Response.StreamPartEncoded> => [
  ...answer.calls.map((call): Response.StreamPartEncoded => ({
    type: "tool-call",
    id: call.id,
    name: call.tool,
    params: call.arguments
  })),
  {
    type: "finish",
    reason: answer.calls.length === 0 ? "stop" : "tool-calls",
    usage: {
      inputTokens: { total: inputTokens },
      outputTokens: {
        total:
          tokensOf(answer.text.length) +
          (answer.calls.length === 0 ? 0 : tokensOf(JSON.stringify(answer.calls).length))
      }
    }
  }
]

const fail = (reason: AiError.AiErrorReason): Parts =>
  Stream.fail(AiError.make({ module: "model", method: "scripted", reason }))

const pause = (ms: number): Effect.Effect<void> => (ms === 0 ? Effect.void : Effect.sleep(ms))

/** Words with the space before them; joined, they are the text. */
const wordsOf = (text: string): ReadonlyArray<string> => text.match(/\s*\S+\s*$|\s*\S+|\s+/g) ?? []
