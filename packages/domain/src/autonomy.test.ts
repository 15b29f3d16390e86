/**
 * When reviews are enough, and what trust stands for.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { acceptanceRate, earnsTrust, type Reviews, reviewsIn } from "./autonomy.ts"
import {
  type ChangeKind,
  ChangeKind as ChangeKinds,
  choosesToSuggest,
  ExecutionMode,
  type HybridPolicy,
  type Intent,
  narrow,
  PromotionPolicy,
  waitsForTrust
} from "./capability.ts"

const reviews = (accepted: number, edited: number, rejected: number): Reviews => ({
  accepted,
  edited,
  rejected
})

const anyCount = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 20_000 })))

describe("acceptanceRate", () => {
  it("is the share of the reviews that took the suggestion as it was, and none of none", () => {
    expect(acceptanceRate(reviews(0, 0, 0))).toBeNull()
    expect(acceptanceRate(reviews(3, 1, 0))).toBe(0.75)
    expect(acceptanceRate(reviews(3, 0, 1))).toBe(0.75)
    expect(acceptanceRate(reviews(0, 0, 4))).toBe(0)
  })
})

describe("earnsTrust", () => {
  it.each([
    [null, reviews(10_000, 0, 0), false],
    [{ promotion: null }, reviews(10_000, 0, 0), false],
    [{}, reviews(10_000, 0, 0), false],
    [{ promotion: { minReviews: 1, minRate: 0 } }, reviews(0, 0, 0), false],
    [{ promotion: { minReviews: 1, minRate: 0 } }, reviews(0, 0, 1), true],
    [{ promotion: { minReviews: 10, minRate: 0.9 } }, reviews(9, 0, 0), false],
    [{ promotion: { minReviews: 10, minRate: 0.9 } }, reviews(9, 1, 0), true],
    [{ promotion: { minReviews: 10, minRate: 0.9 } }, reviews(9, 0, 1), true],
    [{ promotion: { minReviews: 10, minRate: 0.9 } }, reviews(8, 1, 1), false],
    [{ promotion: { minReviews: 10, minRate: 1 } }, reviews(99, 1, 0), false],
    [{ promotion: { minReviews: 10, minRate: 1 } }, reviews(10, 0, 0), true]
  ] as ReadonlyArray<readonly [HybridPolicy | null, Reviews, boolean]>)(
    "%j with %j: %s",
    (policy, of, is) => {
      expect(earnsTrust(policy, of)).toBe(is)
    }
  )

  it("compares a rate that is a fraction with the same fraction exactly", () => {
    for (let all = 1; all <= 300; all++)
      for (let accepted = 0; accepted <= all; accepted++) {
        const policy = { promotion: { minReviews: 1, minRate: accepted / all } }
        expect(earnsTrust(policy, reviews(accepted, 0, all - accepted))).toBe(true)
      }
  })

  it.prop(
    "is never lost by one more review that takes the suggestion as it was",
    [Arbitrary.schema(PromotionPolicy), anyCount, anyCount, anyCount],
    ([promotion, accepted, edited, rejected]) => {
      const before = reviews(accepted, edited, rejected)
      const after = reviews(accepted + 1, edited, rejected)
      expect(reviewsIn(after)).toBe(reviewsIn(before) + 1)
      expect(!earnsTrust({ promotion }, before) || earnsTrust({ promotion }, after)).toBe(true)
    }
  )
})

const promotion = { minReviews: 1, minRate: 0 }
const intents: ReadonlyArray<Intent> = [null, 0, 0.5, 0.79, 0.8, 1].flatMap((confidence) =>
  [false, true].map((suggest) => ({ confidence, suggest }))
)
const alwaysLists: ReadonlyArray<ReadonlyArray<ChangeKind> | null> = [
  null,
  [],
  ["create"],
  ["update", "delete"]
]

describe("waitsForTrust", () => {
  const rows = ExecutionMode.literals.flatMap((mode) =>
    ChangeKinds.literals.flatMap((kind) =>
      intents.flatMap((intent) =>
        alwaysLists.flatMap((alwaysSuggest) =>
          [promotion, null].map((earning) => ({
            mode,
            kind,
            intent,
            policy: { alwaysSuggest, promotion: earning }
          }))
        )
      )
    )
  )

  it("only where a hybrid agent with such a policy is not sure enough, whatever else it says", () => {
    for (const row of rows) {
      const { intent, kind, mode, policy } = row
      const isAlways = (policy.alwaysSuggest ?? ["delete"]).includes(kind)
      const isUnsure = intent.confidence === null || intent.confidence < 0.8
      const waits = mode === "hybrid" && policy.promotion !== null && isUnsure && !isAlways && !intent.suggest
      expect({ ...row, waits: waitsForTrust(mode, policy, kind, intent) }).toEqual({ ...row, waits })
    }
  })

  it("only where the agent would have to ask", () => {
    const waiting = rows.filter(({ intent, kind, mode, policy }) => waitsForTrust(mode, policy, kind, intent))
    expect(waiting.length).toBeGreaterThan(0)
    for (const { intent, kind, mode, policy } of waiting)
      expect(choosesToSuggest(mode, policy, kind, intent)).toBe(true)
  })

  it("of an agent that acts for another only where both may earn it", () => {
    const powers = (executionMode: typeof ExecutionMode.Type, earning: typeof promotion | null) => ({
      executionMode,
      capabilities: null,
      hybridPolicy: { promotion: earning }
    })
    const own = ExecutionMode.literals.flatMap((mode) =>
      [promotion, null].map((earning) => ({ mode, earning }))
    )
    const pairs = own.flatMap((one) => own.map((other) => [one, other] as const))
    for (const pair of pairs) {
      const [below, above] = pair
      const both = narrow(powers(below.mode, below.earning), powers(above.mode, above.earning))
      const unsure = { confidence: null, suggest: false }
      const hybrids = pair.filter(({ mode }) => mode === "hybrid")
      expect([pair, waitsForTrust(both.executionMode, both.hybridPolicy, "create", unsure)]).toEqual([
        pair,
        pair.every(({ mode }) => mode !== "suggest") &&
          hybrids.length > 0 &&
          hybrids.every(({ earning }) => earning !== null)
      ])
    }
  })
})
