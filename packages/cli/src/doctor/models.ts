/**
 * The models: which provider has what it needs, and, if asked to, whether it takes the key.
 */
import { loadProviders, remoteProviders } from "@tropism/server/models/providers"
import { Config, Effect, Option, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import { limits } from "../limits.ts"
import { fault, type Finding, ok, warn } from "@tropism/domain/finding"

/** What costs nothing to ask: which models there are. */
const lists = {
  openai: {
    variable: "OPENAI_API_KEY",
    base: "OPENAI_BASE_URL",
    url: "https://api.openai.com/v1",
    path: "/models"
  },
  anthropic: {
    variable: "ANTHROPIC_API_KEY",
    base: "ANTHROPIC_BASE_URL",
    url: "https://api.anthropic.com/v1",
    path: "/models"
  },
  google: {
    variable: "GOOGLE_GENERATIVE_AI_API_KEY",
    base: "GOOGLE_GENERATIVE_AI_BASE_URL",
    url: "https://generativelanguage.googleapis.com/v1beta",
    path: "/models"
  },
  mistral: {
    variable: "MISTRAL_API_KEY",
    base: "MISTRAL_BASE_URL",
    url: "https://api.mistral.ai/v1",
    path: "/models"
  },
  openrouter: {
    variable: "OPENROUTER_API_KEY",
    base: "OPENROUTER_BASE_URL",
    url: "https://openrouter.ai/api/v1",
    // Its list of models is public, and would take any key.
    path: "/key"
  },
  "openai-compatible": {
    variable: "OPENAI_COMPATIBLE_API_KEY",
    base: "OPENAI_COMPATIBLE_BASE_URL",
    url: "",
    path: "/models"
  }
} as const

type Listed = keyof typeof lists

const read = (name: string) =>
  Effect.orElseSucceed(
    Effect.map(Config.option(Config.Redacted(name)), (value) =>
      Option.getOrElse(Option.map(value, Redacted.value), () => "").trim()
    ),
    () => ""
  )

const headersOf = (provider: Listed, key: string): Record<string, string> => {
  if (key === "") return {}
  if (provider === "anthropic") return { "x-api-key": key, "anthropic-version": "2023-06-01" }
  return provider === "google" ? { "x-goog-api-key": key } : { authorization: `Bearer ${key}` }
}

const askOnline = Effect.fnUntraced(function* (provider: Listed) {
  const { base, path, url, variable } = lists[provider]
  const address = `${((yield* read(base)) || url).replace(/\/+$/, "")}${path}`
  const headers = headersOf(provider, yield* read(variable))
  return yield* Effect.tryPromise(() =>
    fetch(address, { headers, signal: AbortSignal.timeout(limits.doctorAnswerMs) })
  ).pipe(
    Effect.map(({ status }): Finding => {
      if (status === 401 || status === 403)
        return fault("model", `${provider} rejects the key (status ${status}).`, `export ${variable}=…`)
      return status < 400
        ? ok("model", `${provider} accepts the key.`)
        : warn("model", `${provider} responds with status ${status}.`, "tropism doctor --online")
    }),
    Effect.orElseSucceed(() =>
      fault(
        "model",
        `${provider} cannot be reached from here.`,
        `curl -sS -o /dev/null ${new URL(address).origin}`
      )
    )
  )
})

/** Looks at what every provider needs; only with `isOnline` is anybody asked. */
export const examineModels = (isOnline: boolean) =>
  Effect.gen(function* () {
    const { byName } = yield* loadProviders
    const usable = remoteProviders.filter((name) => byName[name].missing === null)
    if (usable.length === 0)
      return [
        warn(
          "model",
          "No provider has an API key, so only scripted agents can run.",
          "export OPENAI_API_KEY=… TROPISM_MODEL=openai:gpt-5.4"
        )
      ]
    return yield* Effect.forEach(usable, (name) =>
      isOnline && name in lists
        ? askOnline(name as Listed)
        : Effect.succeed(ok("model", `${name} is configured; check it with --online.`))
    )
  }).pipe(
    Effect.provide(FetchHttpClient.layer),
    Effect.catch(() =>
      Effect.succeed([
        fault("model", "The model settings cannot be read.", "env | grep -E '_API_KEY|_BASE_URL'")
      ])
    )
  )
