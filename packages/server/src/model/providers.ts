/**
 * The providers: where each finds its key and its server, and how its models are made.
 *
 * Keys and addresses come from the operator's environment and are read once,
 * when the server starts; a key stays `Redacted` until a provider package takes
 * it. An address is always given explicitly, so that no package looks for one
 * in the environment behind our back. Which provider an agent gets is decided
 * in `models.ts`.
 */
import { createAnthropic } from "@ai-sdk/anthropic"
import { createGoogle } from "@ai-sdk/google"
import { createGoogleVertex } from "@ai-sdk/google-vertex"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import type { LanguageModelV4, SharedV4ProviderOptions } from "@ai-sdk/provider"
import type { ModelProvider } from "@tropism/domain/model-config"
import { Config, Effect, Option, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import type { PicturePlace } from "./ai-sdk-prompt.ts"
import { withLenientAnswers, withReadableErrors } from "./lenient-wire.ts"

/** A provider that is reached over the network. */
export type RemoteProvider = Exclude<ModelProvider, "scripted" | "replay">

/** In the order in which a server without `TROPISM_MODEL` looks for one it can use. */
export const remoteProviders: ReadonlyArray<RemoteProvider> = [
  "openai",
  "anthropic",
  "google",
  "google-vertex",
  "openai-compatible"
]

export const isRemoteName = (name: string): name is RemoteProvider =>
  remoteProviders.some((remote) => remote === name)

export const isRemote = (provider: ModelProvider): provider is RemoteProvider => isRemoteName(provider)

export interface Provider {
  /** The model that is asked where nobody named one; empty where only the operator could know it. */
  readonly defaultModel: string
  /** What to set before the provider can be used; null where it can. */
  readonly missing: string | null
  /** Where its server lies; null where the provider's package finds out. */
  readonly address: string | null
  /** Where its API takes pictures of tool results: chat completions take them from the user only. */
  readonly picturePlace: PicturePlace
  readonly makeModel: (modelName: string) => LanguageModelV4
  /** What each request says beside the model's parameters. */
  readonly requestOptions?: SharedV4ProviderOptions
}

export interface Providers {
  readonly byName: Readonly<Record<RemoteProvider, Provider>>
  /** Takes every key of the environment out of a text. */
  readonly scrub: (text: string) => string
}

const text = (name: string) =>
  Config.option(Config.String(name)).pipe(Config.map((value) => Option.getOrNull(value)?.trim() || null))

/** A key as a file or a shell may hand it over: a line break at its end would make the header invalid. */
const key = (name: string) =>
  Config.option(Config.Redacted(name)).pipe(
    Config.map((value) => {
      const trimmed = Option.isSome(value) ? Redacted.value(value.value).trim() : ""
      return trimmed === "" ? null : Redacted.make(trimmed)
    })
  )

const Environment = Config.all({
  openai: Config.all({
    key: key("OPENAI_API_KEY"),
    baseUrl: text("OPENAI_BASE_URL"),
    api: text("TROPISM_OPENAI_API")
  }),
  anthropic: Config.all({
    key: key("ANTHROPIC_API_KEY"),
    baseUrl: text("ANTHROPIC_BASE_URL"),
    promptCache: text("TROPISM_PROMPT_CACHE")
  }),
  google: Config.all({
    key: key("GOOGLE_GENERATIVE_AI_API_KEY"),
    baseUrl: text("GOOGLE_GENERATIVE_AI_BASE_URL")
  }),
  vertex: Config.all({
    key: key("GOOGLE_VERTEX_API_KEY"),
    project: text("GOOGLE_VERTEX_PROJECT"),
    location: text("GOOGLE_VERTEX_LOCATION"),
    baseUrl: text("GOOGLE_VERTEX_BASE_URL")
  }),
  compatible: Config.all({
    key: key("OPENAI_COMPATIBLE_API_KEY"),
    baseUrl: text("OPENAI_COMPATIBLE_BASE_URL"),
    model: text("OPENAI_COMPATIBLE_MODEL")
  })
})
type Environment = Config.Success<typeof Environment>

/** Reads the keys and addresses of all providers. */
export const loadProviders = Effect.gen(function* () {
  const fetch = withReadableErrors(yield* FetchHttpClient.Fetch)
  const env = yield* Environment
  const keys = [env.openai.key, env.anthropic.key, env.google.key, env.vertex.key, env.compatible.key]
  return {
    byName: {
      openai: openai(env.openai, fetch),
      anthropic: anthropic(env.anthropic, fetch),
      google: google(env.google, fetch),
      "google-vertex": vertex(env.vertex, fetch),
      "openai-compatible": compatible(env.compatible, fetch)
    },
    scrub: scrubber(keys)
  } satisfies Providers
})

const reveal = (key: Redacted.Redacted | null): string => (key === null ? "" : Redacted.value(key))

const openaiAddress = "https://api.openai.com/v1"

/** Chat completions are what most servers behind OPENAI_BASE_URL speak; the Responses API is asked to keep nothing, as chat completions do by themselves. */
const openai = (env: Environment["openai"], fetch: typeof globalThis.fetch): Provider => ({
  defaultModel: "gpt-4o",
  missing:
    env.key === null
      ? "set OPENAI_API_KEY"
      : [null, "chat", "responses"].includes(env.api)
        ? null
        : "set TROPISM_OPENAI_API to chat or to responses, or leave it out",
  address: env.baseUrl ?? openaiAddress,
  picturePlace: env.api === "responses" ? "result" : "user",
  makeModel: (name) => {
    const provider = createOpenAI({
      apiKey: reveal(env.key),
      baseURL: env.baseUrl ?? openaiAddress,
      fetch: env.api === "responses" ? fetch : withLenientAnswers(fetch)
    })
    return env.api === "responses" ? provider.responses(name) : provider.chat(name)
  },
  requestOptions: { openai: { store: false } }
})

const anthropicAddress = "https://api.anthropic.com/v1"

const anthropic = (env: Environment["anthropic"], fetch: typeof globalThis.fetch): Provider => ({
  defaultModel: "claude-sonnet-5",
  missing: env.key === null ? "set ANTHROPIC_API_KEY" : null,
  address: env.baseUrl ?? anthropicAddress,
  picturePlace: "result",
  makeModel: (name) =>
    createAnthropic({
      apiKey: reveal(env.key),
      baseURL: env.baseUrl ?? anthropicAddress,
      fetch
    })(name),
  // Anthropic caches nothing unless asked: a conversation's next request reads what this one wrote, at a tenth of the price.
  requestOptions: {
    anthropic: {
      ...(env.promptCache === "off" ? {} : { cacheControl: { type: "ephemeral" } }),
      // A field of Anthropic's own, which compatible servers refuse: `eager_input_streaming`.
      ...(isAnthropics(env.baseUrl) ? {} : { toolStreaming: false })
    }
  }
})

const isAnthropics = (address: string | null): boolean =>
  address === null || (URL.canParse(address) && new URL(address).host === new URL(anthropicAddress).host)

const googleAddress = "https://generativelanguage.googleapis.com/v1beta"

const google = (env: Environment["google"], fetch: typeof globalThis.fetch): Provider => ({
  defaultModel: "gemini-3.5-flash",
  missing: env.key === null ? "set GOOGLE_GENERATIVE_AI_API_KEY" : null,
  address: env.baseUrl ?? googleAddress,
  picturePlace: "result",
  makeModel: (name) =>
    createGoogle({
      apiKey: reveal(env.key),
      baseURL: env.baseUrl ?? googleAddress,
      fetch
    })(name)
})

/** With a key alone; or with a project and a location, where Google's own library finds the credentials. */
const vertex = (env: Environment["vertex"], fetch: typeof globalThis.fetch): Provider => ({
  defaultModel: "gemini-3.5-flash",
  missing:
    env.key !== null || (env.project !== null && env.location !== null)
      ? null
      : "set GOOGLE_VERTEX_API_KEY, or GOOGLE_VERTEX_PROJECT and GOOGLE_VERTEX_LOCATION beside Google Cloud credentials",
  address: env.baseUrl,
  picturePlace: "result",
  makeModel: (name) =>
    createGoogleVertex({
      ...(env.key === null ? {} : { apiKey: reveal(env.key) }),
      ...(env.project === null ? {} : { project: env.project }),
      ...(env.location === null ? {} : { location: env.location }),
      ...(env.baseUrl === null ? {} : { baseURL: env.baseUrl }),
      fetch
    })(name)
})

/** Any other server: the address makes it usable, since many local ones ask for no key. Nobody knows what its models are called. */
const compatible = (env: Environment["compatible"], fetch: typeof globalThis.fetch): Provider => ({
  defaultModel: env.model ?? "",
  missing:
    env.baseUrl === null
      ? "set OPENAI_COMPATIBLE_BASE_URL to the address of a server that speaks OpenAI's chat completions"
      : null,
  address: env.baseUrl,
  picturePlace: "user",
  makeModel: (name) =>
    createOpenAICompatible({
      name: "openai-compatible",
      baseURL: env.baseUrl ?? "",
      includeUsage: true,
      transformRequestBody: withBothReasoningNames,
      ...(env.key === null ? {} : { apiKey: reveal(env.key) }),
      fetch: withLenientAnswers(fetch)
    }).chatModel(name)
})

/** vLLM and OpenRouter call `reasoning` what DeepSeek and others call `reasoning_content`; each reads its own. */
const withBothReasoningNames = (body: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
  ...body,
  messages: (body["messages"] as ReadonlyArray<Readonly<Record<string, unknown>>>).map((message) =>
    "reasoning_content" in message ? { ...message, reasoning: message["reasoning_content"] } : message
  )
})

/** A key of fewer characters is a placeholder for a local server; taking it out would only garble texts. */
const shortestSecretChars = 8

const scrubber =
  (keys: ReadonlyArray<Redacted.Redacted | null>) =>
  (value: string): string =>
    keys.reduce<string>((text, key) => {
      const secret = reveal(key)
      return secret.length < shortestSecretChars ? text : text.replaceAll(secret, "<redacted>")
    }, value)
