/**
 * Resolves the model of an agent.
 *
 * The agent's own model comes first, then `TROPISM_MODEL`, then the first provider with a key; without any, a built-in script of the
 * agent's own name. **Invariant**: a named provider that is unavailable is an error and never silently replaced. This module builds no
 * prompts and runs no tools.
 */
import type { SharedV4ProviderOptions } from "@ai-sdk/provider"
import type { ContextConfig, LlmConfig } from "@tropism/domain/context-config"
import {
  type ModelConfig,
  ModelProvider,
  type ModelRef,
  type ProviderOptions,
  type ReasoningEffort
} from "@tropism/domain/model-config"
import { free } from "@tropism/domain/model-price"
import type { Script } from "@tropism/domain/script"
import { beginningOf } from "@tropism/domain/text-beginning"
import { todoAssistant, todoAssistantName } from "@tropism/domain/todo-assistant"
import { toolsMaxOf } from "@tropism/domain/tools-in-use"
import { Config, Context, Effect, Layer, Option, Result, Schema, Stream } from "effect"
import { AiError, Response } from "effect/ai"
import { modelLimits } from "../limits.ts"
import { cutShort } from "./ai-sdk-error.ts"
import { fromAiSdk, type Habits, charsOfList, noEdits, tokensOf } from "./ai-sdk-model.ts"
import { loadBuiltInScripts } from "./built-in-scripts.ts"
import type { AskedModel } from "./delivery.ts"
import {
  type ModelPort,
  ModelUnavailable,
  type ReadRecord,
  type ResolvedModel,
  type RecordedAnswer,
  type PartStream
} from "./model-request.ts"
import { type KnownPrice, loadPrices } from "./prices.ts"
import { isRemote, loadProviders, type Provider, remoteProviders } from "./providers.ts"
import { type LaneState, makeRequestQueue } from "./request-queue.ts"
import { askWithRetries, defaultRetry, type Fallback } from "./retry.ts"
import { type CompiledScript, compileScript, type ScriptAnswer, scopeOf } from "./script.ts"
import { schemaRulesOf } from "./tool-schemas.ts"
import type { KnownWindow } from "./window.ts"

/** The agent and its model settings. */
export interface ModelChoice {
  readonly agentName: string
  readonly model: ModelConfig | null
  /** Settings of the context, which override the definition. */
  readonly settings?: ModelSettings
  /** Reads the project's recorded runs; without it, none can be replayed. */
  readonly readRecord?: ReadRecord
}

/** Whether a provider is available on this server. */
export interface ProviderStatus {
  readonly provider: ModelProvider
  readonly defaultModel: string
  /** What to configure before it is available; null where it is. */
  readonly missing: string | null
}

export class Models extends Context.Service<
  Models,
  {
    /** Finds an agent's model without sending it anything. */
    readonly resolve: (choice: ModelChoice) => Effect.Effect<ResolvedModel, ModelUnavailable>

    /** All providers in order of preference. */
    readonly providers: ReadonlyArray<ProviderStatus>

    /** The models in use, or with a lowered limit, with their open and queued requests. */
    readonly lanes: () => ReadonlyArray<LaneState>

    /** Maximum open requests of this server at one provider's model. */
    readonly concurrency: number

    /** All known prices, the operator's own before those of the table. */
    readonly prices: ReadonlyArray<KnownPrice>
  }
