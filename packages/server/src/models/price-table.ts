/**
 * List prices of well-known models: dollars per million tokens, with the source and date of each figure.
 *
 * Prices of the plain, synchronous service. None was read in the provider's own console, and prices change: an operator's file
 * (`TROPISM_PRICES`) and an agent's definition take precedence. An unconfirmed discount for cached input is left out, so that such input
 * counts in full and a budget ends early, not late. A missing model has no known price, which is better than a wrong one.
 */
import type { ModelPrice } from "@tropism/domain/model-price"
import type { RemoteProvider } from "./providers.ts"

/** Models of one provider whose prices have one source. */
interface PriceSheet {
  readonly providers: ReadonlyArray<RemoteProvider>
  /** The source, and whether it is the provider's own page. */
  readonly source: string
  /** The date of the source. */
  readonly asOf: string
  readonly models: Readonly<Record<string, ModelPrice>>
}

const price = (input: number, output: number, cachedInput?: number): ModelPrice => ({
  inputPerMillion: input,
  outputPerMillion: output,
  ...(cachedInput === undefined ? {} : { cachedInputPerMillion: cachedInput })
})

/** Anthropic charges 1.25 times the input price for writes to its five-minute cache, for every model. */
const claude = (input: number, output: number, cachedInput?: number): ModelPrice => ({
  ...price(input, output, cachedInput),
  cacheWritePerMillion: input * 1.25
})

const over = (overTokens: number, short: ModelPrice, long: ModelPrice): ModelPrice => {
  const { longPrompts: _none, ...rates } = long
  return { ...short, longPrompts: { overTokens, ...rates } }
}

export const priceSheets: ReadonlyArray<PriceSheet> = [
  {
    providers: ["openai"],
    source:
      "docs.rs/crate/adk-model/0.6.0 and openai-models/0.1.1, which cite openai.com; not OpenAI's own page",
    asOf: "2026-03",
    models: {
      "gpt-4o": price(2.5, 10, 1.25),
      "gpt-4o-2024-05-13": price(5, 15),
      "gpt-4o-mini": price(0.15, 0.6, 0.075),
      "gpt-4.1": price(2, 8, 0.5),
      "gpt-4.1-mini": price(0.4, 1.6, 0.1),
      "gpt-4.1-nano": price(0.1, 0.4, 0.025),
      "gpt-5": price(1.25, 10, 0.125),
      "gpt-5-mini": price(0.25, 2, 0.025),
      "gpt-5-nano": price(0.05, 0.4, 0.005),
      "gpt-5.1": price(1.25, 10, 0.125),
      "gpt-5.2": price(1.75, 14, 0.175)
    }
  },
  {
    providers: ["openai"],
    source: "morphllm.com/openai-api-pricing, which cites OpenAI's price page; not OpenAI's own page",
    asOf: "2026-06",
    models: {
      "gpt-5.4": price(2.5, 15, 0.25),
      "gpt-5.4-mini": price(0.75, 4.5, 0.075),
      "gpt-5.4-nano": price(0.2, 1.25, 0.02),
      "gpt-5.5": price(5, 30, 0.5)
    }
  },
  {
    providers: ["anthropic"],
    source: "platform.claude.com/docs/about-claude/models/whats-new-opus-5 (Anthropic's own page)",
    asOf: "2026-10",
    models: {
      "claude-fable-5-1": claude(10, 50),
      "claude-opus-5-5": claude(4, 20),
      "claude-opus-5": claude(5, 25, 0.5),
      "claude-sonnet-5-5": claude(2, 10),
      "claude-haiku-5-5": over(100_000, claude(0.1, 0.5), claude(0.5, 2.5))
    }
  },
  {
    providers: ["anthropic"],
    source: "platform.claude.com/docs/zh-CN/models/sonnet-5/overview (Anthropic's own page)",
    asOf: "2026-07",
    models: {
      "claude-sonnet-5": claude(2, 10, 0.2),
      "claude-haiku-4-5": claude(1, 5)
    }
  },
  {
    providers: ["anthropic"],
    source:
      "docs.rs/crate/tokr and docs.rs/synaps/0.10.2, which cite Anthropic's price page; not Anthropic's own page",
    asOf: "2026-10",
    models: {
      "claude-opus-4-5": claude(5, 25, 0.5),
      "claude-opus-4-6": claude(5, 25, 0.5),
      "claude-opus-4-7": claude(5, 25, 0.5),
      "claude-opus-4-8": claude(5, 25, 0.5),
      "claude-sonnet-4-5": claude(3, 15),
      "claude-sonnet-4-6": claude(3, 15)
    }
  },
  {
    providers: ["mistral"],
    source:
      "docs.mistral.ai/models/model-cards/mistral-medium-3-5-26-04, read through github.com/braintrustdata/braintrust-proxy issues 505 and 802; not Mistral's own page",
    asOf: "2026-05",
    models: { "mistral-medium-3-5": price(1.5, 7.5) }
  },
  {
    // Vertex AI's list prices are assumed to be the same; its regional endpoints may cost more.
    providers: ["google", "google-vertex"],
    source:
      "geotoolbox.ai/blog/gemini-api-pricing and morphllm.com/gemini-api-pricing, which cite ai.google.dev; not Google's own page",
    asOf: "2026-07",
    models: {
      "gemini-3.5-flash": price(1.5, 9),
      "gemini-3.1-pro-preview": over(200_000, price(2, 12), price(4, 18)),
      "gemini-3.1-flash-lite": price(0.25, 1.5),
      "gemini-2.5-pro": over(200_000, price(1.25, 10), price(2.5, 15)),
      "gemini-2.5-flash": price(0.3, 2.5),
      "gemini-2.5-flash-lite": price(0.1, 0.4)
    }
  }
]

