/**
 * Of the form of a foreign server only what was changed is sent, and what somebody else changed is told where it is the same.
 */
import { describe, expect, it } from "@effect/vitest"
import { expectOneSentencePerKind } from "../../testing/sentence-kinds.ts"
import type { ServerDefinition } from "./server-words.ts"
import {
  argumentsFault,
  keepWritten,
  movedFields,
  nothingWritten,
  nowSentence,
  patchOf,
  shownOf,
  writeOver
} from "./written-server.ts"

const shop: ServerDefinition = {
  name: "shop",
  transport: { type: "http", url: "https://shop.example/mcp", headers: { "X-Key": "a" } },
  allowedTools: ["get", "charge"],
  untrusted: false
}

const program: ServerDefinition = {
  ...shop,
  transport: { type: "stdio", command: "sh", args: ["-c", "one\ntwo"], env: { MODE: " a " } }
}

describe("what is written in the form of a server", () => {
  it("is sent alone, on top of what somebody else changed", () => {
    const written = writeOver(nothingWritten, shop, { name: " market " })
    const now = { ...shop, allowedTools: ["get"], untrusted: true }
    expect(shownOf(written, now)).toMatchObject({ allowedTools: "get", isUntrusted: true })
    expect(movedFields(written, now)).toEqual([])
    expect(patchOf(written, now)).toEqual({ name: "market" })
  })

  it("is nothing where nobody wrote, or wrote again what stood there", () => {
    expect(patchOf(nothingWritten, program)).toEqual({})
    const away = writeOver(nothingWritten, shop, { name: "market", isUntrusted: true })
    const back = writeOver(away, shop, { name: "shop", isUntrusted: false })
    expect(back).toEqual(nothingWritten)
  })

  it("of how it is reached goes as a whole, on top of how it is by now", () => {
    const written = writeOver(nothingWritten, shop, { url: "https://new.example/mcp" })
    const transport = { ...shop.transport, headers: { "X-Key": "b" } }
    expect(patchOf(written, { ...shop, transport })).toEqual({
      transport: { ...transport, url: "https://new.example/mcp" }
    })
    expect(patchOf(writeOver(nothingWritten, program, { command: "bash" }), program)).toEqual({
      transport: { ...program.transport, command: "bash" }
    })
  })

  it("of the sign-in goes as a whole, and as null where nothing is said any more", () => {
    const authorization = { type: "oauth", per: "server", clientId: "crm", scopes: ["a"] } as const
    const crm = { ...shop, authorization }
    expect(patchOf(writeOver(nothingWritten, crm, { signIn: "member" }), crm)).toEqual({
      authorization: { ...authorization, per: "member" }
    })
    expect(patchOf(writeOver(nothingWritten, crm, { scopes: "a b", clientId: "" }), crm)).toEqual({
      authorization: { type: "oauth", per: "server", scopes: ["a", "b"] }
    })
    expect(patchOf(writeOver(nothingWritten, crm, { signIn: "" }), crm)).toEqual({ authorization: null })
    expect(patchOf(writeOver(nothingWritten, shop, { signIn: "server" }), shop)).toEqual({
      authorization: { type: "oauth", per: "server" }
    })
    expect(patchOf(writeOver(nothingWritten, crm, { type: "stdio", command: "sh" }), crm)).toMatchObject({
      authorization: null,
      transport: { type: "stdio" }
    })
  })

  it("waits until it was read what somebody else made of the same field", () => {
    const written = writeOver(nothingWritten, shop, { allowedTools: "get charge look" })
    const now = { ...shop, allowedTools: ["get"] }
    expect(movedFields(written, now)).toEqual(["allowedTools"])
    expect(nowSentence("allowedTools", now)).toMatch(/: get$/)
    const kept = keepWritten(written, now)
    expect(movedFields(kept, now)).toEqual([])
    expect(movedFields(kept, { ...shop, allowedTools: [] })).toEqual(["allowedTools"])
    expect(patchOf(kept, now)).toEqual({ allowedTools: ["get", "charge", "look"] })
  })

  it("needs no saving where somebody else wrote the same", () => {
    const written = writeOver(nothingWritten, shop, { isUntrusted: true })
    const now = { ...shop, untrusted: true }
    expect(movedFields(written, now)).toEqual([])
    expect(patchOf(written, now)).toEqual({})
  })

  it("cannot change arguments that no line shows", () => {
    expect(argumentsFault(nothingWritten, program)).toBeUndefined()
    expect(argumentsFault(writeOver(nothingWritten, program, { env: "" }), program)).toBeUndefined()
    const changed = writeOver(nothingWritten, program, { args: "-c\none\ntwo\nthree" })
    expect(argumentsFault(changed, program)).toEqual(expect.any(String))
    expect(argumentsFault(writeOver(changed, program, { type: "http" }), program)).toBeUndefined()
  })

  it("says in words what a field is by now", () => {
    const allowedEvents = ["order.*"]
    expectOneSentencePerKind({
      untrusted: [nowSentence("isUntrusted", { ...shop, untrusted: true })],
      trusted: [nowSentence("isUntrusted", shop)],
      atAnAddress: [nowSentence("type", shop)],
      program: [nowSentence("type", program)],
      noEvents: [nowSentence("allowedEvents", shop), nowSentence("allowedEvents", program)],
      events: [nowSentence("allowedEvents", { ...shop, allowedEvents })]
    })
    expect(nowSentence("allowedEvents", { ...shop, allowedEvents })).toContain("order.*")
  })
})