>()("@tropism/server/model/Models") {
  static readonly layer = Layer.effect(
    Models,
    Effect.gen(function* () {
      const { byName, scrub } = yield* loadProviders
      const { known: prices, priceOf, windowOf } = yield* loadPrices
      const scripts = yield* loadBuiltInScripts
      const preset = Option.getOrNull(yield* Config.option(Config.String("TROPISM_MODEL")))

      const queue = yield* makeRequestQueue

      /** Prompt sizes that models accepted after refusing larger ones. */
      const windows = new Map<string, number>()

      /** Habits of models, by name, until the server restarts. */
      const strict = new Map<string, Habits>()

      const pick = Effect.fnUntraced(function* (
        choice: ModelChoice
      ): Effect.fn.Return<ModelRef, ModelUnavailable> {
        if (choice.model !== null && !(isSeededAssistant(choice) && byName.openai.missing !== null))
          return choice.model
        if (preset !== null) {
          const ref = parseModelRef(preset, (provider) =>
            isRemote(provider) ? byName[provider].defaultModel : choice.agentName
          )
          if (ref?.name === "")
            return yield* unavailable(
              choice,
              `TROPISM_MODEL names no model: set it to ${ref.provider}:name${ref.provider === "openai-compatible" ? ", or set OPENAI_COMPATIBLE_MODEL" : ""}`
            )
          if (ref !== null) return ref
          return yield* unavailable(
            choice,
            `TROPISM_MODEL is "${scrub(preset)}"; set it to provider:name, the provider one of ${ModelProvider.literals.join(", ")}`
          )
        }
        const provider = remoteProviders.find(
          (name) =>
            byName[name].missing === null && byName[name].defaultModel !== "" && !byName[name].mustBeNamed
        )
        if (provider !== undefined) return { provider, name: byName[provider].defaultModel }
        if (scripts.has(choice.agentName)) return { provider: "scripted", name: choice.agentName }
        return yield* unavailable(choice, `No model is configured: ${howToConfigure}`)
      })

      const openScript = Effect.fnUntraced(function* (
        choice: ModelChoice,
        ref: WantedModel
      ): Effect.fn.Return<AskedModel, ModelUnavailable> {
        const { name } = ref
        const found = scripts.get(name) ?? (ref.isSet ? undefined : scripts.get(choice.agentName))
        const builtIn = found === undefined ? undefined : Result.succeed(found)
        // A fallback is chosen by name; the script in the definition belongs to the model itself.
        const inline = ref.isSet ? undefined : choice.model?.script
        const script = ref.script ? compiledOnce(ref.script) : (builtIn ?? (inline && compiledOnce(inline)))
        if (!script)
          return yield* unavailable(
            choice,
            ref.isSet
              ? `There is no built-in script named ${name}, and the agent's model has another name`
              : `There is no built-in script named ${name} or ${choice.agentName}; give the agent's model a script`
          )
        if (Result.isFailure(script))
          return yield* unavailable(choice, `The agent's script cannot be followed: ${script.failure}`)
        return { provider: "scripted", name, price: ref.price ?? free, port: openedOnce(script.success) }
      })

      const openRecord = Effect.fnUntraced(function* (
        choice: ModelChoice,
        { name }: ModelRef
      ): Effect.fn.Return<AskedModel, ModelUnavailable> {
        const read = choice.readRecord
        const first = read && (yield* read(name, 0))
        if (!first)
          return yield* unavailable(
            choice,
            `There is nothing to replay: this project has no run ${name} with an answer of a model`
          )
        return { provider: "replay", name, price: free, port: fromRecord(name, read) }
      })

      const open = Effect.fnUntraced(function* (
        choice: ModelChoice,
        ref: WantedModel
      ): Effect.fn.Return<AskedModel, ModelUnavailable> {
        if (ref.provider === "scripted") return yield* openScript(choice, ref)
        if (!isRemote(ref.provider)) return yield* openRecord(choice, ref)
        const provider = byName[ref.provider]
        if (provider.missing !== null) {
          return yield* unavailable(
            choice,
            `The model ${ref.provider}:${ref.name} cannot be used here: ${provider.missing}`
          )
        }
        const model = yield* Effect.mapError(provider.makeModel(ref.name), (error) =>
          unavailable(
            choice,
            `The model ${ref.provider}:${ref.name} cannot be used here: ${scrub(error instanceof Error ? error.message : String(error))}`
          )
        )
        const { maxOutputTokens = null, reasoning = null, temperature = null } = ref
        const where = `${ref.provider}${addressOf(provider.address)}`
        const port = fromAiSdk({
          model,
          name: nameOf(ref),
          habits: {
            now: () => strict.get(nameOf(ref)) ?? habitsOf(ref),
            learned: (habits) => {
              if (strict.size >= modelLimits.strictModels) strict.clear()
              strict.set(nameOf(ref), habits)
            }
          },
          callIds: callIdsOf(ref.provider),
          pictures: provider.picturePlace,
          mayThinkAloud: mayThinkAloud(ref, provider),
          joinsNeighbours: ref.provider !== "openai" && ref.provider !== "azure",
          namesCalledTools: ref.provider === "anthropic" || ref.provider === "amazon-bedrock",
          schemaRules: schemaRulesOf(ref.provider),
          mayEdit: provider.signsBodies !== true,
          temperature: temperature ?? undefined,
          maxOutputTokens: maxOutputTokens ?? undefined,
          reasoning: reasoning ?? undefined,
          requestOptions: optionsOf(provider, ref),
          scrub,
          where
        })
        const price = ref.price ?? priceOf(ref.provider, ref.name)
        const parameters = { temperature, maxOutputTokens, ...(reasoning === null ? {} : { reasoning }) }
        const declared = ref.contextWindow ?? windowOf(ref.provider, ref.name)
        const window: KnownWindow = {
          now: () => windows.get(nameOf(ref)) ?? (declared && promptShareOf(declared, maxOutputTokens)),
          learned: (tokens) => {
            if (windows.size >= modelLimits.strictModels) windows.clear()
            windows.set(nameOf(ref), tokens)
          }
        }
        const turn = { provider: ref.provider, name: ref.name, maxConcurrency: ref.maxConcurrency ?? null }
        const inTurn: AskedModel["inTurn"] = (parts, admitted) => queue.inTurn({ ...turn, admitted }, parts)
        const { silenceTimeoutMs } = ref
        const patience = silenceTimeoutMs ? { silenceTimeoutMs } : {}
        return {
          provider: ref.provider,
          name: ref.name,
          price,
          port,
          where,
          parameters,
          window,
          inTurn,
          ...patience
        }
      })

      const openFallback = (choice: ModelChoice, ref: WantedModel | null): Effect.Effect<Fallback | null> =>
        ref
          ? Effect.catch(open(choice, ref), (error) => Effect.succeed({ unavailable: error.message }))
          : Effect.succeed(null)

      const resolve = Effect.fn("Models.resolve")(function* (
        choice: ModelChoice
      ): Effect.fn.Return<ResolvedModel, ModelUnavailable> {
        const { model: definition, settings } = choice
        const own = yield* Effect.result(pick(choice))
        const chosen = chooseModels(Result.getOrUndefined(own), definition, settings)
        if (!chosen) return yield* Result.isFailure(own) ? own.failure : unavailable(choice, howToConfigure)
        const model = yield* open(choice, chosen.primary)
        const fallback = yield* openFallback(choice, chosen.fallback)
        const terms = {
          retry: settings ? Option.getOrElse(settings.retry, () => defaultRetry) : defaultRetry,
          isRacing: settings?.isRacing ?? false
        }
        return {
          provider: model.provider,
          name: model.name,
          price: model.price,
          toolsMax: fewestOf(model, fallback),
          route: routeOf(model, fallback),
          request: (request) => askWithRetries(model, fallback, request, terms)
        }
      })

      const providers: ReadonlyArray<ProviderStatus> = [
        ...remoteProviders.map((provider) => ({
          provider,
          defaultModel: byName[provider].defaultModel,
          missing: byName[provider].missing
        })),
        { provider: "scripted", defaultModel: "", missing: null },
        { provider: "replay", defaultModel: "", missing: null }
      ]
      return Models.of({ resolve, providers, prices, lanes: queue.states, concurrency: queue.most })
    })
  )
}

