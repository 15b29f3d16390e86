/**
 * A text that is no token is told apart from one that the server does not know.
 */
import { expect, it } from "vitest"
import { tokenFault } from "./token-fault.ts"

it.each([
  ["пароль", /not a token: a token has only Latin letters/],
  ["schlüssel", /not a token/],
  ["two words", /no spaces/],
  ["x".repeat(9_000), /not a token: it has 9,000 characters/]
])("%s", (text, sentence) => {
  expect(tokenFault(text)).toMatch(sentence)
})

it("what may be a token has no fault", () => {
  expect(tokenFault("trp_0aZ-._~+/=")).toBeUndefined()
})
