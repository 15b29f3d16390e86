/**
 * Compiles a script: its rules are parsed once and then evaluated per request.
 *
 * The first rule with a true condition answers. If none matches, the answer states that instead of inventing one. An answer is a plain
 * value; `models.ts` streams it at its pace.
 */
import type { Spoken } from "@tropism/domain/context-window"
import { foldGrown } from "@tropism/domain/grown"
import { quoted } from "@tropism/domain/message"
import type { Script, ScriptFaultKind, ScriptRule } from "@tropism/domain/script"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Result, Schema, Option } from "effect"
import type { Prompt } from "effect/ai"
import { Liquid, Context, Tokenizer, TokenKind, toValueSync, Value } from "liquidjs"
import { modelLimits } from "../limits.ts"

/** Removes every tag of an engine that would read another template. */
export const standingAlone = (engine: Liquid): Liquid => {
  for (const tag of ["include", "render", "layout"])
    engine.registerTag(tag, {
      parse: () => {
        throw new Error(
          `{% ${tag} %} would read another template, and there is none to read: write its text here instead`
        )
      },
      render: () => ""
    })
  return engine
}

export interface ScriptAnswer {
  readonly text: string
  readonly calls: ReadonlyArray<{
    readonly id: string
    readonly tool: string
    readonly arguments: Schema.Json
  }>
  readonly latencyMs: number
  /** Null: all at once. */
  readonly tokensPerSecond: number | null
  readonly fault: { readonly kind: ScriptFaultKind; readonly message: string } | null
}

export interface CompiledScript {
  readonly values: ScriptScope["values"]
  /** Answers a request, or explains which rule failed. */
  readonly answer: (scope: ScriptScope, prompt: Prompt.Prompt) => Result.Result<ScriptAnswer, string>
}

/** Parses a script; fails with the faulty rule. */
export const compileScript = (script: Script): Result.Result<CompiledScript, string> => {
  const rules: Array<CompiledRule> = []
  for (const [index, rule] of script.rules.entries()) {
    const compiled = tryRule(index, () => compileRule(rule))
    if (Result.isFailure(compiled)) return Result.fail(compiled.failure)
    rules.push(compiled.success)
  }
  return Result.succeed({ values: script.values ?? {}, answer: (scope) => answerWith(rules, scope) })
}

/** Finds the first text of a script that does not parse; `pointer` is the script's own place. */
export const findScriptFault = (
  script: Script,
  pointer: string
): { readonly pointer: string; readonly message: string } | undefined => {
  for (const [index, rule] of script.rules.entries())
    for (const [place, parse] of textsOf(rule)) {
      const parsed = tryRule(index, parse)
      if (Result.isFailure(parsed))
        return { pointer: `${pointer}/rules/${index}/${place}`, message: parsed.failure }
    }
  return undefined
}

const textsOf = ({ calls, say, when }: ScriptRule): ReadonlyArray<readonly [string, () => unknown]> => [
  ["when", () => (when === undefined || when === null ? undefined : parseCondition(when))],
  ["say", () => parseTemplate(say ?? "")],
  ...(calls ?? []).map(
    (call, index) => [`calls/${index}/arguments`, () => parseValue(call.arguments)] as const
  )
]

interface CompiledRule {
  readonly holds: Evaluate<boolean>
  readonly answer: (scope: ScriptScope) => ScriptAnswer
}

const compileRule = (rule: ScriptRule): CompiledRule => {
  const say = parseTemplate(rule.say ?? "")
  const calls = (rule.calls ?? []).map((call) => ({ tool: call.tool, arguments: parseValue(call.arguments) }))
  return {
    holds: rule.when === undefined || rule.when === null ? () => true : parseCondition(rule.when),
    answer: (scope) => ({
      text: say(scope),
      calls: calls.map((call, index) => ({
        id: callId(scope, index),
        tool: call.tool,
        arguments: call.arguments(scope)
      })),
      latencyMs: rule.latencyMs ?? 0,
      tokensPerSecond: rule.tokensPerSecond ?? null,
      fault: rule.fault
        ? {
            kind: rule.fault.kind,
            message: rule.fault.message ?? `The script asks for the fault "${rule.fault.kind}"`
          }
        : null
    })
  }
}

/** A text answer without pacing. */
export const textAnswer = (text: string): ScriptAnswer => ({
  text,
  calls: [],
  latencyMs: 0,
  tokensPerSecond: null,
  fault: null
})

/** A call id that is unique per position in the log and the same on every evaluation. */
export const callId = (scope: ScriptScope, index: number): string =>
  `call_${scope.turn}_${scope.step}_${index}`

const answerWith = (
  rules: ReadonlyArray<CompiledRule>,
  scope: ScriptScope
): Result.Result<ScriptAnswer, string> => {
  for (const [index, rule] of rules.entries()) {
    const holds = tryRule(index, () => rule.holds(scope))
    if (Result.isFailure(holds)) return Result.fail(holds.failure)
    if (holds.success) return tryRule(index, () => rule.answer(scope))
  }
  return Result.succeed(
    textAnswer(`I am a script, and I have no rule for this message (step ${scope.step}).`)
  )
}

const tryRule = <A>(index: number, run: () => A): Result.Result<A, string> =>
  Result.try({
    try: run,
    catch: (error) =>
      `rule ${index + 1} of the script: ${error instanceof Error ? error.message : String(error)}`
  })

// The Liquid dialect of scripts: expressions, templates, and values with templates inside.
//
// Anyone who may write an agent can supply a script, so its Liquid reads no files, sees own properties only, and is bounded in length, time
// and memory. Everything is parsed at compile time, so a mistake is found before the first run. These functions throw as Liquid does; the
// compiler above catches.

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

