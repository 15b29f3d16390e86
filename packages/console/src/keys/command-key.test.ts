/**
 * The command key is called as the keyboard in front of the person calls it.
 */
import { expect, it } from "vitest"
import { commandKeyOf } from "./command-key.ts"

it.each([
  ["MacIntel", "⌘"],
  ["iPad", "⌘"],
  ["Win32", "Ctrl"],
  ["Linux x86_64", "Ctrl"]
])("on %s it is %s", (platform, key) => {
  expect(commandKeyOf(platform)).toBe(key)
})
