/**
 * Fits requests into their model's context window: what does not fit is left out and recorded.
 *
 * A model that refuses a prompt as too long would refuse it every time. The accepted size is remembered until the server restarts, so only
 * the first request is refused.
 */
import { sizeBounds } from "@tropism/domain/message-size"
import { fitPrompt, promptSize } from "@tropism/domain/prompt-fit"
import { Effect, Stream } from "effect"
import { modelLimits } from "../limits.ts"
import { ModelFailure, type ModelPart, type ModelRequest } from "./model-request.ts"

/** A model's known window, in estimated tokens of prompt and tools. */
export interface KnownWindow {
  readonly now: () => number | undefined
  /** Called when the model accepted a prompt that was cut after a refusal. */
  readonly learned: (tokens: number) => void
}

type Parts = Stream.Stream<ModelPart, ModelFailure>

/** Sends what fits; after each refusal as too long sends less, a bounded number of times. */
export const withinWindow = (
  window: KnownWindow | undefined,
  request: ModelRequest,
  ask: (request: ModelRequest) => Parts
): Parts => {
  if (window === undefined) return ask(request)
  const asked = (fitting: ModelRequest, refusals: number): Parts =>
    Stream.catchIf(
      Stream.tap(ask(fitting), () =>
        Effect.sync(() => {
          if (refusals > 0 && fitting.leftOut !== undefined) window.learned(fitting.leftOut.maxTokens)
        })
      ),
      (failure: ModelFailure) => failure.reason === "tooLong" && !failure.outputBegan,
      (failure): Parts => {
        const tokens = tokensOf(fitting)
        const smaller = fit(request, tokensAfter(failure.message, tokens))
        return refusals < modelLimits.windowRefusals && tokensOf(smaller) < tokens
          ? asked(smaller, refusals + 1)
          : Stream.fail(tooSmall(failure, request))
      }
    )
  return Stream.suspend(() => {
    const most = window.now()
    return asked(most === undefined ? request : fit(request, most), 0)
  })
}

const fit = (request: ModelRequest, maxTokens: number): ModelRequest => {
  const { leftOut, messages } = fitPrompt(request.messages, toolTokens(request.tools), maxTokens)
  return leftOut === null ? request : { ...request, messages, leftOut }
}

const tokensOf = ({ messages, tools }: ModelRequest): number => promptSize(messages) + toolTokens(tools)

/** Agents offer the same lists again and again. */
const toolSizes = new WeakMap<ReadonlyArray<unknown>, number>()

/** The estimated tokens of a request's tools. */
export const toolTokens = (tools: ReadonlyArray<unknown>): number => {
  if (tools.length === 0) return 0
  const tokens = toolSizes.get(tools) ?? Math.ceil(JSON.stringify(tools).length / sizeBounds.charsPerToken)
  toolSizes.set(tools, tokens)
  return tokens
}

const tooSmall = (failure: ModelFailure, { messages, tools }: ModelRequest): ModelFailure => {
  const fixed = promptSize(messages.filter(({ role }) => role === "system")) + toolTokens(tools)
  return new ModelFailure({
    ...failure,
    message: `${failure.message} (nothing more can be left out: the instructions and ${tools.length} tools take some ${fixed} tokens; give the agent fewer tools or a model with a larger window)`
  })
}

/** The size that a refused prompt is cut to; figures in the refusal correct the estimate. */
const tokensAfter = (refusal: string, tokens: number): number => {
  const { asked, window } = figuresIn(refusal)
  if (window !== undefined && asked !== undefined && asked > window)
    return Math.floor(tokens * (window / asked) * cutTo)
  return Math.floor(Math.min(tokens, window ?? tokens) * cutToBlindly)
}

/** Below the limit, because estimates are never exact. */
const cutTo = 0.9

/** Used where the refusal does not state the prompt's length. */
const cutToBlindly = 0.7

