/**
 * Files that are no lockfile that can be read, and the places that are wrong.
 */
import { describe, expect, it } from "@effect/vitest"
import type { Schema } from "effect"
import { graphLimits } from "../limits.ts"
import { fileOf, read, refusal } from "./lockfiles-for-tests.ts"

describe("what is refused", () => {
  it.each<[string, string, string]>([
    [
      `{"name": "shop",\n<<<<<<< HEAD\n`,
      "",
      "The file is not JSON: line 2, column 1 reads <<<<<<< HEAD; resolve the merge conflict first"
    ],
    [`{"name": "shop"`, "", "The file is not JSON: line 1, column 16 breaks off"],
    ["", "", "The file is not JSON: line 1, column 1 breaks off"],
    ["[]", "", "The file is not a JSON object"],
    ["null", "", "The file is not a JSON object"],
    [
      `{"name":"shop","version":"1.0.0"}`,
      "/lockfileVersion",
      "The file is no package-lock.json: its lockfileVersion is neither 2 nor 3"
    ],
    [
      `{"lockfileVersion":4,"packages":{}}`,
      "/lockfileVersion",
      "The file is no package-lock.json: its lockfileVersion is neither 2 nor 3"
    ],
    [`{"lockfileVersion":3}`, "/packages", "The file is no package-lock.json: it has no object `packages`"],
    [
      `{"lockfileVersion":3,"packages":[]}`,
      "/packages",
      "The file is no package-lock.json: it has no object `packages`"
    ],
    [
      `{"lockfileVersion":3,"name":"a\\u0000","packages":{}}`,
      "/name",
      "Text must not contain the character U+0000"
    ],
    [
      `{"lockfileVersion":3,"name":"a\\u0000","packages":{"":{"name":"shop"}}}`,
      "/name",
      "Text must not contain the character U+0000"
    ],
    [
      `{"lockfileVersion":3,"name":"shop","packages":{"":{"name":"a\\u0000"}}}`,
      "/packages//name",
      "Text must not contain the character U+0000"
    ]
  ])("%j", (text, pointer, message) => {
    expect(refusal(text).faults).toEqual([{ pointer, message }])
  })

  it("lockfileVersion 1, with a sentence that says what to do", () => {
    const { message } = refusal(
      `{"name":"shop","lockfileVersion":1,"dependencies":{"a":{"version":"1.0.0"}}}`
    )
    expect(message).toContain("lockfileVersion 1 does not say where packages are installed")
    expect(message).toContain("npm install --package-lock-only --lockfile-version 3")
  })

  const faulty: ReadonlyArray<readonly [entry: Schema.Json, pointer: string, message: string]> = [
    ["1.0.0", "", "A package must be an object"],
    [null, "", "A package must be an object"],
    [["x"], "", "A package must be an object"],
    [{ version: 1 }, "/version", "version must be text"],
    [{ name: {} }, "/name", "name must be text"],
    [{ dependencies: ["b"] }, "/dependencies", "Dependencies must be an object of names and version ranges"],
    [{ dependencies: { "b/c": 1 } }, "/dependencies/b~1c", "A version range must be text"],
    [
      { peerDependencies: { b: "\u0000" } },
      "/peerDependencies/b",
      "Text must not contain the character U+0000"
    ],
    [{ version: "\ud800" }, "/version", "Text must not contain a lone surrogate"],
    [JSON.parse(`{"engines":{"__proto__":"1"}}`), "/engines/__proto__", `The key "__proto__" is not allowed`]
  ]

  it.each(faulty.map(([entry, pointer, message]) => [pointer, message, entry] as const))(
    "a package, at %j: %s",
    (pointer, message, entry) => {
      expect(refusal(fileOf({ "": {}, "node_modules/a": entry })).faults).toEqual([
        { pointer: `/packages/node_modules~1a${pointer}`, message }
      ])
    }
  )

  it("a package whose properties would be too large for one object", () => {
    const [fault] = refusal(fileOf({ "": {}, "node_modules/a": { deprecated: "x".repeat(262_144) } })).faults
    expect(fault?.pointer).toBe("/packages/node_modules~1a")
    expect(fault?.message).toContain("must not exceed 262144 bytes")
  })

  it("a path whose key would be too long, and takes the longest", () => {
    const path = (length: number) => `node_modules/${"x".repeat(length - "shop/".length)}`
    expect(read({ "": {}, [path(500)]: {} }).packages).toHaveLength(2)
    expect(refusal(fileOf({ "": {}, [path(501)]: {} })).faults).toHaveLength(1)
  })

  it("two packages with one key", () => {
    expect(refusal(fileOf({ web: {}, "node_modules/web": {}, "node_modules/./web": {} })).message).toContain(
      "Another package has the key shop/./web already"
    )
  })

  it("tells the first 20 faults and counts the others", () => {
    const packages = Object.fromEntries(
      Array.from({ length: 25 }, (_, index) => [`node_modules/p${index}`, index])
    )
    const error = refusal(fileOf(packages))
    expect(error.faults).toHaveLength(20)
    expect(error.total).toBe(25)
    expect(error.message).toContain("… and 5 more")
  })

  it("a file of absurd size, and of absurdly many packages or dependencies", () => {
    expect(refusal(" ".repeat(graphLimits.lockfileMaxChars + 1)).message).toBe(
      "The file has more than 67108864 characters"
    )
    const many = Array.from(
      { length: graphLimits.lockfilePackages + 1 },
      (_, index) => `"node_modules/p${index}":{}`
    )
    expect(refusal(`{"lockfileVersion":3,"packages":{${many.join(",")}}}`).message).toContain(
      "more than 100000 packages"
    )
    const ranges = Array.from({ length: 1_001 }, (_, index) => `"d${index}":"1"`).join(",")
    const eager = Array.from(
      { length: 500 },
      (_, index) => `"node_modules/p${index}":{"dependencies":{${ranges}}}`
    )
    expect(refusal(`{"name":"shop","lockfileVersion":3,"packages":{${eager.join(",")}}}`).message).toContain(
      "more than 500000 dependencies"
    )
  })
})