/**
 * Context windows in tokens, with their source; only windows that a default prompt could come near, or that differ among a provider's
 * models.
 */
export const windowSheets: ReadonlyArray<{
  readonly providers: PriceSheet["providers"]
  readonly source: string
  readonly asOf: string
  readonly models: Readonly<Record<string, number>>
}> = [
  {
    providers: ["openai"],
    source:
      "github.com/labring/fastgpt-plugin/pull/297 and docs.rs/crate/koda-core (model_context.rs); not OpenAI's own page",
    asOf: "2026-03",
    models: {
      "gpt-4o": 128_000,
      "gpt-4o-mini": 128_000,
      "gpt-5": 400_000,
      "gpt-5.1": 400_000
    }
  },
  {
    providers: ["anthropic"],
    source: "platform.claude.com/docs/models/opus-5/overview and sonnet-5/overview (Anthropic's own pages)",
    asOf: "2026-10",
    models: {
      "claude-fable-5-1": 1_000_000,
      "claude-opus-5": 1_000_000,
      "claude-opus-5-5": 1_000_000,
      "claude-sonnet-5": 1_000_000,
      "claude-sonnet-5-5": 1_000_000
    }
  },
  {
    providers: ["anthropic"],
    source: "docs.rs/crate/mixtape-core (models/claude.rs); not Anthropic's own page",
    asOf: "2026-03",
    models: { "claude-opus-4-5": 200_000, "claude-sonnet-4-5": 200_000, "claude-haiku-4-5": 200_000 }
  },
  {
    providers: ["google", "google-vertex"],
    source: "docs.rs/crate/koda-core (model_context.rs); not Google's own page",
    asOf: "2026-03",
    models: { "gemini-2.5-pro": 1_048_576, "gemini-2.5-flash": 1_048_576 }
  },
  {
    providers: ["mistral"],
    source: "mungomash.com/ai/mistral/versions, which cites Mistral's model card; not Mistral's own page",
    asOf: "2026-06",
    models: { "mistral-medium-3-5": 256_000 }
  },
  {
    providers: ["amazon-bedrock"],
    source: "docs.rs/crate/mixtape-core/0.2.0 (models/mistral.rs); not Mistral's or Amazon's own page",
    asOf: "2026-03",
    models: {
      "mistral.mistral-large-3-675b-instruct": 256_000,
      "mistral.magistral-small-2509": 128_000
    }
  }
]
