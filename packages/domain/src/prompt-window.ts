/**
 * How much of a context's log a model is shown: the reducers that an agent's definition or an event can choose.
 *
 * Code is in no event: each is one of these with its numbers. `whole` shows
 * everything. `truncating` keeps the newest messages, and `summarizing` has a
 * model sum up what it lets go. A tool call and its results are one unit, and
 * the system prompt always stays (S004-F05, F09, F10). `context-window` cuts.
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
export type SummarizingReducer = Extract<ReducerConfig, { readonly type: "summarizing" }>

/** The reducer of a context that no event chose one for: a prompt beyond most models' windows would fail outright. */
export const defaultReducer = {
  type: "truncating",
  maxMessages: null,
  maxTokens: 100_000
} as const satisfies ReducerConfig

/** The reducer of an agent whose definition names none, set in a context once its window fills (S003-R62). */
export const agentReducer = {
  type: "summarizing",
  maxTokens: 100_000,
  keepTokens: 50_000
} as const satisfies ReducerConfig

export const windowBounds = {
  /** A cut goes so far below its bound that the next is not due at once: what providers keep of a prompt's beginning stays good until then. */
  cutTo: 0.75,
  /** Of its bound, what a window may hold of the words that its first turn was asked with. */
  askedShare: 0.25,
  /** Of its bound, what a summary may take. */
  summaryShare: 0.25,
  /** Of its bound, what must be let go for a summary to be worth its request. */
  summedShare: 0.125,
  /** Of its bound, what a summarizing reducer may keep. */
  keptShare: 0.5,
  /** Of the bound of an agent's default reducer, what a window holds before it is set: most contexts never hold as much. */
  filledShare: 0.25
} as const

/** Why a reducer would never come to an end, and where. */
export const findReducerFault = (
  reducer: ReducerConfig
): { readonly field: string; readonly message: string } | undefined => {
  if (reducer.type !== "summarizing") return undefined
  const most = Math.floor(reducer.maxTokens * windowBounds.keptShare)
  return reducer.keepTokens <= most
    ? undefined
    : {
        field: "keepTokens",
        message: `At most half of maxTokens can be kept, here ${most}: else every message would need a summary of its own`
      }
}
