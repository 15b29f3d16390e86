/**
 * The words of a writer, and the marks that they leave.
 */
import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { mergePatch, type Properties } from "./json.ts"
import { marksAfter, untrustedNames } from "./untrusted.ts"

describe("Which properties are untrusted", () => {
  it("stands for all that is written, for what is named, or for nothing", () => {
    const written = { b: 1, a: null }
    const names = (words: Parameters<typeof untrustedNames>[0]) =>
      Result.getOrUndefined(untrustedNames(words, written))
    expect(names(true)).toEqual(["a", "b"])
    expect(names(["b", "b"])).toEqual(["b"])
    expect([names(false), names([]), names(null), names(undefined)]).toEqual([[], [], [], []])
  })

  it("cannot be said of what is not written", () => {
    const fault = untrustedNames(["a", "x/y"], { a: 1, toString: 1 })
    expect(Result.isFailure(fault) && fault.failure.pointer).toBe("/untrusted/1")
    expect(Result.isFailure(untrustedNames(["hasOwnProperty"], {}))).toBe(true)
  })

  it.each<readonly [string, ReadonlyArray<string>, Properties, Properties, ReadonlyArray<string>, unknown]>([
    ["a first mark", [], {}, { a: 1 }, ["a"], ["a"]],
    ["what is not written keeps its mark", ["a"], { a: 1 }, { b: 2 }, [], ["a"]],
    ["a trusted write takes it", ["a"], { a: 1 }, { a: 2 }, [], []],
    ["the same value, vouched for, takes it", ["a"], { a: 1 }, { a: 1 }, [], []],
    ["the same value, doubted, sets it", [], { a: 1 }, { a: 1 }, ["a"], ["a"]],
    ["what is removed has none", ["a"], { a: 1 }, { a: null }, [], []],
    ["nor has what is removed with a mark", ["a"], { a: 1 }, { a: null }, ["a"], []],
    ["a merge that leaves something leaves it", ["a"], { a: { x: 1, y: 2 } }, { a: { x: 3 } }, [], ["a"]],
    ["a merge that leaves nothing takes it", ["a"], { a: { x: 1 } }, { a: { x: 3 } }, [], []],
    ["so does one that removes the rest", ["a"], { a: { x: 1, y: 2 } }, { a: { x: 3, y: null } }, [], []],
    ["an object in place of a text takes it", ["a"], { a: "text" }, { a: { x: 3 } }, [], []],
    ["an untrusted merge sets it", [], { a: { x: 1 } }, { a: { y: 2 } }, ["a"], ["a"]],
    ["names are sorted", ["c"], { c: 1 }, { b: 1, a: 1 }, ["b", "a"], ["a", "b", "c"]]
  ])("%s", (_, marked, before, patch, untrusted, expected) => {
    const after = mergePatch(before, patch) as Properties
    expect(marksAfter(marked, patch, after, untrusted)).toEqual(expected)
  })
})
