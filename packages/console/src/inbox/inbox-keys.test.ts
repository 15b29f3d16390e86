/**
 * A key decides only when somebody means it.
 */
import { describe, expect, it } from "@effect/vitest"
import { bindings, commandOf, type KeyPress } from "./inbox-keys.ts"

const press = (key: string, more: Partial<KeyPress> = {}): KeyPress => ({
  key,
  repeat: false,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  isComposing: false,
  ...more
})

describe("the keys of the inbox", () => {
  it("do what the key map says", () => {
    expect(
      ["j", "k", "a", "r", "e", "l", "x", "X", "A", "R", "Escape", "?", "q"].map((key) =>
        commandOf(press(key))
      )
    ).toEqual([
      "next",
      "previous",
      "approve",
      "reject",
      "edit",
      "lookAgain",
      "select",
      "selectGroup",
      "approveSelected",
      "rejectSelected",
      "clear",
      undefined,
      undefined
    ])
    expect(new Set(bindings.map(({ key }) => key)).size).toBe(bindings.length)
  })

  it("leave the browser's own shortcuts alone", () => {
    for (const modifier of ["ctrlKey", "metaKey", "altKey", "isComposing"] as const) {
      expect(commandOf(press("a", { [modifier]: true }))).toBeUndefined()
    }
  })

  it("decide once however long they are held; only moving repeats", () => {
    expect(commandOf(press("a", { repeat: true }))).toBeUndefined()
    expect(commandOf(press("x", { repeat: true }))).toBeUndefined()
    expect(commandOf(press("j", { repeat: true }))).toBe("next")
  })
})
