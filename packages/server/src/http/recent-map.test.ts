/**
 * Only so many are remembered, and never fewer than half of them.
 */
import { assert, describe, it } from "@effect/vitest"
import { RecentMap } from "./recent-map.ts"

describe("What was asked for last", () => {
  it("is remembered, and what was not asked for since is forgotten", () => {
    const map = new RecentMap<number>(4)
    for (const [number, key] of ["a", "b", "c"].entries()) map.set(key, number)
    assert.strictEqual(map.get("a"), 0)
    map.set("d", 3)
    assert.deepStrictEqual(
      ["a", "d", "b", "c"].map((key) => map.get(key)),
      [0, 3, undefined, 2]
    )
  })

  it("is taken anew, and gone when it is taken away", () => {
    const map = new RecentMap<number>(4)
    map.set("a", 1)
    map.set("a", 2)
    assert.deepStrictEqual([map.get("a"), map.size], [2, 1])
    map.delete("a")
    assert.deepStrictEqual([map.get("a"), map.size], [undefined, 0])
    for (let number = 0; number < 10_000; number++) map.set(`guess ${number}`, number)
    assert.isAtMost(map.size, 4)
  })
})
