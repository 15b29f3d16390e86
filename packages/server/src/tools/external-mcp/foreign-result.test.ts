/**
 * What is told of an answer by whose schema nobody can judge.
 */
import { describe, expect, it } from "@effect/vitest"
import { branching, doubling, nested } from "../../../testing/doubling-schemas.ts"
import { readResult } from "./results.ts"

const read = (outputSchema: Record<string, unknown>, structuredContent: Record<string, unknown>) =>
  readResult({ content: [], structuredContent }, (text) => text, { outputSchema })

describe("A structure of a foreign tool", () => {
  it("is told as it is where its schema stands for too much, or takes too long with it", () => {
    expect(read(doubling(30), { a: 1 })).toEqual({ a: 1 })
    expect(read(branching, nested(40))).toEqual(nested(40))
    expect(read({ ...doubling(5), required: ["b"] }, { a: 1 })).toContain("/b: ")
  })
})
