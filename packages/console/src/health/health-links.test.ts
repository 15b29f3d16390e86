/**
 * Where a finding leads: to what is to be mended, and to the part of the page where it is.
 */
import { expect, it } from "vitest"
import { linkOf } from "./health-links.ts"

const id = "0190a000-0001-7000-8000-000000000001"

it("leads from dead letters to the dead letters, and not to all that the agent made of events", () => {
  expect(linkOf({ type: "deadLetters", id, name: "greeter" })).toEqual({
    to: { to: "/reactions/$agentId", params: { agentId: id }, search: { tab: "dead" } },
    words: expect.stringContaining("greeter")
  })
  expect(linkOf({ type: "deadLetters", id: null, name: "greeter" })).toBeUndefined()
})
