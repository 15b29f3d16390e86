/**
 * Looks up model prices: the operator's file first, then the table.
 *
 * A price in an agent's definition takes precedence over both (`models.ts`). The file is read once at the start, and an invalid one stops
 * the server: otherwise money would be counted wrongly until someone noticed.
 */
import { ModelPrice } from "@tropism/domain/model-price"
import { Config, Effect, FileSystem, Option, Schema } from "effect"
import { priceSheets, windowSheets } from "./price-table.ts"
import { isRemoteName, type RemoteProvider, remoteProviders } from "./providers.ts"

/** The file in `TROPISM_PRICES` is not usable; `message` explains what to change. */
export class PricesUnusable extends Schema.TaggedError<PricesUnusable>()("PricesUnusable", {
  message: Schema.String
}) {}

/** A model's price and its source. */
export interface KnownPrice {
  readonly provider: RemoteProvider
  readonly name: string
  readonly price: ModelPrice
  readonly source: string
  /** The date of the source; null for the operator's own. */
  readonly asOf: string | null
}

export interface Prices {
  /** Null if unknown. A dated snapshot (`gpt-4o-2024-08-06`) costs the same as its model, unless it is listed. */
  readonly priceOf: (provider: string, name: string) => ModelPrice | null
  readonly known: ReadonlyArray<KnownPrice>
  /** The context window in tokens, with Azure, Bedrock and OpenRouter that of the model's maker; undefined if unknown. */
  readonly windowOf: (provider: string, name: string) => number | undefined
}

const PriceFile = Schema.fromJsonString(Schema.Record(Schema.String, ModelPrice))
const decodeFile = Schema.decodeUnknownEffect(PriceFile, { onExcessProperty: "error", errors: "all" })

/** Reads the operator's prices, if any, and merges them over the table. */
export const loadPrices = Effect.gen(function* () {
  const file = Option.getOrNull(yield* Config.option(Config.String("TROPISM_PRICES")))?.trim()
  const own = file ? yield* readFile(file) : []
  const byModel = new Map<string, KnownPrice>()
  for (const known of [...listed, ...own]) byModel.set(`${known.provider}:${known.name}`, known)
  const prices: Prices = {
    known: [...byModel.values()],
    windowOf: (provider, name) => knownWindow(provider, name) ?? windowOfMaker(provider, name),
    priceOf: (provider, name) =>
      (byModel.get(`${provider}:${name}`) ?? byModel.get(`${provider}:${undated(name)}`))?.price ?? null
  }
  return prices
})

const listed: ReadonlyArray<KnownPrice> = priceSheets.flatMap(({ asOf, models, providers, source }) =>
  providers.flatMap((provider) =>
    Object.entries(models).map(([name, price]) => ({ provider, name, price, source, asOf }))
  )
)

const windows = new Map(
  windowSheets.flatMap(({ models, providers }) =>
    providers.flatMap((provider) =>
      Object.entries(models).map(([name, tokens]): [string, number] => [`${provider}:${name}`, tokens])
    )
  )
)

const knownWindow = (provider: string, name: string): number | undefined =>
  windows.get(`${provider}:${name}`) ?? windows.get(`${provider}:${undated(name)}`)

/** The window of a model at another provider, whose model name contains the maker and the model. */
const windowOfMaker = (provider: string, name: string): number | undefined => {
  switch (provider) {
    // A deployment may be named after its model.
    case "azure":
      return knownWindow("openai", name) ?? knownWindow("anthropic", name)
    // `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, possibly at the end of an ARN.
    case "amazon-bedrock": {
      const [, model = ""] = /(?:^|[./])anthropic\.(claude-[^/]+)$/.exec(name) ?? []
      return knownWindow("anthropic", model.replace(/-v\d+(?::\d+\w*)?$/, ""))
    }
    // `anthropic/claude-sonnet-4.5:nitro`; a variant such as `:free` may have another window.
    case "openrouter": {
      const [, vendor = "", model = ""] =
        /^([a-z-]+)\/([^:]+?)(?::(?:nitro|floor|online|exacto|thinking))?$/.exec(name) ?? []
      const maker = makers.get(vendor)
      const own = maker === "anthropic" || maker === "mistral" ? model.replaceAll(".", "-") : model
      return maker === undefined ? undefined : knownWindow(maker, own)
    }
    default:
      return undefined
  }
}

/** OpenRouter's names of model makers. */
const makers: ReadonlyMap<string, RemoteProvider> = new Map([
  ["anthropic", "anthropic"],
  ["google", "google"],
  ["mistralai", "mistral"],
  ["openai", "openai"]
])

/** `gpt-4o-2024-08-06` and `claude-haiku-4-5-20251001` without their dates. */
const undated = (name: string): string => name.replace(/-(?:\d{4}-\d{2}-\d{2}|\d{8})$/, "")

const readFile = Effect.fnUntraced(function* (file: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const text = yield* Effect.mapError(fileSystem.readFileString(file), (error) =>
    unusable(file, `cannot be read (${error.message})`)
  )
  const prices = yield* Effect.mapError(decodeFile(text), (error) =>
    unusable(file, `is wrong: ${error.message}`)
  )
  return yield* Effect.forEach(Object.entries(prices), ([model, price]) => {
    const [provider = "", ...rest] = model.split(":")
    const name = rest.join(":")
    return name !== "" && isRemoteName(provider)
      ? Effect.succeed<KnownPrice>({ provider, name, price, source: "TROPISM_PRICES", asOf: null })
      : Effect.fail(
          unusable(
            file,
            `has a price for ${JSON.stringify(model)}; expected provider:name, the provider one of ${remoteProviders.join(", ")}`
          )
        )
  })
})

const example = '{"openai:gpt-4o": {"inputPerMillion": 2.5, "outputPerMillion": 10}}'

const unusable = (file: string, fault: string): PricesUnusable =>
  new PricesUnusable({
    message: `The file ${file}, which TROPISM_PRICES names, ${fault}. It should be JSON like ${example}.`
  })
