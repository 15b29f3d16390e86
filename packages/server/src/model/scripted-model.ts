/**
 * The `scripted` model: a script that speaks like any other model.
 *
 * It needs no network and is honest: whatever it answers is marked with the
 * provider `scripted`. Time passes through Clock, so a test or a simulation
 * decides how long an answer takes. Token counts are estimates, so that budgets
 * and charts have something to show.
 */
import { beginningOf } from "@tropism/domain/text-beginning"
import { Effect, Result, Stream } from "effect"
import { AiError, type Response } from "effect/ai"
import { cutShort } from "./ai-sdk-error.ts"
import type { CompiledScript, ScriptAnswer } from "./script.ts"
import { charsOfList, tokensOf } from "./estimated-usage.ts"
import type { ModelPort, PartStream } from "./model-port.ts"
import { scopeOf } from "./script-scope.ts"

/** Makes a model that follows a script. */
export const fromScript =
  (script: CompiledScript): ModelPort =>
  ({ prompt, spoken, toolChoice, tools }) =>
    Stream.suspend(() => {
      const names = toolChoice === "none" ? [] : tools.map(({ name }) => name)
      const answer = script.answer(scopeOf(prompt, names, script.values, spoken), prompt)
      if (Result.isFailure(answer))
        return fail(new AiError.InvalidRequestError({ description: answer.failure }))
      const { latencyMs } = answer.success
      const speech = speak(answer.success, tokensOf(charsOfList(prompt.content)))
      return latencyMs === 0 ? speech : Stream.unwrap(Effect.as(Effect.sleep(latencyMs), speech))
    })

const speak = (answer: ScriptAnswer, inputTokens: number): PartStream => {
  switch (answer.fault?.kind) {
    case "error":
      return fail(new AiError.InternalProviderError({ description: answer.fault.message }))
    case "rateLimited":
      return fail(new AiError.RateLimitError({ metadata: { description: answer.fault.message } }))
    case "hang":
      return Stream.never
    case "cut":
      return Stream.concat(
        say({ ...answer, text: beginningOf(answer.text, Math.ceil(answer.text.length / 2)) }),
        Stream.fail(cutShort(answer.fault.message))
      )
    case undefined:
      return answer.text === "" || answer.tokensPerSecond === null
        ? Stream.fromArray([...atOnce(answer.text), ...closing(answer, inputTokens)])
        : Stream.concat(say(answer), Stream.fromArray(closing(answer, inputTokens)))
  }
}

const textId = "0"

const begun: Response.StreamPartEncoded = { type: "text-start", id: textId }
const ended: Response.StreamPartEncoded = { type: "text-end", id: textId }
const toDelta = (delta: string): Response.StreamPartEncoded => ({ type: "text-delta", id: textId, delta })

/** A text without a pace. */
const atOnce = (text: string): ReadonlyArray<Response.StreamPartEncoded> =>
  text === "" ? [] : [begun, toDelta(text), ended]

const say = ({ text, tokensPerSecond: pace }: ScriptAnswer): PartStream => {
  if (text === "" || pace === null) return Stream.fromIterable(atOnce(text))
  return Stream.make(begun).pipe(
    Stream.concat(
      Stream.mapEffect(Stream.fromIterable(wordsOf(text)), (word) =>
        Effect.as(pause((tokensOf(word.length) * 1000) / pace), toDelta(word))
      )
    ),
    Stream.concat(Stream.make(ended))
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

const fail = (reason: AiError.AiErrorReason): PartStream =>
  Stream.fail(AiError.make({ module: "model", method: "scripted", reason }))

const pause = (ms: number): Effect.Effect<void> => (ms === 0 ? Effect.void : Effect.sleep(ms))

/** Words with the space before them; joined, they are the text. */
const wordsOf = (text: string): ReadonlyArray<string> => text.match(/\s*\S+\s*$|\s*\S+|\s+/g) ?? []
