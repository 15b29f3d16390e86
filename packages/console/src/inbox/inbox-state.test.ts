/**
 * A reviewer works down the list and never loses their place.
 */
import { describe, expect, it } from "@effect/vitest"
import { emptyInbox, type InboxEvent, reduceInbox } from "./inbox-state.ts"

const after = (...events: ReadonlyArray<InboxEvent>) =>
  events.reduce(reduceInbox, reduceInbox(emptyInbox, { type: "listed", order: ["a", "b", "c"] }))

const next: InboxEvent = { type: "stepped", by: 1 }
const previous: InboxEvent = { type: "stepped", by: -1 }

describe("the place in the list", () => {
  it("is nowhere at first, and the first step goes to the first suggestion", () => {
    expect(after().currentId).toBeUndefined()
    expect(after(next).currentId).toBe("a")
    expect(after(previous).currentId).toBe("a")
  })

  it("stops at both ends", () => {
    expect(after(next, next, next, next).currentId).toBe("c")
    expect(after(next, next, previous, previous, previous).currentId).toBe("a")
    expect(reduceInbox(emptyInbox, next)).toBe(emptyInbox)
  })

  it("moves to the next suggestion when the current one is decided, and asks for the focus", () => {
    const state = after(next, next, { type: "decided", id: "b" })
    expect(state.order).toEqual(["a", "c"])
    expect(state.currentId).toBe("c")
    expect(state.focusRequests).toBe(3)
  })

  it("moves back when the last one is decided, and is nowhere when all are", () => {
    const last = after(next, next, next, { type: "decided", id: "c" })
    expect(last.currentId).toBe("b")
    expect(
      [
        { type: "decided", id: "b" },
        { type: "decided", id: "a" }
      ].reduce((state, event) => reduceInbox(state, event as InboxEvent), last).currentId
    ).toBeUndefined()
  })

  it("stays when another is decided, here or elsewhere", () => {
    expect(after(next, { type: "decided", id: "b" })).toMatchObject({ currentId: "a", focusRequests: 1 })
    expect(after(next, { type: "listed", order: ["x", "a"] })).toMatchObject({
      currentId: "a",
      focusRequests: 1
    })
  })

  it("follows a click without asking for the focus", () => {
    expect(after({ type: "entered", id: "c" })).toMatchObject({ currentId: "c", focusRequests: 0 })
  })

  it("does not follow the focus to what has left the list", () => {
    expect(
      after({ type: "opened", id: "b" }, { type: "decided", id: "b" }, { type: "entered", id: "b" }).currentId
    ).toBe("c")
  })

  it("goes on at whichever is current when a dialog is gone", () => {
    const list: InboxEvent = { type: "listed", order: ["a", "c"] }
    expect(after({ type: "opened", id: "b" }, list, { type: "wentOn" })).toMatchObject({
      currentId: "c",
      focusRequests: 3
    })
  })

  it("waits for a linked suggestion that is not listed yet", () => {
    expect(after({ type: "opened", id: "z" }, { type: "listed", order: ["a", "z"] }).currentId).toBe("z")
  })
})

describe("the selection", () => {
  it("takes and gives back one or a whole group", () => {
    const state = after(
      { type: "toggled", id: "a" },
      { type: "selectedAll", ids: ["b", "c"], isSelected: true }
    )
    expect([...state.selected]).toEqual(["a", "b", "c"])
    expect([...reduceInbox(state, { type: "toggled", id: "b" }).selected]).toEqual(["a", "c"])
    expect(reduceInbox(state, { type: "cleared" }).selected.size).toBe(0)
  })

  it("forgets what is no longer on the list, so that it is not decided unseen", () => {
    const state = after(
      { type: "selectedAll", ids: ["a", "b"], isSelected: true },
      { type: "listed", order: ["b", "c"] }
    )
    expect([...state.selected]).toEqual(["b"])
  })
})

describe("a decision", () => {
  const started: InboxEvent = { type: "decisionStarted", ids: ["a", "b"], decision: "approve" }
  const refused: InboxEvent = { type: "decisionRefused", id: "a", sentence: "It moved." }

  it("is under way until the server answers", () => {
    expect([...after(started).deciding]).toEqual([
      ["a", "approve"],
      ["b", "approve"]
    ])
    expect([...after(started, { type: "decided", id: "a" }).deciding]).toEqual([["b", "approve"]])
  })

  it("that is refused leaves the suggestion in its place with the reason, until the next try", () => {
    const state = after(next, started, refused)
    expect(state).toMatchObject({ order: ["a", "b", "c"], currentId: "a" })
    expect(state.deciding.has("a")).toBe(false)
    expect(state.refusals.get("a")).toEqual({ sentence: "It moved.", read: undefined })
    expect(reduceInbox(state, started).refusals.has("a")).toBe(false)
  })

  it("a refusal holds for what was read behind it, and is gone when it has passed", () => {
    const state = after(
      { type: "decisionRefused", id: "a", sentence: "It moved." },
      { type: "refusalRead", id: "a", read: "as it is" }
    )
    expect(state.refusals.get("a")).toEqual({ sentence: "It moved.", read: "as it is" })
    expect(reduceInbox(state, { type: "refusalPassed", id: "a" }).refusals.size).toBe(0)
    // A decision that was begun again has no refusal yet.
    expect(after({ type: "refusalRead", id: "a", read: "late" }).refusals.size).toBe(0)
  })
})
