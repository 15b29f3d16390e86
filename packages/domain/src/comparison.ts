/**
 * One question put to several variants of a context, with what came of each side by side.
 *
 * A variant is a fork of the context with its own system prompt, model or
 * question, so it knows what the context knew and changes nothing in it; what
 * its tools do, they do for real (S004-F08).
 */
import { Schema } from "effect"
import { builtInTools } from "./built-in-tools.ts"
import { configFields } from "./config-event.ts"
import { ContextName } from "./event-base.ts"
import { RunId, Timestamp } from "./ids.ts"
import { RunStatus, Usage } from "./run.ts"
import { StepCall } from "./model-call.ts"
import { allows } from "./tool-pattern.ts"

export const comparisonBounds = { minVariants: 2, maxVariants: 10, shownCalls: 50 } as const

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

const Text = Schema.String.check(Schema.isBetweenLength(1, 100_000))

/** It stands in the name of its fork. */
export const VariantLabel = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9_-]{0,19}$/, {
    message: "A label has 1 to 20 letters, digits, dashes or underscores and begins with a letter or digit"
  })
)

const { maxOutputTokens, name, provider, temperature } = configFields.SetLlmConfigEvent

/** In what a variant differs from the context as it is; all of it may be absent. */
export const VariantInput = Schema.Struct({
  label: VariantLabel,
  systemPrompt: opt(Text),
  /** What this variant is asked instead. */
  content: opt(Text),
  model: opt(Schema.Struct({ provider, name, temperature, maxOutputTokens }))
}).annotate({ identifier: "VariantInput" })
export type VariantInput = typeof VariantInput.Type

export const ComparisonInput = Schema.Struct({
  content: Text,
  variants: Schema.Array(VariantInput).check(
    Schema.isMinLength(comparisonBounds.minVariants),
    Schema.isMaxLength(comparisonBounds.maxVariants)
  ),
  /** The number of the last event that the variants know; the last one where absent. */
  at: opt(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))),
  /** Said where the agent has tools that act: each variant acts for itself. */
  allowWrites: opt(Schema.Boolean)
}).annotate({ identifier: "ComparisonInput" })
export type ComparisonInput = typeof ComparisonInput.Type

/** The event up to which the variants know the context, and a few digits that nobody guesses. */
export const ComparisonId = Schema.String.check(
  Schema.isPattern(/^[0-9]{1,9}-[0-9a-f]{8}$/, { message: "Expected the id of a comparison" })
)
export type ComparisonId = typeof ComparisonId.Type

/** A variant and what has come of it so far. */
export const ComparedVariant = Schema.Struct({
  label: Schema.String,
  /** The fork in which it was asked; one can go on there. */
  context: ContextName,
  runId: RunId,
  status: RunStatus,
  /** What it has said last; null before it has said anything. */
  answer: Schema.NullOr(Schema.String),
  errorMessage: Schema.NullOr(Schema.String),
  usage: Usage,
  costUsd: Schema.Finite,
  /** From its beginning to its end; null before. */
  durationMs: Schema.NullOr(Schema.Int),
  /** provider:name of who answered. */
  model: Schema.NullOr(Schema.String),
  stepCount: Schema.Int,
  /** Its tool calls in their order, the first fifty. */
  toolCalls: Schema.Array(Schema.Struct({ tool: Schema.String, status: StepCall.fields.status }))
}).annotate({ identifier: "ComparedVariant" })
export type ComparedVariant = typeof ComparedVariant.Type

export const Comparison = Schema.Struct({
  id: ComparisonId,
  /** The context that was compared from. */
  context: ContextName,
  content: Schema.String,
  variants: Schema.Array(ComparedVariant),
  createdAt: Timestamp
}).annotate({ identifier: "Comparison" })
export type Comparison = typeof Comparison.Type

const readingTools: ReadonlySet<string> = new Set([
  "graph.search_objects",
  "graph.get_object",
  "graph.neighbors",
  "run.list_agents",
  "run.exit_loop",
  "tasks.list_tasks"
])

const actingTools = Object.entries(builtInTools).flatMap(([server, tools]) =>
  tools.map((tool) => `${server}.${tool}`).filter((tool) => !readingTools.has(tool))
)

/** The names and globs of a list that stand for a tool that may act; nobody here knows what a foreign tool does, so each of them may. */
export const findActingTools = (patterns: ReadonlyArray<string>): ReadonlyArray<string> =>
  patterns.filter(
    (pattern) =>
      !readingTools.has(pattern) &&
      (isForeign(pattern) || actingTools.some((tool) => allows([pattern], tool)))
  )

const isForeign = (pattern: string): boolean => {
  const [server = ""] = pattern.split(".")
  return server.includes("*") || !Object.hasOwn(builtInTools, server)
}
