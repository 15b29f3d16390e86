/**
 * What is typed to filter the graph by properties is asked as it is meant, and what is no condition says so.
 */
import { describe, expect, it } from "@effect/vitest"
import { parseConditions } from "./conditions.ts"

describe("conditions on properties", () => {
  it.each([
    ["license=MIT", { property: "license", op: "eq", value: "MIT" }],
    ["dev=true", { property: "dev", op: "eq", value: true }],
    ['version="1"', { property: "version", op: "eq", value: "1" }],
    ['name="left pad"', { property: "name", op: "eq", value: "left pad" }],
    ['name="left', { property: "name", op: "eq", value: "left" }],
    ["license!=null", { property: "license", op: "ne", value: null }],
    ["size>10", { property: "size", op: "gt", value: 10 }],
    ["size<=2.5", { property: "size", op: "lte", value: 2.5 }],
    ["name^@types/", { property: "name", op: "startsWith", value: "@types/" }],
    ["keywords~cli", { property: "keywords", op: "contains", value: "cli" }],
    ["/author/name~Ada", { property: "/author/name", op: "contains", value: "Ada" }],
    ["author?", { property: "author", op: "exists", value: true }],
    ["!author", { property: "author", op: "exists", value: false }],
    ["range=>=1.2", { property: "range", op: "eq", value: ">=1.2" }]
  ])("%s", (text, condition) => {
    expect(parseConditions(text)).toEqual({ conditions: [condition], faults: [] })
  })

  it("must all hold, and what is none is told and filters nothing", () => {
    const { conditions, faults } = parseConditions('  license=MIT   size  name="a b" =x  ')
    expect(conditions.map(({ property }) => property)).toEqual(["license", "name"])
    expect(faults).toEqual([expect.stringContaining('"size"'), expect.stringContaining('"=x"')])
    expect(parseConditions("")).toEqual({ conditions: [], faults: [] })
    expect(parseConditions("/a/b/c/d/e/f/g/h/i=1").faults).toHaveLength(1)
  })
})
