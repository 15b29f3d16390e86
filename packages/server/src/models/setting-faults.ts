/**
 * Checks environment settings before anything starts, with a sentence for the first fault.
 *
 * Addresses and choices that are read at their use would otherwise fail there, late or with a library's message. `main.ts` checks settings
 * with a default.
 */
import { Config, Effect, Option } from "effect"

const baseUrls = [
  "OPENAI_BASE_URL",
  "ANTHROPIC_BASE_URL",
  "GOOGLE_GENERATIVE_AI_BASE_URL",
  "GOOGLE_VERTEX_BASE_URL",
  "AZURE_BASE_URL",
  "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
  "MISTRAL_BASE_URL",
  "OPENROUTER_BASE_URL",
  "OPENAI_COMPATIBLE_BASE_URL"
]
const collectors = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]

const choices = [
  ["TROPISM_OPENAI_API", "chat", "responses"],
  ["TROPISM_PROMPT_CACHE", "on", "off"],
  ["OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "http/protobuf"],
  ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "http/protobuf"],
  ["OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json", "http/protobuf"]
] as const

/** The first invalid setting, and what to set; null when there is none. Values are not shown: an address may contain a password. */
export const findSettingFault = Effect.gen(function* () {
  for (const name of baseUrls) {
    const value = (yield* valueOf(name))?.trim() ?? ""
    if (value !== "" && !isWebAddress(value))
      return `${name} must be the address of a model's server, such as http://127.0.0.1:11434/v1, or be left out.`
  }
  for (const name of collectors) {
    const value = yield* valueOf(name)
    if (value !== undefined && !isWebAddress(value))
      return `${name} must be the address of a collector, such as http://127.0.0.1:4318, or be left out.`
  }
  for (const [name, first, second] of choices) {
    const value = (yield* valueOf(name))?.trim() ?? ""
    if (!["", first, second].includes(value)) return `${name} must be ${first} or ${second}, or be left out.`
  }
  return null
})

const valueOf = (name: string) =>
  Effect.orElseSucceed(Effect.map(Config.option(Config.String(name)), Option.getOrUndefined), () => undefined)

const isWebAddress = (value: string): boolean =>
  URL.canParse(value) && ["http:", "https:"].includes(new URL(value).protocol)
