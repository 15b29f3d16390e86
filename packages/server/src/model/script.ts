/**
 * A script made ready: its rules parsed once, then asked for one answer at a time.
 *
 * The first rule whose condition holds answers. Where none holds, the script
 * says so plainly instead of inventing something. An answer is a plain value;
 * `scripted-model.ts` speaks it at its pace.
 */
import type { Script, ScriptFaultKind, ScriptRule } from "@tropism/domain/script"
import { Result, type Schema } from "effect"
import type { Prompt } from "effect/ai"
import type { ScriptScope } from "./script-scope.ts"
import { type Evaluate, parseCondition, parseTemplate, parseValue } from "./script-templates.ts"

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
  /** Answers a request, or says which rule cannot be followed and why. */
  readonly answer: (scope: ScriptScope, prompt: Prompt.Prompt) => Result.Result<ScriptAnswer, string>
}

/** Parses a script, or says which rule is wrong. */
export const compileScript = (script: Script): Result.Result<CompiledScript, string> => {
  const rules: Array<CompiledRule> = []
  for (const [index, rule] of script.rules.entries()) {
    const compiled = tryRule(index, () => compileRule(rule))
    if (Result.isFailure(compiled)) return Result.fail(compiled.failure)
    rules.push(compiled.success)
  }
  return Result.succeed({ values: script.values ?? {}, answer: (scope) => answerWith(rules, scope) })
}

/** Finds the place of a script's text that cannot be parsed; `pointer` is the script's own place. */
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

/** An answer of text alone, at once. */
export const textAnswer = (text: string): ScriptAnswer => ({
  text,
  calls: [],
  latencyMs: 0,
  tokensPerSecond: null,
  fault: null
})

/** The same place in the log always gives the same id, and no other place gives it. */
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