/**
 * The wordings of providers for a prompt beyond the window. Sources, as of 2026-11: platform.openai.com (error codes), docs.anthropic.com
 * (errors), ai.google.dev (troubleshooting), docs.mistral.ai, docs.aws.amazon.com (Bedrock), and the sources of vLLM, llama.cpp and LM
 * Studio.
 */
const refusals: ReadonlyArray<RegExp> = [
  /context_length_exceeded|exceed_context_size/i,
  /context[ _-]?(?:length|size|window|limit)/i,
  /(?:prompt|input|request|conversation)s? (?:is |are )?too (?:long|large)/i,
  /too many (?:input )?tokens/i,
  /too large for model/i,
  /maximum (?:number of tokens|prompt length|input length|context)/i,
  /tokens.to.keep.from.the/i,
  /exceeds the (?:available )?context|exceeds the maximum size/i,
  /reduce the length of (?:the|your) (?:messages|prompt|input)/i,
  /inputs`? tokens \+ `?max_new_tokens`? must be/i,
  /exceeded model token limit|exceeds max_seq_len/i,
  /input length should be \[/i,
  /must have less than \d+ tokens/i,
  /'(?:input|(?:messages|input)\[\d+\][^']*\b(?:content|text|output|arguments)\b[^']*)': string too long/i
]

/** Whether a provider's message means that the prompt exceeds the model's window. */
export const saysTooLong = (message: string): boolean =>
  !isWithinLimit(message) && refusals.some((pattern) => pattern.test(message))

/** A limit by the minute that earlier requests used up: this request alone is below it. */
const isWithinLimit = (message: string): boolean => {
  const [, limit = "", requested = ""] = /Limit (\d+), (?:Used \d+, )?Requested (\d+)/i.exec(message) ?? []
  return limit !== "" && Number(requested) <= Number(limit)
}

const number = String.raw`(\d[\d,]*)`

const windowFigures: ReadonlyArray<RegExp> = [
  new RegExp(String.raw`maximum context length (?:is|of) ${number}`, "i"),
  new RegExp(String.raw`> ${number} maximum`, "i"),
  new RegExp(String.raw`context limit: \d+ \+ \d+ > ${number}`, "i"),
  new RegExp(String.raw`maximum number of tokens(?: allowed)? \(?${number}`, "i"),
  new RegExp(String.raw`model with ${number} maximum context`, "i"),
  new RegExp(String.raw`maximum prompt length is ${number}`, "i"),
  new RegExp(String.raw`must be <= ${number}`, "i"),
  new RegExp(String.raw`model token limit: ${number}`, "i"),
  new RegExp(String.raw`input length should be \[\d+, ${number}`, "i"),
  new RegExp(String.raw`less than ${number} tokens`, "i"),
  new RegExp(String.raw`max_seq_len ${number}`, "i"),
  new RegExp(String.raw`context (?:size|length|window)[^\d]{0,30}${number}`, "i"),
  new RegExp(String.raw`Limit ${number}, Requested`, "i")
]

const askedFigures: ReadonlyArray<RegExp> = [
  new RegExp(String.raw`requested:? (?:about )?${number}`, "i"),
  new RegExp(String.raw`${number} tokens >`, "i"),
  new RegExp(String.raw`token count \(?${number}`, "i"),
  new RegExp(String.raw`(?:resulted in|contains|request has|request \() ?${number}`, "i"),
  new RegExp(String.raw`Given: ${number}`, "i")
]

/** The window and the prompt's length in a refusal, in the provider's tokens. */
const figuresIn = (refusal: string) => {
  const first = (patterns: ReadonlyArray<RegExp>): number | undefined => {
    for (const pattern of patterns) {
      const found = pattern.exec(refusal)?.[1]
      if (found !== undefined) return Number(found.replaceAll(",", ""))
    }
    return undefined
  }
  return { window: first(windowFigures), asked: first(askedFigures) }
}
