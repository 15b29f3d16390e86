/**
 * When what is suggested now agrees with what people decided then.
 */
import { describe, expect, it } from "vitest"
import { comparedProperties, type Earlier, gather, meet } from "./backtest-agreement.ts"
import type { Change } from "./change.ts"
import { ObjectId } from "./ids.ts"
import type { Properties } from "./json.ts"

const one = ObjectId.make("00000000-0000-7000-8000-000000000001")
const other = ObjectId.make("00000000-0000-7000-8000-000000000002")
const update = (data: Properties, objectId = one): Change => ({ type: "update", objectId, data })
const note = (data: Properties): Change => ({ type: "create", objectType: "Note", key: null, data })

const earlier = (status: Earlier["status"], change: Change, applied: Earlier["applied"] = null): Earlier => ({
  status,
  change,
  applied
})

/** How each of the earlier ones is met, and what is new. */
const told = (then: ReadonlyArray<Earlier>, ...now: ReadonlyArray<Change>) => {
  const { fresh, met } = meet(
    then,
    now.map((change) => ({ change }))
  )
  return [met.map(({ agrees, likeness }) => [likeness, agrees]), fresh.length]
}

describe("Agreement", () => {
  it("an accepted change is wanted again, a rejected one is not, and what nobody decided says nothing", () => {
    const change = update({ a: 1 })
    expect(told([earlier("completed", change)], change)).toEqual([[["same", true]], 0])
    expect(told([earlier("completed", change)])).toEqual([[["none", false]], 0])
    expect(told([earlier("rejected", change)], change)).toEqual([[["same", false]], 0])
    expect(told([earlier("rejected", change)])).toEqual([[["none", true]], 0])
    for (const status of ["pending", "expired"] as const)
      expect(told([earlier(status, change)], change)).toEqual([[["same", undefined]], 0])
  })

  it("the same is the same subject and the same properties, in whatever order they are said", () => {
    expect(told([earlier("completed", update({ a: 1, b: 2 }))], update({ b: 2, a: 1 }))).toEqual([
      [["same", true]],
      0
    ])
    expect(told([earlier("completed", update({ a: 1 }))], update({ a: 1 }, other))).toEqual([
      [["none", false]],
      1
    ])
    expect(told([earlier("completed", update({ a: 1 }))], update({ a: 2 }))).toEqual([
      [["different", false]],
      0
    ])
    // Another form of what was rejected is something new.
    expect(told([earlier("rejected", update({ a: 1 }))], update({ a: 2 }))).toEqual([[["none", true]], 1])
  })

  it("an edited change is wanted as it was edited", () => {
    const applied = { before: { a: 0, b: 0 }, after: { a: 2, b: 0 } }
    const edited = earlier("completed", update({ a: 1 }), applied)
    expect(told([edited], update({ a: 2 }))).toEqual([[["edited", true]], 0])
    // What is so already is no part of the change.
    expect(told([edited], update({ a: 2, b: 0 }))).toEqual([[["edited", true]], 0])
    expect(told([edited], update({ a: 1 }))).toEqual([[["same", false]], 0])
    expect(told([edited], update({ a: 3 }))).toEqual([[["different", false]], 0])
    const asSaid = earlier("completed", update({ a: 2 }), applied)
    expect(told([asSaid], update({ a: 2 }))).toEqual([[["same", true]], 0])
  })

  it("each takes one place: creations without a key are matched by what they say, and two equal ones are one", () => {
    expect(told([earlier("completed", note({ n: 1 }))], note({ n: 1 }), note({ n: 1 }))).toEqual([
      [["same", true]],
      0
    ])
    expect(told([], note({ n: 1 }), note({ n: 1 }), note({ n: 2 }))).toEqual([[], 2])
    expect(
      told(
        [earlier("completed", note({ n: 1 })), earlier("completed", note({ n: 2 }))],
        note({ n: 2 }),
        note({ n: 1 })
      )
    ).toEqual([
      [
        ["same", true],
        ["same", true]
      ],
      0
    ])
  })

  const gathered = (...made: ReadonlyArray<Change>) =>
    gather(made.map((change) => ({ change }))).map(({ change }) => "data" in change && change.data)

  it("patches of one thing that share a property are one, the later over the earlier, to the depth", () => {
    expect(gathered(update({ a: 1, b: 1 }), note({ n: 1 }), update({ b: 2 }))).toEqual([
      { a: 1, b: 2 },
      { n: 1 }
    ])
    expect(
      gathered(
        update({ address: { city: "Bonn", street: { name: "A" } } }),
        update({ address: { zip: null, street: { number: 3 } } })
      )
    ).toEqual([{ address: { city: "Bonn", street: { name: "A", number: 3 }, zip: null } }])
    const nested = update({ address: { city: "Bonn", zip: 1 } })
    expect(
      told(
        [earlier("completed", nested)],
        update({ address: { city: "Bonn" } }),
        update({ address: { zip: 1 } })
      )
    ).toEqual([[["same", true]], 0])
  })

  it("patches that share none are two, until one takes them together", () => {
    expect(gathered(update({ a: 1 }), update({ b: 1 }))).toEqual([{ a: 1 }, { b: 1 }])
    expect(gathered(update({ a: 1 }), update({ b: 1 }), update({ a: 2, b: 2, c: 2 }))).toEqual([
      { a: 2, b: 2, c: 2 }
    ])
  })

  /** The properties of an accepted suggestion: the same, suggested now, accepted. */
  const compared = (then: Earlier, now: Change) => {
    const [met] = meet([then], [{ change: now }]).met
    if (!met) throw new Error("Nothing met")
    const { accepted, same, suggested } = comparedProperties(met)
    return [same, suggested, accepted]
  }

  it("a property that was written before the approval was accepted with it", () => {
    const change = update({ a: 1, b: 1 })
    const rebased = earlier("completed", change, { before: { a: 1, b: 0 }, after: { a: 1, b: 1 } })
    expect(compared(rebased, change)).toEqual([2, 2, 2])
    expect(compared(rebased, update({ b: 1 }))).toEqual([1, 1, 2])
    expect(compared(rebased, update({ a: 2, b: 1 }))).toEqual([1, 2, 2])
    // A person took b out: what was left of the suggestion is accepted.
    const without = earlier("completed", change, { before: { a: 0, b: 0 }, after: { a: 1, b: 0 } })
    expect(compared(without, update({ a: 1 }))).toEqual([1, 1, 1])
    expect(compared(without, change)).toEqual([1, 2, 1])
  })

  it("a nested patch is the same where it comes to the same", () => {
    const change = update({ address: { city: "Bonn" } })
    const accepted = earlier("completed", change, {
      before: { address: { zip: 1 } },
      after: { address: { zip: 1, city: "Bonn" } }
    })
    expect(compared(accepted, change)).toEqual([1, 1, 1])
    expect(compared(accepted, update({ address: { city: "Köln" } }))).toEqual([0, 1, 1])
    expect(compared(accepted, update({ address: "Bonn" }))).toEqual([0, 1, 1])
  })
})
