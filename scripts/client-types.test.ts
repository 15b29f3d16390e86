/**
 * What the plain client is printed from is what it was printed from last.
 */
import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { contractFile, contractTypes } from "./client-types.ts"
import { typeOf } from "./schema-types.ts"

describe("the contract as the plain client has it", () => {
  it("is fresh: `npm run client-types` prints it", () => {
    expect(readFileSync(contractFile, "utf8")).toBe(contractTypes())
  })

  it("tells a schema as a type, and refuses one that it does not know", () => {
    const required = ["id"]
    const properties = { id: { type: "string" }, at: { anyOf: [{ type: "integer" }, { type: "null" }] } }
    expect(typeOf({ type: "object", properties, required })).toBe(
      "{\n  readonly id: string\n  readonly at?: number | null | undefined\n}"
    )
    expect(typeOf({ type: "array", items: { $ref: "#/components/schemas/RunEncoded" } })).toBe(
      "ReadonlyArray<Run>"
    )
    expect(typeOf({ enum: ["a", 1] })).toBe('"a" | 1')
    expect(() => typeOf({ type: "tuple" })).toThrow("a schema of type tuple has no type yet")
  })
})