/** The prompt's share of a window: the answer needs room, and token counts are estimates. */
const promptShareOf = (window: number, maxOutputTokens: number | null): number =>
  Math.floor(0.9 * (window - Math.min(maxOutputTokens ?? 4_096, window / 4)))

/** TodoAssistant as every project gets it: its own model where there is a key, otherwise the default model. */
const isSeededAssistant = ({ agentName, model }: ModelChoice): boolean =>
  agentName === todoAssistantName &&
  model?.provider === todoAssistant.model.provider &&
  model.name === todoAssistant.model.name

/** Habits that are known before the first request. */
const habitsOf = ({ name, provider }: ModelRef): Habits => ({
  tagsNotices: provider !== "openai" && provider !== "azure" && provider !== "openai-compatible",
  instructsByUser: false,
  edits: noEdits,
  answersTools: provider === "mistral",
  // Its package would otherwise remove calls and results from the conversation.
  leavesOutTools: provider === "amazon-bedrock",
  leavesOutPictures: false,
  wantsThinking: (provider === "anthropic" || provider === "amazon-bedrock") && thinksByBudget.test(name),
  wantsSignatures: false,
  leavesOutEncrypted: false,
  opensSilently: false
})

/** Whether a provider may pass on unparsed chat template output; the makers' own APIs separate reasoning. */
const mayThinkAloud = ({ provider }: ModelRef, { address, isOwnAddress }: Provider): boolean =>
  address !== null && isOwnAddress !== true && !["anthropic", "google", "google-vertex"].includes(provider)

