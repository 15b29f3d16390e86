/**
 * The models of a simulation as they are reached through a network: a request may fail, and the next one not.
 *
 * A script answers each request in the same way for ever. Here a request that the
 * plan says so of is refused, comes too fast, breaks off before or within its
 * answer, or is never answered. Whoever asks again hears what the script says, so
 * whatever tries again gets on, unless the model hangs: then no try of that request is
 * answered. The tries are the server's own.
 */
import type { Script } from "@tropism/domain/script"
import { free } from "@tropism/domain/model-price"
import { Effect, Option, Result, Stream } from "effect"
import { AiError } from "effect/ai"
import { cutShort } from "../src/models/ai-sdk-error.ts"
import type { ModelPort, PartStream, ResolvedModel } from "../src/models/model-request.ts"
import { type ModelChoice, type Models, fromScript } from "../src/models/models.ts"
import { askWithRetries, defaultRetry } from "../src/models/retry.ts"
import { compileScript } from "../src/models/script.ts"
import type { FaultPlan, Lapse } from "./faults.ts"
import { guardName } from "./guards.ts"

/** The models, each request of which the plan may let go wrong. */
export const withWeather = (
  models: Models["Service"],
  { request }: Pick<FaultPlan, "request">
): Models["Service"] => ({
  ...models,
  resolve: (choice) => {
    const script = scriptOf(choice)
    const port = script && portOf(script)
    return port === undefined
      ? models.resolve(choice)
      : Effect.succeed(
          resolved(choice, () => {
            let isHung = false
            return (asked) => {
              const lapse = isHung ? "hung" : request()
              isHung = lapse === "hung"
              return failing(lapse, port(asked))
            }
          })
        )
  }
})

/** The script that alone answers; undefined where another model may stand in. */
const scriptOf = ({ model, settings }: ModelChoice): Script | undefined => {
  const isSet = settings && (Option.isSome(settings.primary) || Option.isSome(settings.fallback))
  return model?.script && !model.fallback && !isSet ? model.script : undefined
}

/** A model whose port is made for each request, and asked by each try of it. */
const resolved = ({ model, settings }: ModelChoice, portOfRequest: () => ModelPort): ResolvedModel => {
  const named = { provider: "scripted" as const, name: model?.name ?? "", price: free }
  const retry = settings ? Option.getOrElse(settings.retry, () => defaultRetry) : defaultRetry
  return {
    ...named,
    toolsMax: null,
    // Runs wait for a model that lapses, as for a provider; the guard's script fails on purpose, again and again.
    route: named.name === guardName ? null : `scripted, model ${named.name}`,
    request: (request) =>
      askWithRetries({ ...named, port: portOfRequest() }, null, request, { retry, isRacing: false })
  }
}

/** By the definition that they stand in; one that cannot be followed has none. */
const ports = new WeakMap<Script, ModelPort>()

const portOf = (script: Script): ModelPort | undefined => {
  const known = ports.get(script)
  if (known !== undefined) return known
  const compiled = compileScript(script)
  if (Result.isFailure(compiled)) return undefined
  const port = fromScript(compiled.success)
  ports.set(script, port)
  return port
}

/** Parts of an answer that come before it breaks off within. */
const partsBefore = 2

const failing = (lapse: Lapse | undefined, parts: PartStream): PartStream => {
  switch (lapse) {
    case undefined:
      return parts
    case "refused":
      return refusedBy(new AiError.InternalProviderError({ description: "The model is away for a moment" }))
    case "hasty":
      return refusedBy(new AiError.RateLimitError({ metadata: { description: "Not so fast" } }))
    case "cut":
      return Stream.fail(cutShort("Broken off before it began"))
    case "cutWithin":
      return Stream.concat(
        Stream.take(
          Stream.takeWhile(parts, ({ type }) => type !== "finish"),
          partsBefore
        ),
        Stream.fail(cutShort("Broken off within"))
      )
    case "silent":
    case "hung":
      return Stream.never
  }
}

const refusedBy = (reason: AiError.AiErrorReason): PartStream =>
  Stream.fail(AiError.make({ module: "model", method: "simulated", reason }))
