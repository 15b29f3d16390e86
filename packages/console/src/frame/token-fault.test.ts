/**
 * A text that is no token is told apart from one that the server does not know.
 */
import { expect, it } from "vitest"
import { expectOneSentencePerKind } from "../../testing/sentence-kinds.ts"
import { tokenFault } from "./token-fault.ts"

it("tells a text with characters that no token has from one that is too long", () => {
  const said = (...texts: ReadonlyArray<string>) => texts.map((text) => tokenFault(text) ?? "")
  expectOneSentencePerKind({
    characters: said("пароль", "schlüssel", "two words"),
    length: said("x".repeat(9_000))
  })
  expect(tokenFault("x".repeat(9_000))).toContain("9,000")
})

it("what may be a token has no fault", () => {
  expect(tokenFault("trp_0aZ-._~+/=")).toBeUndefined()
})
