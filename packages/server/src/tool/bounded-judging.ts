/**
 * Judges a value by a stranger's schema, in as many steps as are bounded.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * The validator has no bound of its own and holds everybody up while it works.
 * So it is given a schema that counts how often it is visited, and a value that
 * counts how often it is looked into; beyond the bound they throw. A `pattern`
 * is not counted.
 */
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker"
import { isJsonObject } from "@tropism/domain/json"
import { Result } from "effect"
import { foreignLimits } from "./foreign-limits.ts"
import { lineOf } from "./foreign-fault.ts"
import type { JsonSchema } from "./schema-refs.ts"
import { whyTooMuch } from "./schema-visits.ts"

/** Interprets schemas; the other validator of the SDK would make programs of a stranger's text. */
const engine = new CfWorkerJsonSchemaValidator()

/** Goes on after the first fault; it is asked about what does not fit. */
const thorough = new CfWorkerJsonSchemaValidator({ shortcircuit: false })

/** What does not fit, in the validator's words, undefined where everything does; a failure says why nobody can judge by the schema. */
export const judge = (
  schema: JsonSchema,
  value: unknown,
  { isThorough = false, steps = foreignLimits.judgingSteps }: { isThorough?: boolean; steps?: number } = {}
): Result.Result<string | undefined, string> =>
  Result.flatMap(readable(schema), () =>
    Result.try({
      try: () => {
        let left = steps
        const spend = (count: number) => {
          left -= count
          if (left < 0) throw new RangeError(`More than ${steps} steps are taken to judge by it`)
        }
        const validator = (isThorough ? thorough : engine).getValidator(countedSchema(schema, spend))
        return validator(countedValue(value, spend)).errorMessage
      },
      catch: (error) => lineOf(String(error))
    })
  )

/** A schema that is not too much. */
const readable = (schema: JsonSchema): Result.Result<undefined, string> =>
  Result.flatMap(
    Result.try({ try: () => whyTooMuch(schema), catch: (error) => lineOf(String(error)) }),
    (tooMuch) => (tooMuch === undefined ? Result.succeed(undefined) : Result.fail(tooMuch))
  )

/** A copy that counts its visits: whoever visits a part asks for its type. */
const countedSchema = (schema: JsonSchema, spend: (count: number) => void): Record<string, unknown> =>
  JSON.parse(JSON.stringify(schema), (_key, part: unknown) => {
    if (!isJsonObject(part)) return part
    const { type } = part
    const count = stepsOf(part)
    return Object.defineProperty(part, "type", {
      configurable: true,
      enumerable: Object.hasOwn(part, "type"),
      get: () => {
        spend(count)
        return type
      }
    })
  })

/** What a visit costs: itself, the lists that are gone through for it, and the words that may be told. */
const stepsOf = (part: JsonSchema): number =>
  Object.entries(part).reduce((sum, [keyword, said]) => sum + Math.ceil(charsOf(keyword, said) / 5), 10)

const charsOf = (keyword: string, said: unknown): number => {
  if (keyword === "enum" || keyword === "const") return JSON.stringify(said).length
  if (isJsonObject(said)) return JSON.stringify(Object.keys(said)).length
  if (Array.isArray(said))
    return JSON.stringify(said.map((each: unknown) => (isJsonObject(each) ? 0 : each))).length
  return keyword === "type" ? String(said).length : 0
}

/** The same value, which counts how often something in it is looked at. */
const countedValue = (value: unknown, spend: (count: number) => void): unknown => {
  const views = new WeakMap<object, object>()
  const view = (part: unknown): unknown => {
    if (typeof part !== "object" || part === null) return part
    const known = views.get(part)
    if (known) return known
    const made = new Proxy(part, counting)
    views.set(part, made)
    return made
  }
  const counting: ProxyHandler<object> = {
    get: (part, key) => {
      spend(1)
      return view(Reflect.get(part, key))
    },
    has: (part, key) => {
      spend(1)
      return Reflect.has(part, key)
    },
    getOwnPropertyDescriptor: (part, key) => {
      spend(1)
      return Reflect.getOwnPropertyDescriptor(part, key)
    }
  }
  return view(value)
}
