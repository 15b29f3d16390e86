/**
 * How much of a context a model is shown.
 *
 * `whole` shows everything. `truncating` keeps the newest messages, and
 * `summarizing` has a model sum up what it lets go. A tool call and its results
 * are one unit, and the system prompt always stays (S004-F09, F10).
 */
import { Schema } from "effect"

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** Which of the built-in reducers folds a context, and how; sizes in tokens are estimates. */
export const ReducerConfig = Schema.Union([
  Schema.Struct({ type: Schema.tag("whole") }),
  Schema.Struct({
    type: Schema.tag("truncating"),
    /** At most so many messages, and at most so many tokens; null is unbounded. */
    maxMessages: Schema.NullOr(between(1, 100_000)),
    maxTokens: Schema.NullOr(between(500, 10_000_000))
  }),
  Schema.Struct({
    type: Schema.tag("summarizing"),
    /** Above so many tokens the oldest messages are summed up, down to `keepTokens` of the newest. */
    maxTokens: between(500, 10_000_000),
    keepTokens: between(100, 10_000_000),
    /** What the model is told when it sums up; a sentence of ours where absent. */
    instructions: Schema.optionalKey(Schema.String.check(Schema.isBetweenLength(1, 20_000)))
  })
])
export type ReducerConfig = typeof ReducerConfig.Type
