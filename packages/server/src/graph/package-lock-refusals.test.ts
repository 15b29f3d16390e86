/**
 * Files that are no lockfile that can be read, and the places that are wrong.
 */
import { describe, expect, it } from "@effect/vitest"
import type { Schema } from "effect"
import { fileOf, read, refusal } from "../../testing/lockfiles.ts"
import { graphLimits } from "../limits.ts"

describe("what is refused", () => {
  it.each<[string, string, RegExp]>([
    [`{"name": "shop",\n<<<<<<< HEAD\n`, "", /\b2\b.*\b1\b.*<<<<<<< HEAD/],
    [`{"name": "shop"`, "", /\b1\b.*\b16\b/],
    ["", "", /\b1\b.*\b1\b/],
    ["[]", "", /JSON/],
    ["null", "", /JSON/],
    [`{"name":"shop","version":"1.0.0"}`, "/lockfileVersion", /package-lock\.json.*\b2\b.*\b3\b/],
    [`{"lockfileVersion":4,"packages":{}}`, "/lockfileVersion", /package-lock\.json.*\b2\b.*\b3\b/],
    [`{"lockfileVersion":3}`, "/packages", /package-lock\.json/],
    [`{"lockfileVersion":3,"packages":[]}`, "/packages", /package-lock\.json/],
    [`{"lockfileVersion":3,"name":"a\\u0000","packages":{}}`, "/name", /U\+0000/],
    [`{"lockfileVersion":3,"name":"a\\u0000","packages":{"":{"name":"shop"}}}`, "/name", /U\+0000/],
    [`{"lockfileVersion":3,"name":"shop","packages":{"":{"name":"a\\u0000"}}}`, "/packages//name", /U\+0000/]
  ])("%j", (text, pointer, values) => {
    expect(refusal(text).faults).toEqual([{ pointer, message: expect.stringMatching(values) }])
  })

  it("lockfileVersion 1, with the command that makes a newer one", () => {
    const { message } = refusal(
      `{"name":"shop","lockfileVersion":1,"dependencies":{"a":{"version":"1.0.0"}}}`
    )
    expect(message).toContain("npm install --package-lock-only --lockfile-version 3")
  })

  const faulty: ReadonlyArray<readonly [entry: Schema.Json, pointer: string, values?: RegExp]> = [
    ["1.0.0", ""],
    [null, ""],
    [["x"], ""],
    [{ version: 1 }, "/version"],
    [{ name: {} }, "/name"],
    [{ dependencies: ["b"] }, "/dependencies"],
    [{ dependencies: { "b/c": 1 } }, "/dependencies/b~1c"],
    [{ peerDependencies: { b: "\u0000" } }, "/peerDependencies/b", /U\+0000/],
    [{ version: "\ud800" }, "/version"],
    [JSON.parse(`{"engines":{"__proto__":"1"}}`), "/engines/__proto__", /"__proto__"/]
  ]

  it.each(faulty.map(([entry, pointer, values = /./]) => [pointer, entry, values] as const))(
    "a package, at %j: %j",
    (pointer, entry, values) => {
      expect(refusal(fileOf({ "": {}, "node_modules/a": entry })).faults).toEqual([
        { pointer: `/packages/node_modules~1a${pointer}`, message: expect.stringMatching(values) }
      ])
    }
  )

  it("a package whose properties would be too large for one object", () => {
    const [fault] = refusal(fileOf({ "": {}, "node_modules/a": { deprecated: "x".repeat(262_144) } })).faults
    expect(fault?.pointer).toBe("/packages/node_modules~1a")
    expect(fault?.message).toContain("262144")
  })

  it("a path whose key would be too long, and takes the longest", () => {
    const path = (length: number) => `node_modules/${"x".repeat(length - "shop/".length)}`
    expect(read({ "": {}, [path(500)]: {} }).packages).toHaveLength(2)
    expect(refusal(fileOf({ "": {}, [path(501)]: {} })).faults).toHaveLength(1)
  })

  it("two packages with one key", () => {
    expect(refusal(fileOf({ web: {}, "node_modules/web": {}, "node_modules/./web": {} })).message).toContain(
      "shop/./web"
    )
  })

  it("tells the first 20 faults and counts the others", () => {
    const packages = Object.fromEntries(
      Array.from({ length: 25 }, (_, index) => [`node_modules/p${index}`, index])
    )
    const error = refusal(fileOf(packages))
    expect(error.faults).toHaveLength(20)
    expect(error.total).toBe(25)
    expect(error.message).toMatch(/\b5\b[^\n]*$/)
  })

  it("a file of absurd size, and of absurdly many packages or dependencies", () => {
    expect(refusal(" ".repeat(graphLimits.lockfileMaxChars + 1)).message).toContain(
      String(graphLimits.lockfileMaxChars)
    )
    const many = Array.from(
      { length: graphLimits.lockfilePackages + 1 },
      (_, index) => `"node_modules/p${index}":{}`
    )
    expect(refusal(`{"lockfileVersion":3,"packages":{${many.join(",")}}}`).message).toContain(
      String(graphLimits.lockfilePackages)
    )
    const ranges = Array.from({ length: 1_001 }, (_, index) => `"d${index}":"1"`).join(",")
    const eager = Array.from(
      { length: 500 },
      (_, index) => `"node_modules/p${index}":{"dependencies":{${ranges}}}`
    )
    expect(refusal(`{"name":"shop","lockfileVersion":3,"packages":{${eager.join(",")}}}`).message).toContain(
      String(graphLimits.lockfileDependencies)
    )
  })
})
