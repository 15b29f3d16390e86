/**
 * Whether the arguments of a call fit what the tool's pinned schema says.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Judged before anything is started: a call that the server would refuse is not
 * a call whose outcome somebody has to find out. Who is calling is never said in
 * an argument that the schema does not have.
 */
import { findFault, isJsonObject, type JsonFault, pointerStep } from "@tropism/domain/json"
import { keptChars } from "@tropism/domain/kept-size"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Result, type Schema } from "effect"
import { type ChangeRefused, refused } from "../graph/refused.ts"
import { judge } from "./bounded-judging.ts"
import { foreignLimits } from "./foreign-limits.ts"
import { lineOf } from "./foreign-fault.ts"
import { findLostRef } from "./schema-refs.ts"
import { placesOf } from "./validator-words.ts"
import { unfit } from "./wrong-calls.ts"

/** Names that say who is calling, as people write them. */
const identities: ReadonlySet<string> = new Set([
  "userid",
  "projectid",
  "agentid",
  "runid",
  "tenantid",
  "attempttoken",
  "token",
  "accesstoken",
  "apikey",
  "authorization",
  "principal"
])

/** The first thing that is wrong with a call's arguments. */
export const findArgumentsFault = (
  { inputSchema }: { readonly inputSchema: Readonly<Record<string, unknown>> },
  args: Schema.Json
): ChangeRefused | undefined => {
  if (!isJsonObject(args)) return refused("invalid", "The arguments of a tool must be one JSON object")
  const fault = findFault(args)
  if (fault) return refused("invalid", fault.message, fault.pointer)
  const known = isJsonObject(inputSchema["properties"]) ? inputSchema["properties"] : {}
  const identity = Object.keys(args).find((name) => !Object.hasOwn(known, name) && isIdentity(name))
  if (identity !== undefined)
    return refused(
      "invalid",
      `Nobody says who is calling in an argument: leave ${identity} out`,
      pointerStep(identity)
    )
  const judged = judge(judgeable(inputSchema), args)
  if (Result.isFailure(judged))
    return refused("invalid", `The tool's schema cannot be used to check the arguments: ${judged.failure}`)
  if (judged.success === undefined) return undefined
  const faults = faultsOf(inputSchema, args, judged.success)
  return refused("invalid", unfit(faults, inputSchema), faults[0]?.pointer)
}

/** Why no arguments can be judged by a schema. */
export const whyUnjudgeable = (schema: Readonly<Record<string, unknown>>): string | undefined => {
  const tried = judge(judgeable(schema), {}, { steps: foreignLimits.tryingSteps })
  return Result.isFailure(tried) ? `its inputSchema cannot be used: ${tried.failure}` : undefined
}

/** Why no tool can have a schema: it is too long, a reference in it leads nowhere, or nothing can be judged by it. */
export const whyUnusable = (schema: Readonly<Record<string, unknown>>): string | undefined => {
  if (keptChars(schema) > foreignLimits.schemaMaxChars)
    return `The schema is longer than ${foreignLimits.schemaMaxChars} characters`
  const lost = findLostRef(schema)
  return lost === undefined
    ? whyUnjudgeable(schema)
    : `The schema refers to ${beginningOf(lineOf(lost), 200)}, which is not in it`
}

/** The schema without patterns that no expression can be made of: the server itself may know them. */
export const judgeable = (schema: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  JSON.parse(JSON.stringify(schema), (key, part: unknown) => {
    if (key === "pattern" && typeof part === "string") return isExpression(part) ? part : undefined
    if (key === "patternProperties" && isJsonObject(part))
      return Object.fromEntries(Object.entries(part).filter(([pattern]) => isExpression(pattern)))
    return part
  })

/** The schema without its patterns: an expression of an editor's could hold the server for minutes, so the client checks them. */
export const withoutPatterns = (schema: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  JSON.parse(JSON.stringify(schema), (key, part: unknown) => {
    if (key === "pattern" && typeof part === "string") return undefined
    if (!isJsonObject(part) || !isJsonObject(part["patternProperties"])) return part
    const {
      additionalProperties: _more,
      patternProperties: _named,
      unevaluatedProperties: _rest,
      ...kept
    } = part
    return kept
  })

const isExpression = (pattern: string): boolean =>
  Result.isSuccess(Result.try(() => new RegExp(pattern, "u")))

/** Whether an argument's name says who is calling. */
export const isIdentity = (name: string): boolean => identities.has(name.toLowerCase().replace(/[_-]/g, ""))

/** Every place that does not fit; of arguments that take long to go through, the one that was found first. */
const faultsOf = (
  schema: Readonly<Record<string, unknown>>,
  args: Schema.Json,
  first: string
): ReadonlyArray<JsonFault> => {
  const isLong = JSON.stringify(args).length > foreignLimits.thoroughMaxChars
  const all = isLong
    ? first
    : Result.getOrElse(judge(judgeable(schema), args, { isThorough: true }), () => first)
  const faults = Result.try({
    try: () => placesOf(all ?? first),
    catch: () => [{ pointer: "", message: lineOf(first) }]
  })
  return Result.merge(faults)
}
