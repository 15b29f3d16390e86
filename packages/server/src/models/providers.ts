/**
 * Configures the providers: key, server address and how to create a model.
 *
 * Keys and addresses come from the operator's environment and are read once at the start; a key stays `Redacted` until a provider package
 * takes it. Addresses are always passed explicitly, so that no package reads one from the environment on its own. A package is loaded on
 * first use. `models.ts` chooses an agent's provider.
 */
import type {
  JSONValue,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  SharedV4ProviderOptions
} from "@ai-sdk/provider"
import type { ModelProvider, ReasoningEffort } from "@tropism/domain/model-config"
import { Config, Effect, Option, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import { encryptedReasoning } from "./ai-sdk-model.ts"
import type { PicturePlace } from "./ai-sdk-prompt.ts"
import {
  bedrockError,
  mistralError,
  withBodyEdits,
  withLenientAnswers,
  withReadableErrors
} from "./lenient-wire.ts"

/** A provider with a network server. */
export type RemoteProvider = Exclude<ModelProvider, "scripted" | "replay">

/** In the order in which a server without `TROPISM_MODEL` looks for an available one. */
export const remoteProviders: ReadonlyArray<RemoteProvider> = [
  "openai",
  "anthropic",
  "google",
  "google-vertex",
  "mistral",
  "openrouter",
  "azure",
  "amazon-bedrock",
  "openai-compatible"
]

export const isRemoteName = (name: string): name is RemoteProvider =>
  remoteProviders.some((remote) => remote === name)

export const isRemote = (provider: ModelProvider): provider is RemoteProvider => isRemoteName(provider)

export interface Provider {
  /** The model where none is named; empty where only the operator can know it. */
  readonly defaultModel: string
  /** What to configure before the provider is available; null where it is. */
  readonly missing: string | null
  /** Whether an agent must name it: its credentials may exist for other programs. */
  readonly mustBeNamed?: boolean
  /** Its server's address; null where the package determines it. */
  readonly address: string | null
  /** Whether that is OpenAI's own API. */
  readonly isOwnAddress?: boolean
  /** Whether request bodies are signed and so cannot be edited later. */
  readonly signsBodies?: boolean
  /** Where its API takes pictures of tool results: most chat completions accept them only from the user. */
  readonly picturePlace: PicturePlace
  /** Loads the provider's package and creates a model; fails on a wrong setting. */
  readonly makeModel: (modelName: string) => Effect.Effect<LanguageModelV4, unknown>
  /** The AI SDK's name for its options. */
  readonly optionsName: string
  /** Options of each request beside the model's parameters. */
  readonly requestOptions?: SharedV4ProviderOptions[string]
  /** Options of each request to a model, by its name. */
  readonly modelOptions?: (modelName: string) => SharedV4ProviderOptions[string]
  /** The options for a reasoning effort, where the package does not set them. */
  readonly effortOptions?: (effort: ReasoningEffort, modelName: string) => SharedV4ProviderOptions[string]
}

export interface Providers {
  readonly byName: Readonly<Record<RemoteProvider, Provider>>
  /** Removes every key of the environment from a text. */
  readonly scrub: (text: string) => string
}

const text = (name: string) =>
  Config.option(Config.String(name)).pipe(Config.map((value) => Option.getOrNull(value)?.trim() || null))

/** A key without surrounding white space: a line break at its end would make the header invalid. */
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
  azure: Config.all({
    key: key("AZURE_API_KEY"),
    resource: text("AZURE_RESOURCE_NAME"),
    baseUrl: text("AZURE_BASE_URL"),
    api: text("TROPISM_OPENAI_API")
  }),
  bedrock: Config.all({
    key: key("AWS_BEARER_TOKEN_BEDROCK"),
    accessKeyId: key("AWS_ACCESS_KEY_ID"),
    secretAccessKey: key("AWS_SECRET_ACCESS_KEY"),
    sessionToken: key("AWS_SESSION_TOKEN"),
    region: text("AWS_REGION"),
    baseUrl: text("AWS_ENDPOINT_URL_BEDROCK_RUNTIME")
  }),
  mistral: Config.all({ key: key("MISTRAL_API_KEY"), baseUrl: text("MISTRAL_BASE_URL") }),
  openrouter: Config.all({
    key: key("OPENROUTER_API_KEY"),
    baseUrl: text("OPENROUTER_BASE_URL"),
    promptCache: text("TROPISM_PROMPT_CACHE")
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
  const plainFetch = yield* FetchHttpClient.Fetch
  const editing = withBodyEdits(plainFetch)
  const fetch = withReadableErrors(editing)
  const env = yield* Environment
  const keys = Object.values(env).flatMap((each) =>
    Object.values(each).filter((value) => Redacted.isRedacted(value))
  )
  return {
    byName: {
      openai: openai(env.openai, fetch),
      anthropic: anthropic(env.anthropic, fetch),
      google: google(env.google, fetch),
      "google-vertex": vertex(env.vertex, fetch),
      azure: azure(env.azure, fetch),
      "amazon-bedrock": bedrock(env.bedrock, withReadableErrors(plainFetch, bedrockError)),
      mistral: mistral(env.mistral, withReadableErrors(editing, mistralError)),
      openrouter: openrouter(env.openrouter, fetch),
      "openai-compatible": compatible(env.compatible, fetch)
    },
    scrub: scrubber(keys)
  } satisfies Providers
})

const reveal = (key: Redacted.Redacted | null): string => (key === null ? "" : Redacted.value(key))

/** Loads a package and creates a model with it. */
const loaded = <Package>(
  load: () => Promise<Package>,
  make: (loaded: Package) => LanguageModelV4
): Effect.Effect<LanguageModelV4, unknown> =>
  Effect.tryPromise({ try: () => load().then(make), catch: (error) => error })

const openaiAddress = "https://api.openai.com/v1"

const unknownApi = (api: string | null): string | null =>
  [null, "chat", "responses"].includes(api)
    ? null
    : "set TROPISM_OPENAI_API to chat or to responses, or leave it out"

/**
 * Most servers at OPENAI_BASE_URL implement only chat completions; OpenAI's own newer models refuse tools with reasoning there. Requests to
 * the Responses API ask it to store nothing, which is the default of chat completions.
 */
const openai = (env: Environment["openai"], fetch: typeof globalThis.fetch): Provider => {
  const api = env.api ?? (env.baseUrl === null ? "responses" : "chat")
  return {
    defaultModel: "gpt-5.4",
    missing: env.key === null ? "set OPENAI_API_KEY" : unknownApi(env.api),
    address: env.baseUrl ?? openaiAddress,
    isOwnAddress: env.baseUrl === null,
    picturePlace: api === "responses" ? "result" : "user",
    makeModel: (name) =>
      loaded(
        () => import("@ai-sdk/openai"),
        ({ createOpenAI }) => {
          const provider = createOpenAI({
            apiKey: reveal(env.key),
            baseURL: env.baseUrl ?? openaiAddress,
            fetch: api === "responses" ? fetch : withLenientAnswers(fetch)
          })
          return api === "responses" ? provider.responses(name) : provider.chat(name)
        }
      ),
    optionsName: "openai",
    requestOptions: { store: false },
    ...(api === "responses" ? { modelOptions: encryptedOf } : {}),
    effortOptions: (_effort, name) => (isOfFamily(name) ? {} : { forceReasoning: true })
  }
}

/** The package detects reasoning models by name: it knows these, but no fine-tuned model or deployment. */
const isOfFamily = (name: string): boolean => /^(?:gpt-\d|chatgpt|o\d)/.test(name)

/** Fine-tuned models and deployments of these have no reasoning either. */
const neverReasons = /^(?:ft:)?(?:gpt-(?:3|4)|chatgpt)/

/** Requests encrypted reasoning from a model with an unknown name; one without it refuses and is asked again. */
const encryptedOf = (name: string): SharedV4ProviderOptions[string] =>
  isOfFamily(name) || neverReasons.test(name) ? {} : { include: [encryptedReasoning] }

const anthropicAddress = "https://api.anthropic.com/v1"

const anthropic = (env: Environment["anthropic"], fetch: typeof globalThis.fetch): Provider => ({
  defaultModel: "claude-sonnet-5-5",
  missing: env.key === null ? "set ANTHROPIC_API_KEY" : null,
  address: env.baseUrl ?? anthropicAddress,
  picturePlace: "result",
  makeModel: (name) =>
    loaded(
      () => import("@ai-sdk/anthropic"),
      ({ createAnthropic }) =>
        createAnthropic({
          apiKey: reveal(env.key),
          baseURL: env.baseUrl ?? anthropicAddress,
          fetch
        })(name)
    ),
  optionsName: "anthropic",
  // Anthropic caches only on request: the next request of a conversation then reads the cache at a tenth of the price.
  requestOptions: {
    ...(env.promptCache === "off" ? {} : { cacheControl: { type: "ephemeral" } }),
    // An Anthropic field that compatible servers refuse: `eager_input_streaming`.
    ...(isAnthropics(env.baseUrl) ? {} : { toolStreaming: false })
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
    loaded(
      () => import("@ai-sdk/google"),
      ({ createGoogle }) =>
        createGoogle({ apiKey: reveal(env.key), baseURL: env.baseUrl ?? googleAddress, fetch })(name)
    ),
  optionsName: "google"
})

/** With a key alone, or with a project and a location, where Google's own library finds the credentials. */
const vertex = (env: Environment["vertex"], fetch: typeof globalThis.fetch): Provider => ({
  defaultModel: "gemini-3.5-flash",
  missing:
    env.key !== null || (env.project !== null && env.location !== null)
      ? null
      : "set GOOGLE_VERTEX_API_KEY, or GOOGLE_VERTEX_PROJECT and GOOGLE_VERTEX_LOCATION beside Google Cloud credentials",
  address: env.baseUrl,
  picturePlace: "result",
  makeModel: (name) =>
    loaded(
      () => import("@ai-sdk/google-vertex"),
      ({ createGoogleVertex }) =>
        createGoogleVertex({
          ...(env.key === null ? {} : { apiKey: reveal(env.key) }),
          ...(env.project === null ? {} : { project: env.project }),
          ...(env.location === null ? {} : { location: env.location }),
          ...(env.baseUrl === null ? {} : { baseURL: env.baseUrl }),
          fetch
        })(name)
    ),
  optionsName: "vertex"
})

const azureName = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i

/** A model's name is that of a deployment, which only the operator knows. */
const azure = (env: Environment["azure"], fetch: typeof globalThis.fetch): Provider => {
  const address = env.baseUrl ?? (env.resource && `https://${env.resource}.openai.azure.com/openai/v1`)
  const isChat = env.api === "chat"
  return {
    defaultModel: "",
    missing:
      env.key === null
        ? "set AZURE_API_KEY, and AZURE_RESOURCE_NAME or AZURE_BASE_URL"
        : address === null
          ? "set AZURE_RESOURCE_NAME, or AZURE_BASE_URL"
          : env.baseUrl === null && !azureName.test(env.resource ?? "")
            ? "set AZURE_RESOURCE_NAME to the name of a resource: letters, digits and hyphens"
            : unknownApi(env.api),
    address,
    picturePlace: isChat ? "user" : "result",
    makeModel: (name) =>
      loaded(
        () => import("@ai-sdk/azure"),
        ({ createAzure }) => {
          const provider = createAzure({
            apiKey: reveal(env.key),
            baseURL: address ?? "",
            fetch: isChat ? withLenientAnswers(fetch) : fetch
          })
          return isChat ? provider.chat(name) : provider.responses(name)
        }
      ),
    optionsName: "azure",
    requestOptions: { store: false },
    ...(isChat ? {} : { modelOptions: encryptedOf }),
    // The package detects a model's abilities by name, and a deployment's name reveals none.
    effortOptions: () => ({ forceReasoning: true })
  }
}

const regionName = /^[a-z]{2,8}(?:-[a-z0-9]+){1,4}$/

/** With a Bedrock API key, or with an access key that signs requests. */
const bedrock = (env: Environment["bedrock"], fetch: typeof globalThis.fetch): Provider => {
  const address = env.baseUrl ?? (env.region && `https://bedrock-runtime.${env.region}.amazonaws.com`)
  const signs = env.accessKeyId !== null && env.secretAccessKey !== null
  return {
    defaultModel: "global.anthropic.claude-sonnet-5-5",
    missing:
      env.key === null && !signs
        ? "set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_REGION"
        : regionName.test(env.region ?? "")
          ? null
          : "set AWS_REGION to a region such as us-east-1",
    mustBeNamed: env.key === null,
    address,
    signsBodies: true,
    picturePlace: "result",
    makeModel: (name) =>
      loaded(
        () => import("@ai-sdk/amazon-bedrock"),
        ({ createAmazonBedrock }) =>
          createAmazonBedrock({
            region: env.region ?? "",
            baseURL: address ?? "",
            ...(env.key === null
              ? {
                  // A blank key stops the package from looking for one in the environment.
                  apiKey: " ",
                  accessKeyId: reveal(env.accessKeyId),
                  secretAccessKey: reveal(env.secretAccessKey),
                  ...(env.sessionToken === null ? {} : { sessionToken: reveal(env.sessionToken) })
                }
              : { apiKey: reveal(env.key) }),
            fetch
          })(name)
      ),
    optionsName: "amazonBedrock"
  }
}

const mistralAddress = "https://api.mistral.ai/v1"

const mistral = (env: Environment["mistral"], fetch: typeof globalThis.fetch): Provider => ({
  defaultModel: "mistral-medium-3-5",
  missing: env.key === null ? "set MISTRAL_API_KEY" : null,
  address: env.baseUrl ?? mistralAddress,
  picturePlace: "user",
  makeModel: (name) =>
    loaded(
      () => import("@ai-sdk/mistral"),
      ({ createMistral }) =>
        createMistral({
          apiKey: reveal(env.key),
          baseURL: env.baseUrl ?? mistralAddress,
          fetch: withLenientAnswers(fetch)
        })(name)
    ),
  optionsName: "mistral"
})

const openrouterAddress = "https://openrouter.ai/api/v1"

/** Requests usage; Anthropic's models at OpenRouter cache only on request, as at Anthropic itself. */
const openrouter = (env: Environment["openrouter"], fetch: typeof globalThis.fetch): Provider => ({
  defaultModel: "openrouter/auto",
  missing: env.key === null ? "set OPENROUTER_API_KEY" : null,
  address: env.baseUrl ?? openrouterAddress,
  picturePlace: "result",
  makeModel: (name) =>
    loaded(
      () => import("@openrouter/ai-sdk-provider"),
      ({ createOpenRouter }) =>
        withAllReasoning(
          createOpenRouter({
            apiKey: reveal(env.key),
            baseURL: env.baseUrl ?? openrouterAddress,
            fetch: withoutMarks(withLenientAnswers(fetch, true))
          }).chat(name, {
            usage: { include: true },
            ...(env.promptCache !== "off" && name.startsWith("anthropic/")
              ? { cache_control: { type: "ephemeral" } }
              : {})
          })
        )
    ),
  optionsName: "openrouter",
  effortOptions: (effort) => ({ reasoning: { effort } })
})

/** Marks a reasoning detail: a step that repeats earlier reasoning has details that the package cannot tell apart. */
const markOf = (message: number, detail: number): string => `\u{e0001}${message}.${detail}`
const mark = /\u{e0001}\d+\.\d+$/u

/** The fields by which the package deduplicates details, in its order. */
const comparedFields = ["summary", "id", "data", "text", "signature"] as const

/**
 * Sends the reasoning details of every step.
 *
 * The package (3.1.0) drops a detail whose text or id is in an earlier message, although OpenRouter wants each message's own. So the
 * compared fields are marked before the package reads them, and the marks are removed on the wire.
 */
const withAllReasoning = (model: LanguageModelV4): LanguageModelV4 =>
  new Proxy(model, {
    get: (target, name) =>
      name === "doStream"
        ? (options: LanguageModelV4CallOptions) =>
            target.doStream({ ...options, prompt: options.prompt.map(withMarks) })
        : Reflect.get(target, name, target)
  })

const withMarks = (
  message: LanguageModelV4CallOptions["prompt"][number],
  place: number
): LanguageModelV4CallOptions["prompt"][number] =>
  message.role === "assistant"
    ? {
        ...message,
        content: message.content.map((part) => {
          const own = part.providerOptions?.["openrouter"]
          const details = own?.["reasoning_details"]
          if (!Array.isArray(details)) return part
          const reasoning_details = details.map((detail, index) =>
            withChanged(detail as Readonly<Record<string, JSONValue>>, (text) => text + markOf(place, index))
          )
          return {
            ...part,
            providerOptions: { ...part.providerOptions, openrouter: { ...own, reasoning_details } }
          }
        })
      }
    : message

/** A detail with changed compared fields; an empty text is not compared. */
const withChanged = (
  detail: Readonly<Record<string, JSONValue>>,
  change: (text: string) => string
): Record<string, JSONValue> => ({
  ...detail,
  ...Object.fromEntries(
    comparedFields.flatMap((field) => {
      const value = detail[field]
      return typeof value === "string" && value !== "" ? [[field, change(value)]] : []
    })
  )
})

/** A fetch that removes the marks from requests. */
const withoutMarks = (fetch: typeof globalThis.fetch): typeof globalThis.fetch =>
  Object.assign(
    (input: Parameters<typeof fetch>[0], init?: RequestInit) => {
      if (typeof init?.body !== "string" || !init.body.includes('"reasoning_details"'))
        return fetch(input, init)
      const body: { readonly messages: ReadonlyArray<Readonly<Record<string, JSONValue>>> } = JSON.parse(
        init.body
      )
      const messages = body.messages.map(({ reasoning_details: details, ...message }) =>
        Array.isArray(details)
          ? {
              ...message,
              reasoning_details: details.map((detail) =>
                withChanged(detail as Readonly<Record<string, JSONValue>>, (text) => text.replace(mark, ""))
              )
            }
          : message
      )
      return fetch(input, { ...init, body: JSON.stringify({ ...body, messages }) })
    },
    { preconnect: fetch.preconnect }
  )

/** Any other server: an address is enough, since many local ones need no key. Its model names are unknown. */
const compatible = (env: Environment["compatible"], fetch: typeof globalThis.fetch): Provider => ({
  defaultModel: env.model ?? "",
  missing:
    env.baseUrl === null
      ? "set OPENAI_COMPATIBLE_BASE_URL to the address of a server that speaks OpenAI's chat completions"
      : null,
  address: env.baseUrl,
  picturePlace: "user",
  makeModel: (name) =>
    loaded(
      () => import("@ai-sdk/openai-compatible"),
      ({ createOpenAICompatible }) =>
        createOpenAICompatible({
          name: "openai-compatible",
          baseURL: env.baseUrl ?? "",
          includeUsage: true,
          transformRequestBody: withBothReasoningNames,
          ...(env.key === null ? {} : { apiKey: reveal(env.key) }),
          fetch: withLenientAnswers(fetch)
        }).chatModel(name)
    ),
  optionsName: "openai-compatible"
})

/** vLLM and OpenRouter call `reasoning` what DeepSeek and others call `reasoning_content`; each reads only its own. */
const withBothReasoningNames = (body: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
  ...body,
  messages: (body["messages"] as ReadonlyArray<Readonly<Record<string, unknown>>>).map((message) =>
    "reasoning_content" in message ? { ...message, reasoning: message["reasoning_content"] } : message
  )
})

/** A shorter key is a placeholder for a local server; removing it would only garble texts. */
const shortestSecretChars = 8

const scrubber =
  (keys: ReadonlyArray<Redacted.Redacted | null>) =>
  (value: string): string =>
    keys.reduce<string>((text, key) => {
      const secret = reveal(key)
      return secret.length < shortestSecretChars ? text : text.replaceAll(secret, "<redacted>")
    }, value)
