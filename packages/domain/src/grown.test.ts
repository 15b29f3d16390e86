/** What is made of lists that grow is what would be made of them whole, in whatever order they are asked about. */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { behindTexts, foldGrown, grow, mapGrown } from "./grown.ts"

const small = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 }))

/** A list is taken, of all that there are: it is asked about, or another comes of it. */
const Act = Schema.Struct({
  list: small,
  kind: Schema.Literals(["ask", "ask twice", "grow", "copy"]),
  added: Schema.Array(small).check(Schema.isMaxLength(3))
})

const anyActs = Arbitrary.array(Arbitrary.schema(Act), { maxLength: 40 })
const long = { size: 40, runs: 500 }

/** Does the acts, asks about the lists that they name, and in the end about all. */
const play = (
  acts: ReadonlyArray<typeof Act.Type>,
  ask: (list: ReadonlyArray<number>) => void
): ReadonlyArray<ReadonlyArray<number>> => {
  const lists: Array<ReadonlyArray<number>> = [[]]
  for (const { added, kind, list } of acts) {
    const from = lists[list % lists.length] ?? []
    if (kind === "grow") lists.push(grow(from, added))
    else if (kind === "copy") lists.push([...from, ...added])
    else for (let n = 0; n < (kind === "ask" ? 1 : 2); n++) ask(from)
  }
  for (const list of lists) ask(list)
  return lists
}

describe("a list that grows", () => {
  it.prop(
    "is what it would be if it were made at once",
    [Arbitrary.array(Arbitrary.schema(Schema.Array(small)))],
    ([pieces]) => {
      const grown = pieces.reduce((list, piece) => grow(list, Object.freeze(piece)), Object.freeze([]) as [])
      expect(grown).toStrictEqual(pieces.flat())
    }
  )

  it.prop(
    "is folded to what it folds to from its beginning, though the step changes what it is given",
    [anyActs],
    ([acts]) => {
      const seen = foldGrown<number, Array<number>>(
        () => [],
        (numbers, number) => {
          numbers.push(number)
          return numbers
        }
      )
      play(acts, (list) => expect(seen(list)).toStrictEqual([...list]))
    },
    { arbitrary: long }
  )

  it.prop(
    "is mapped to what it maps to as a whole, and no list that was mapped before is changed by it",
    [anyActs],
    ([acts]) => {
      const doubled = mapGrown((number: number) => number * 2)
      const length = foldGrown<number, number>(
        () => 0,
        (count) => count + 1
      )
      const answers: Array<readonly [ReadonlyArray<number>, ReadonlyArray<number>]> = []
      play(acts, (list) => {
        const mapped = doubled(list)
        expect(length(mapped)).toBe(list.length)
        answers.push([list, Object.freeze(mapped)])
      })
      for (const [list, mapped] of answers) expect(mapped).toStrictEqual(list.map((number) => number * 2))
    },
    { arbitrary: long }
  )
})

describe("a list behind texts", () => {
  it.prop(
    "is what it would be if it were made at once, whatever stood before it the last time",
    [anyActs],
    ([acts]) => {
      const behind = behindTexts(Number)
      const length = foldGrown<number, number>(
        () => 0,
        (count) => count + 1
      )
      let texts: ReadonlyArray<string> = []
      play(acts, (list) => {
        if (list.length % 3 === 0) texts = list.slice(0, 2).map(String)
        const whole = behind(texts, list)
        expect(whole).toStrictEqual([...texts.map(Number), ...list])
        expect(length(whole)).toBe(whole.length)
      })
    },
    { arbitrary: long }
  )
})

describe("the cost of what is made of a list that grows", () => {
  const made = { folded: 0, mapped: 0 }
  const sum = foldGrown<number, number>(
    () => 0,
    (total, number) => {
      made.folded += 1
      return total + number
    }
  )
  const doubled = mapGrown((number: number) => {
    made.mapped += 1
    return number * 2
  })

  it("is that of what is new: each item is looked at once, by all requests together", () => {
    let list: ReadonlyArray<number> = [1, 2, 3]
    for (let n = 0; n < 1_000; n++) {
      list = grow(list, [n])
      expect(sum(doubled(list))).toBe(12 + n * (n + 1))
      // Another list that grows from this one, and about which nobody asks, takes nothing away from it.
      grow(list, [-1])
    }
    expect(made).toEqual({ folded: 1_003, mapped: 1_003 })
  })

  it("and a step that fails leaves nothing half done behind", () => {
    const picky = foldGrown<number, Array<number>>(
      () => [],
      (numbers, number) => {
        numbers.push(number)
        if (number > 8) throw new Error("Too large")
        return numbers
      }
    )
    const list = grow([], [1, 2])
    expect(picky(list)).toEqual([1, 2])
    expect(() => picky(grow(list, [3, 9]))).toThrow("Too large")
    expect(picky(grow(list, [4]))).toEqual([1, 2, 4])
  })
})
