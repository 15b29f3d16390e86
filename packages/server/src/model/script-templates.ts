/**
 * The Liquid of scripts: expressions, templates, and values with templates inside.
 *
 * A script may come from anyone who may write an agent, so its Liquid reads no
 * file, sees own properties only, and is bounded in length, time and memory.
 * Everything is parsed when the script is compiled, so a mistake is found
 * before the first run. These functions throw as Liquid does; `script.ts`
 * catches. What a script sees is in `script-scope.ts`.
 */
import { beginningOf } from "@tropism/domain/text-beginning"
import { Schema } from "effect"
import { Context, Liquid, Tokenizer, TokenKind, toValueSync, Value } from "liquidjs"
import { modelLimits } from "../limits.ts"
import { standingAlone } from "./lone-templates.ts"

const engine = standingAlone(
  new Liquid({
    templates: {},
    ownPropertyOnly: true,
    strictFilters: true,
    groupedExpressions: true,
    parseLimit: modelLimits.scriptParseMaxChars,
    renderLimit: modelLimits.scriptRenderTimeoutMs,
    memoryLimit: modelLimits.scriptMemoryMaxUnits
  })
)

/** Something parsed that is evaluated against a scope. */
export type Evaluate<A> = (scope: object) => A

const isJson = Schema.is(Schema.Json)

/** Parses one expression, which gives a JSON value; what is not there is null. */
export const parseExpression = (text: string): Evaluate<Schema.Json> => {
  if (text.length > modelLimits.scriptParseMaxChars)
    throw new Error(`an expression has at most ${modelLimits.scriptParseMaxChars} characters`)
  const tokenizer = new Tokenizer(text, engine.options.operators, undefined, undefined, true)
  const token = tokenizer.readFilteredValue()
  // Liquid stops at the first thing it does not understand and says nothing.
  const rest = text.slice(tokenizer.p).trim()
  if (rest !== "") throw new Error(`"${rest}" is not understood in "${text}"`)
  const value = new Value(token, engine)
  if (!isWhole(value)) throw new Error(`"${text}" has an operator or a value too many`)
  return (scope) => {
    const result = toValueSync(
      value.value(new Context(scope, engine.options, { sync: true }, { liquid: engine }))
    )
    return isJson(result) ? result : null
  }
}

/** Whether the operators of an expression use up its values; Liquid takes the first value otherwise. */
const isWhole = (value: Value): boolean => {
  let values = 0
  for (const token of value.initial.postfix) {
    if (token.kind !== TokenKind.Operator) values += 1
    else if (token.getText() !== "not") values -= 1
    if (values < 1) return false
  }
  return values === 1
}

/** Parses a condition; one that is neither true, false nor missing is a mistake of its author. */
export const parseCondition = (text: string): Evaluate<boolean> => {
  const expression = parseExpression(text)
  return (scope) => {
    const value = expression(scope)
    if (typeof value === "boolean") return value
    if (value === null) return false
    throw new Error(`"${text}" is neither true nor false but ${beginningOf(JSON.stringify(value), 100)}`)
  }
}

/** Parses a text with `{{ }}` and `{% %}` inside. */
export const parseTemplate = (text: string): Evaluate<string> => {
  const templates = engine.parse(text)
  return (scope) => String(engine.renderSync(templates, scope))
}

const wholeExpression = /^\s*\{\{-?((?:(?!\}\}|\{\{)[\s\S])*?)-?\}\}\s*$/

/** Parses every text inside a JSON value; a text that is exactly one `{{ expression }}` keeps the value's type. */
export const parseValue = (value: Schema.Json): Evaluate<Schema.Json> => {
  if (typeof value === "string") {
    const whole = wholeExpression.exec(value)?.[1]
    return whole === undefined ? parseTemplate(value) : parseExpression(whole.trim())
  }
  if (isJsonArray(value)) {
    const items = value.map(parseValue)
    return (scope) => items.map((item) => item(scope))
  }
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).map(([key, item]) => [key, parseValue(item)] as const)
    return (scope) => Object.fromEntries(entries.map(([key, item]) => [key, item(scope)]))
  }
  return () => value
}

const isJsonArray = (value: Schema.Json): value is ReadonlyArray<Schema.Json> => Array.isArray(value)
