/**
 * What is sealed for one row under one key, and nowhere else.
 */
import { describe, expect, it } from "@effect/vitest"
import { keyIdOf, newKeyText, opened, readKey, sealed, type SealingKey } from "./sealing.ts"

const newKey = (): SealingKey => {
  const key = readKey(newKeyText())
  if (key === undefined) throw new Error("A new key cannot be read")
  return key
}

describe("A sealed text", () => {
  const key = newKey()

  it("opens with its key at its place, whatever it says", () => {
    for (const text of ["", "whsec_c2VjcmV0", "zwölf Boxkämpfer 🥊", "x".repeat(10_000)])
      expect(opened([newKey(), key], "row 1", sealed(key, "row 1", text))).toBe(text)
  })

  it("says nothing of what it holds, and is another each time", () => {
    const [one, other] = [sealed(key, "row 1", "secret"), sealed(key, "row 1", "secret")]
    expect(one).not.toBe(other)
    expect(Buffer.from(one.split(".")[2] ?? "", "base64url").toString("latin1")).not.toContain("secret")
    expect(keyIdOf(one)).toBe(key.id)
  })

  it("opens with no other key, at no other place, and not after a bit of it was changed", () => {
    const text = sealed(key, "row 1", "secret")
    expect(opened([newKey()], "row 1", text)).toBeUndefined()
    expect(opened([], "row 1", text)).toBeUndefined()
    expect(opened([key], "row 2", text)).toBeUndefined()
    const [version, id, body = ""] = text.split(".")
    const bytes = Buffer.from(body, "base64url")
    for (const index of bytes.keys()) {
      const changed = Buffer.from(bytes)
      changed[index] = (changed[index] ?? 0) ^ 1
      expect(opened([key], "row 1", `${version}.${id}.${changed.toString("base64url")}`)).toBeUndefined()
    }
    for (const unfit of ["", "whsec_c2VjcmV0", `v1.${key.id}.`, `v1.${key.id}.AAAA`, `v2.${key.id}.${body}`])
      expect(opened([key], "row 1", unfit)).toBeUndefined()
  })
})

describe("A key", () => {
  it("is 32 bytes, hexadecimal or in base64, and the same in either form", () => {
    const bytes = Buffer.alloc(32, 7)
    const forms = [bytes.toString("hex"), bytes.toString("base64"), bytes.toString("base64url")]
    expect(new Set(forms.map((form) => readKey(form)?.id)).size).toBe(1)
    for (const unfit of [
      "",
      "password",
      "00",
      Buffer.alloc(31).toString("base64"),
      Buffer.alloc(33).toString("hex")
    ])
      expect(readKey(unfit)).toBeUndefined()
  })
})
