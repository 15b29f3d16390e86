/**
 * What somebody is told of a value that does not fit.
 */
import { describe, expect, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { schemaFaults } from "./schema-faults.ts"

const Circle = Schema.Struct({ type: Schema.tag("circle"), radius: Schema.Finite }).annotate({
  identifier: "Circle"
})
const Line = Schema.Struct({ type: Schema.Literal("line"), length: Schema.Finite }).annotate({
  identifier: "Line"
})
const Shape = Schema.Union([Circle, Line])

const faultsOf = (schema: Schema.Codec<unknown, unknown>, value: unknown) => {
  const decoded = Schema.decodeUnknownResult(schema, { onExcessProperty: "error", errors: "all" })(value)
  return Result.isFailure(decoded) ? schemaFaults(decoded.failure.issue) : []
}

describe("a value that may be of several kinds", () => {
  const message = expect.stringMatching(/"circle".*"line"/)

  it.each([
    ["another kind", { type: "square" }],
    ["no kind", { radius: 1 }],
    ["a kind that is no text", { type: 7 }]
  ])("is told at the field that names its kind: %s", (_, value) => {
    expect(faultsOf(Shape, value)).toEqual([{ pointer: "/type", message }])
  })

  it("is told deep in a document, or where nothing may stand too", () => {
    const Picture = Schema.Struct({ shapes: Schema.Array(Schema.NullOr(Shape)), frame: Schema.NullOr(Shape) })
    const value = { shapes: [null, { type: "circle", radius: 1 }, { type: "oval" }], frame: {} }
    expect(faultsOf(Picture, value)).toEqual([
      { pointer: "/shapes/2/type", message },
      { pointer: "/frame/type", message }
    ])
  })

  it("is told what is wrong with it otherwise where its kind is known", () => {
    expect(faultsOf(Shape, { type: "line", length: "x" })).toMatchObject([{ pointer: "/length" }])
  })

  it("is told in words of types where no field parts the kinds", () => {
    const either = Schema.Union([Schema.String, Circle])
    const message = expect.stringContaining('"type": "circle"')
    expect(faultsOf(either, 7)).toEqual([{ pointer: "", message }])
  })
})