/** A parsed text that is evaluated against a scope. */
type Evaluate<A> = (scope: object) => A

const isJson = Schema.is(Schema.Json)

/** Parses one expression, which evaluates to JSON; a missing value is null. */
export const parseExpression = (text: string): Evaluate<Schema.Json> => {
  if (text.length > modelLimits.scriptParseMaxChars)
    throw new Error(`an expression has at most ${modelLimits.scriptParseMaxChars} characters`)
  const tokenizer = new Tokenizer(text, engine.options.operators, undefined, undefined, true)
  const token = tokenizer.readFilteredValue()
  // Liquid silently stops at the first thing that it does not understand.
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

/** Whether an expression's operators use all its values; Liquid otherwise takes the first value. */
const isWhole = (value: Value): boolean => {
  let values = 0
  for (const token of value.initial.postfix) {
    if (token.kind !== TokenKind.Operator) values += 1
    else if (token.getText() !== "not") values -= 1
    if (values < 1) return false
  }
  return values === 1
}

/** Parses a condition; a value other than true, false or missing is the author's mistake. */
const parseCondition = (text: string): Evaluate<boolean> => {
  const expression = parseExpression(text)
  return (scope) => {
    const value = expression(scope)
    if (typeof value === "boolean") return value
    if (value === null) return false
    throw new Error(`"${text}" is neither true nor false but ${beginningOf(JSON.stringify(value), 100)}`)
  }
}

/** Parses a text with `{{ }}` and `{% %}` inside. */
const parseTemplate = (text: string): Evaluate<string> => {
  const templates = engine.parse(text)
  return (scope) => String(engine.renderSync(templates, scope))
}

const wholeExpression = /^\s*\{\{-?((?:(?!\}\}|\{\{)[\s\S])*?)-?\}\}\s*$/

/** Parses every text inside a JSON value; a text that is exactly one `{{ expression }}` keeps the value's type. */
const parseValue = (value: Schema.Json): Evaluate<Schema.Json> => {
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

// The scope of a script's rules.
//
// **Invariant**: the scope depends only on the prompt and on counts folded with it, so the same log gives the same answer: a replay, or a
// server that takes over, continues the script. A prompt that extends an earlier one is read from there on.

export interface ScriptScope {
  /** Assistant answers since the last user message; 0 at the first. */
  readonly step: number
  /** The text of the last user message. */
  readonly message: string
  /** The first fenced `json` block of that message, decoded; null without one. */
  readonly input: Schema.Json
  /** Tool results since then, in order. */
  readonly results: ReadonlyArray<{
    readonly tool: string
    readonly result: Schema.Json
    readonly isError: boolean
  }>
  readonly system: string
  /** The last recalled memory from the agent's other contexts; empty without any. */
  readonly recalled: string
  /** Names of the callable tools. */
  readonly tools: ReadonlyArray<string>
  /** The script's own constants. */
  readonly values: Readonly<Record<string, Schema.Json>>
  /** User messages so far: with `step`, it identifies an answer within its context. */
  readonly turn: number
}

/** Computes the scope of a prompt. */
export const scopeOf = (
  prompt: Prompt.Prompt,
  tools: ReadonlyArray<string>,
  values: ScriptScope["values"],
  spoken: Spoken | undefined
): ScriptScope => {
  const said = saidIn(prompt.content)
  const { answers: step, turns: turn } = spoken ?? { answers: said.step, turns: said.turn }
  return { ...said, step, turn, system: said.system ?? "", tools, values }
}

/** The part of the scope that depends on the prompt. */
interface Said extends Omit<ScriptScope, "tools" | "values" | "step" | "system"> {
  step: number
  readonly results: Array<ScriptScope["results"][number]>
  /** Null before the first message. */
  system: string | null
}

const saidIn = foldGrown<Prompt.Message, Said>(
  () => ({ step: 0, message: "", input: null, results: [], system: null, recalled: "", turn: 0 }),
  (said, message) => {
    switch (message.role) {
      case "system":
        said.system = said.system === null ? message.content : `${said.system}\n\n${message.content}`
        return said
      case "user": {
        const text = message.content.map((part) => (part.type === "text" ? part.text : "")).join("")
        // Quoted content is not the user's question.
        if (isQuoted(message)) return { ...said, recalled: text }
        return { ...said, turn: said.turn + 1, step: 0, message: text, input: inputOf(text), results: [] }
      }
      case "assistant":
        said.step += 1
        return said
      case "tool":
        for (const part of message.content) if (part.type === "tool-result") said.results.push(toResult(part))
        return said
    }
  }
)

export const isQuoted = ({ options }: Prompt.UserMessage): boolean =>
  Object.keys(quoted).some((key) => Object.hasOwn(options, key))

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

const inputOf = (message: string): Schema.Json => {
  const block = /^```json[^\S\n]*\n([\s\S]*?)\n[^\S\n]*```/m.exec(message)?.[1]
  return block === undefined ? null : Option.getOrNull(decodeJson(block))
}

export const toResult = (part: Prompt.ToolResultPart): ScriptScope["results"][number] => ({
  tool: part.name,
  result: decodeResult(part.result),
  isError: part.isFailure
})

/** A tool may return JSON as text; a script needs the value. */
const decodeResult = (result: unknown): Schema.Json => {
  if (typeof result === "string") return Option.getOrElse(decodeJson(result), () => result)
  return isJson(result) ? result : null
}