/** Claude before 4.6 reasons up to a budget; later models decide themselves and need no reasoning with other models' calls. */
const thinksByBudget = /claude-(?:3-7|(?:opus|sonnet|haiku)-4[-@](?:[0-5](?!\d)|20))/

/** The call ids that a provider accepts, where it has a rule. */
const callIdsOf = (provider: ModelProvider): RegExp | undefined =>
  provider === "mistral"
    ? /^[a-zA-Z0-9]{9}$/
    : provider === "anthropic" || provider === "amazon-bedrock"
      ? /^[a-zA-Z0-9_-]{1,64}$/
      : undefined

/** Scripts and records use no server, so a request that may reach one cannot meet an outage. */
const routeOf = (model: AskedModel, fallback: Fallback | null): string | null => {
  const asked = fallback === null || "unavailable" in fallback ? [model] : [model, fallback]
  return asked.some(({ where }) => where === undefined)
    ? null
    : asked.map(({ name, where }) => `${where}, model ${name}`).join("; then ")
}

/** Options of a request under the provider's name: the server's, the effort's, then the definition's. */
const optionsOf = (
  { effortOptions, modelOptions, optionsName, requestOptions }: Provider,
  { name, providerOptions, reasoning }: WantedModel
): SharedV4ProviderOptions | undefined => {
  const options = {
    ...requestOptions,
    ...modelOptions?.(name),
    ...(reasoning ? effortOptions?.(reasoning, name) : {}),
    ...providerOptions
  }
  // Options come from a definition that was stored as JSON.
  return Object.keys(options).length === 0
    ? undefined
    : { [optionsName]: options as SharedV4ProviderOptions[string] }
}

/** The smaller of both models' tool limits. */
const fewestOf = (model: AskedModel, fallback: Fallback | null): number | null => {
  const asked = fallback === null || "unavailable" in fallback ? [model] : [model, fallback]
  const limits = asked.map(({ provider }) => toolsMaxOf(provider)).filter((max) => max !== null)
  return limits.length === 0 ? null : Math.min(...limits)
}

const nameOf = ({ name, provider }: ModelRef): string => `${provider}:${name}`

/** An address without its possible secrets: user name, password and query. */
const addressOf = (address: string | null): string => {
  if (address === null || !URL.canParse(address)) return ""
  const { origin, pathname } = new URL(address)
  return ` at ${origin}${pathname.replace(/\/$/, "")}`
}

type Compiled = ReturnType<typeof compileScript>

/** Compiled scripts by definition: all runs of an agent version share the same object. */
const compiled = new WeakMap<Script, Compiled>()

const compiledOnce = (script: Script): Compiled => {
  const known = compiled.get(script) ?? compileScript(script)
  compiled.set(script, known)
  return known
}

/** A script's model is shared by all callers. */
const opened = new WeakMap<CompiledScript, ModelPort>()

const openedOnce = (script: CompiledScript): ModelPort => {
  const model = opened.get(script) ?? fromScript(script)
  opened.set(script, model)
  return model
}

const howToConfigure =
  "set OPENAI_API_KEY or another provider's key, or TROPISM_MODEL to provider:name, or give the agent a model"

const unavailable = (choice: ModelChoice, message: string): ModelUnavailable =>
  new ModelUnavailable({ agentName: choice.agentName, message })

const isProvider = Schema.is(ModelProvider)

/** Parses `provider:name`, or a provider alone; a name may contain more colons (`llama3.1:8b`). */
const parseModelRef = (text: string, defaultModel: (provider: ModelProvider) => string): ModelRef | null => {
  const [provider = "", ...rest] = text.trim().split(":")
  if (!isProvider(provider)) return null
  const name = rest.join(":").trim()
  return { provider, name: name === "" ? defaultModel(provider) : name }
}

// Merges an agent's model definition with the context's settings.
//
// A setting names a provider and a model, and nothing of the operator's. Where it names a model of the definition it is that model, with
// its script and price; the setting's temperature and length take precedence.

