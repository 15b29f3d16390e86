/**
 * Who may stand at the door, by Host and Origin.
 */
import { describe, expect, it } from "@effect/vitest"
import { findStranger, readOrigins, type Standing } from "./origins.ts"

const at = (host: string, ...allowedOrigins: ReadonlyArray<string>): Standing["Service"] => ({
  host,
  allowedOrigins
})
const mayEnter = (standing: Standing["Service"], host: string | undefined, origin?: string) =>
  findStranger(standing, { host, origin }) === undefined

describe("The MCP door", () => {
  it.each(["localhost:4400", "127.0.0.1:4400", "[::1]:4400", "a.localhost", "LOCALHOST"])(
    "is called by a name of this machine: %s",
    (host) => expect(mayEnter(at("127.0.0.1"), host)).toBe(true)
  )

  it.each([
    "evil.example",
    "evil.example:4400",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "192.168.1.7",
    "",
    "a b",
    undefined
  ])("of this machine alone is not called by another name: %s", (host) =>
    expect(mayEnter(at("127.0.0.1"), host)).toBe(false)
  )

  it("that listens everywhere is called by any address, its own name and those that the operator names", () => {
    const open = at("0.0.0.0", "https://tropism.example")
    expect(
      ["192.168.1.7:4400", "[fe80::1]:4400", "tropism.example", "localhost"].map((host) =>
        mayEnter(open, host)
      )
    ).toEqual([true, true, true, true])
    expect(mayEnter(open, "evil.example")).toBe(false)
    expect(mayEnter(at("Garden"), "garden:4400")).toBe(true)
  })

  it("lets its own pages call, those of this machine and those that the operator names", () => {
    const standing = at("127.0.0.1", "https://chat.example")
    for (const origin of [
      "http://localhost:6274",
      "http://127.0.0.1:4400",
      "https://chat.example",
      undefined
    ])
      expect([origin, mayEnter(standing, "localhost:4400", origin)]).toEqual([origin, true])
    for (const origin of [
      "https://evil.example",
      "http://chat.example",
      "https://chat.example.evil.example",
      "null",
      "http://localhost.evil.example"
    ])
      expect([origin, mayEnter(standing, "localhost:4400", origin)]).toEqual([origin, false])
    expect(mayEnter(at("0.0.0.0"), "192.168.1.7:4400", "http://192.168.1.7:4400")).toBe(true)
  })

  it("reads a list of origins, or says which of them is none", () => {
    expect(readOrigins("https://a.example, http://b.example:81/,")).toEqual({
      origins: ["https://a.example", "http://b.example:81"]
    })
    expect(readOrigins("")).toEqual({ origins: [] })
    for (const unfit of ["a.example", "ftp://a.example", "https://a.example/path", "*"])
      expect(readOrigins(`https://b.example,${unfit}`)).toEqual({ unfit })
  })
})
