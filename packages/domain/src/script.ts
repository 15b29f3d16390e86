/**
 * A script: the rules by which the `scripted` model answers.
 *
 * Rules are data. The first rule whose `when` is true answers with a text, with
 * tool calls, or with a fault that a test or a demo wants to see. `when`, `say`
 * and the texts in `arguments` are Liquid over `step`, `turn`, `message`, `input`,
 * `results`, `system`, `recalled`, `tools` and the script's own `values`. This file
 * says what a script may look like; the server's model stage parses and runs it.
 */
import { Schema } from "effect"

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

/** How a request goes wrong: refused, refused for haste, broken off in the middle, or never answered. */
export const ScriptFaultKind = Schema.Literals(["error", "rateLimited", "cut", "hang"])
export type ScriptFaultKind = typeof ScriptFaultKind.Type

export const ScriptRule = Schema.Struct({
  /** A Liquid expression that is true or false; a rule without one always answers. */
  when: opt(Schema.String.check(Schema.isBetweenLength(1, 2_000))),
  /** The text of the answer, a Liquid template. */
  say: opt(Schema.String.check(Schema.isMaxLength(20_000))),
  /** The tools to call; a text that is exactly one `{{ expression }}` keeps the value's type. */
  calls: opt(
    Schema.Array(
      Schema.Struct({
        tool: Schema.String.check(Schema.isBetweenLength(1, 200)),
        arguments: Schema.Record(Schema.String, Schema.Json)
      })
    ).check(Schema.isMaxLength(20))
  ),
  /** Time before the first word. */
  latencyMs: opt(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 600_000 }))),
  /** The pace of the words; without it the text comes at once. */
  tokensPerSecond: opt(Schema.Finite.check(Schema.isBetween({ minimum: 0.1, maximum: 100_000 }))),
  fault: opt(
    Schema.Struct({
      kind: ScriptFaultKind,
      message: opt(Schema.String.check(Schema.isMaxLength(1_000)))
    })
  )
})
export type ScriptRule = typeof ScriptRule.Type

export const Script = Schema.Struct({
  /** Constants that the rules name as `values.…`, such as a list that `contains` is asked of. */
  values: opt(Schema.Record(Schema.String, Schema.Json)),
  rules: Schema.Array(ScriptRule).check(Schema.isBetweenLength(1, 200))
}).annotate({ identifier: "Script" })
export type Script = typeof Script.Type
