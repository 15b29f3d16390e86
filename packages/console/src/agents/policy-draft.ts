/**
 * When an agent asks, how its suggestions wait, and what holds it back, as a form holds it.
 *
 * Pure.
 */
import type { AgentInput } from "@tropism/domain/agent"
import { ChangeKind, hybridDefaults } from "@tropism/domain/capability"
import { given, listGiven, numberGiven, numberText, type Sent, within } from "./draft-texts.ts"

export interface PolicyDraft {
  readonly threshold: string
  /** Kinds of changes that are suggested however sure it is. */
  readonly alwaysSuggest: ReadonlyArray<string>
  /** Whether the definition says so itself; else it is what is so by itself. */
  readonly saysAlways: boolean
  /** After how many reviews, and with what share accepted, it need not ask any more; null is never. */
  readonly promotion: { readonly minReviews: string; readonly minRate: string } | null
  readonly maxPending: string
  readonly expiresAfterMs: string
  readonly assignee: string
  readonly maxSteps: string
  readonly defaultTimeoutMs: string
  /** One a line. */
  readonly repeatableTools: string
  readonly runTokens: string
  readonly runDollars: string
  readonly dayTokens: string
  readonly dayDollars: string
  readonly maxPendingRuns: string
  readonly disableAfterFailures: string
  /** How often a failed reaction is tried, the first time included; null is once. */
  readonly retry: { readonly maxAttempts: string; readonly backoffMs: string } | null
  /** Which reducer a long log is shown by; empty is the default. */
  readonly reducer: string
  readonly windowMessages: string
  readonly windowTokens: string
  readonly keepTokens: string
  readonly summaryInstructions: string
  /** Empty is what is so by itself. */
  readonly catchUp: string
  readonly overlapPolicy: string
}

export const policyDraftOf = (input: Partial<AgentInput>): PolicyDraft => {
  const { budget, hybridPolicy, reducer, retryPolicy, reviewPolicy } = input
  const promotion = hybridPolicy?.promotion
  return {
    threshold: numberText(hybridPolicy?.confidenceThreshold),
    alwaysSuggest: hybridPolicy?.alwaysSuggest ?? hybridDefaults.alwaysSuggest,
    saysAlways: Boolean(hybridPolicy?.alwaysSuggest),
    promotion: promotion
      ? { minReviews: numberText(promotion.minReviews), minRate: numberText(promotion.minRate) }
      : null,
    maxPending: numberText(reviewPolicy?.maxPending),
    expiresAfterMs: numberText(reviewPolicy?.expiresAfterMs),
    assignee: reviewPolicy?.assignee ?? "",
    maxSteps: numberText(input.maxSteps),
    defaultTimeoutMs: numberText(input.defaultTimeoutMs),
    repeatableTools: (input.repeatableTools ?? []).join("\n"),
    runTokens: numberText(budget?.perRun?.maxTokens),
    runDollars: numberText(budget?.perRun?.maxCostUsd),
    dayTokens: numberText(budget?.perDay?.maxTokens),
    dayDollars: numberText(budget?.perDay?.maxCostUsd),
    maxPendingRuns: numberText(input.maxPendingRuns),
    disableAfterFailures: numberText(input.disableAfterFailures),
    retry: retryPolicy
      ? { maxAttempts: numberText(retryPolicy.maxAttempts), backoffMs: numberText(retryPolicy.backoffMs) }
      : null,
    reducer: reducer?.type ?? "",
    windowMessages: reducer?.type === "truncating" ? numberText(reducer.maxMessages) : "",
    windowTokens: reducer && reducer.type !== "whole" ? numberText(reducer.maxTokens) : "",
    keepTokens: reducer?.type === "summarizing" ? numberText(reducer.keepTokens) : "",
    summaryInstructions: (reducer?.type === "summarizing" && reducer.instructions) || "",
    catchUp: input.catchUp ?? "",
    overlapPolicy: input.overlapPolicy ?? ""
  }
}

export const policiesOf = (draft: PolicyDraft): Sent => ({
  ...within("reviewPolicy", {
    ...numberGiven("maxPending", draft.maxPending),
    ...numberGiven("expiresAfterMs", draft.expiresAfterMs),
    ...given("assignee", draft.assignee.trim())
  }),
  ...numberGiven("maxSteps", draft.maxSteps),
  ...numberGiven("defaultTimeoutMs", draft.defaultTimeoutMs),
  ...listGiven("repeatableTools", draft.repeatableTools),
  ...within("budget", {
    ...within("perRun", limitGiven(draft.runTokens, draft.runDollars)),
    ...within("perDay", limitGiven(draft.dayTokens, draft.dayDollars))
  }),
  ...numberGiven("maxPendingRuns", draft.maxPendingRuns),
  ...numberGiven("disableAfterFailures", draft.disableAfterFailures),
  ...reducerOf(draft)
})

const reducerOf = (draft: PolicyDraft): Sent => {
  switch (draft.reducer) {
    case "":
      return {}
    case "truncating":
      return {
        reducer: {
          type: "truncating",
          maxMessages: null,
          maxTokens: null,
          ...numberGiven("maxMessages", draft.windowMessages),
          ...numberGiven("maxTokens", draft.windowTokens)
        }
      }
    case "summarizing":
      return {
        reducer: {
          type: "summarizing",
          ...numberGiven("maxTokens", draft.windowTokens),
          ...numberGiven("keepTokens", draft.keepTokens),
          ...given("instructions", draft.summaryInstructions)
        }
      }
    default:
      return { reducer: { type: draft.reducer } }
  }
}

export const hybridPolicyOf = (draft: PolicyDraft): Sent => ({
  ...numberGiven("confidenceThreshold", draft.threshold),
  ...((draft.saysAlways || !isByItself(draft.alwaysSuggest)) && { alwaysSuggest: draft.alwaysSuggest }),
  ...(draft.promotion !== null && {
    promotion: {
      ...numberGiven("minReviews", draft.promotion.minReviews),
      ...numberGiven("minRate", draft.promotion.minRate)
    }
  })
})

export const retryPolicyOf = ({ retry }: PolicyDraft): Sent =>
  retry === null
    ? {}
    : {
        retryPolicy: {
          ...numberGiven("maxAttempts", retry.maxAttempts),
          ...numberGiven("backoffMs", retry.backoffMs)
        }
      }

/** The kinds with one of them put in or taken out, in one order. */
export const toggled = (
  kinds: ReadonlyArray<string>,
  kind: ChangeKind,
  isIn: boolean
): ReadonlyArray<string> =>
  ChangeKind.literals.filter((each) => (each === kind ? isIn : kinds.includes(each)))

const isByItself = (kinds: ReadonlyArray<string>): boolean =>
  kinds.length === hybridDefaults.alwaysSuggest.length &&
  hybridDefaults.alwaysSuggest.every((kind) => kinds.includes(kind))

const limitGiven = (tokens: string, dollars: string): Sent => ({
  ...numberGiven("maxTokens", tokens),
  ...numberGiven("maxCostUsd", dollars)
})