/** The model settings of one context. */
type ModelSettings = Pick<ContextConfig, "primary" | "fallback" | "retry" | "isRacing">

/** A chosen model with its parameters. */
interface WantedModel extends ModelRef {
  readonly temperature?: number | null | undefined
  readonly maxOutputTokens?: number | null | undefined
  readonly reasoning?: ReasoningEffort | null | undefined
  readonly providerOptions?: ProviderOptions | null | undefined
  readonly maxConcurrency?: number | null | undefined
  /** Its own script. */
  readonly script?: Script | null | undefined
  /** Set in a context: only a script of its name may answer for it. */
  readonly isSet?: boolean
}

export interface ChosenModels {
  readonly primary: WantedModel
  readonly fallback: WantedModel | null
}

/** Chooses among the definition's models (`own`: its effective one, if any) and those set in the context. */
const chooseModels = (
  own: ModelRef | undefined,
  definition: ModelConfig | null,
  settings: ModelSettings | undefined
): ChosenModels | undefined => {
  const { fallback, ...first }: ModelConfig = definition ?? { provider: "scripted", name: "" }
  const { maxOutputTokens, providerOptions, reasoning, temperature } = first
  const shared = { temperature, maxOutputTokens, reasoning }
  // Options are specific to one provider.
  const options = fallback?.provider === first.provider ? { providerOptions } : {}
  const ownFallback = fallback ? { ...shared, ...options, ...fallback } : null
  const ownPrimary = own && { ...(definition ? first : {}), ...own }
  const known = [ownPrimary, ownFallback].filter((each) => each !== undefined && each !== null)
  const setPrimary = settings && Option.getOrUndefined(settings.primary)
  const setFallback = settings && Option.getOrUndefined(settings.fallback)
  const primary = setPrimary ? asKnown(setPrimary, known) : ownPrimary
  return primary && { primary, fallback: setFallback ? asKnown(setFallback, known) : ownFallback }
}

const asKnown = (set: LlmConfig, known: ReadonlyArray<WantedModel>): WantedModel => {
  const same = known.find(({ name, provider }) => name === set.name && provider === set.provider)
  return same ? { ...same, ...set } : { ...set, isSet: true }
}

// The `replay` model: answers as a recorded run did, request by request.
//
// It uses no network and ignores the prompt: the n-th request gets the n-th recorded answer. After the last one a request fails with a
// sentence. Nothing is spent, so no tokens are counted. The caller supplies the reader of records.

/** Creates a model that answers each request by its number from 0. */
const fromRecord =
  (runId: string, read: ReadRecord): ModelPort =>
  ({ step = 0 }) =>
    Stream.unwrap(
      Effect.map(read(runId, step), (answer) =>
        answer === null ? Stream.fail(usedUp(runId, step)) : Stream.fromIterable(partsOf(answer))
      )
    )

const usedUp = (runId: string, step: number): AiError.AiError =>
  AiError.make({
    module: "model",
    method: "replay",
    reason: new AiError.InvalidRequestError({
      description: `The record of the run ${runId} is used up: it has ${step} ${step === 1 ? "answer" : "answers"}, and this is request ${step + 1}`
    })
  })

const isReason = Schema.is(Response.FinishReason)

const partsOf = ({
  finishReason,
  text,
  toolCalls
}: RecordedAnswer): ReadonlyArray<Response.StreamPartEncoded> => [
  ...(text === ""
    ? []
    : ([
        { type: "text-start", id: textId },
        { type: "text-delta", id: textId, delta: text },
        { type: "text-end", id: textId }
      ] as const)),
  ...toolCalls.map((call): Response.StreamPartEncoded => ({
    type: "tool-call",
    id: call.id,
    name: call.name,
    params: call.arguments
  })),
  {
    type: "finish",
    reason: isReason(finishReason) ? finishReason : toolCalls.length === 0 ? "stop" : "tool-calls",
    usage: { inputTokens: { total: 0 }, outputTokens: { total: 0 } }
  }
]

// The `scripted` model: a script behind the model port.
//
// It uses no network, and its answers are marked with the provider `scripted`. Time comes from Clock, so a test or a simulation controls
// the duration of an answer. Token counts are estimates, so that budgets and charts work.

/** Creates a model that follows a script. */
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

/** The parts of a text without pacing. */
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
