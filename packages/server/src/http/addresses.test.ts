/**
 * An address has one form: whatever a request writes in another way is brought to it.
 */
import { describe, expect, it } from "@effect/vitest"
import { oneForm } from "./origins.ts"

describe("An address in its one form", () => {
  it.each([
    ["/", "/"],
    ["/api/me", "/api/me"],
    ["//api///me/", "/api/me"],
    ["/api/me/?a=//b/", "/api/me?a=//b/"],
    // What is encoded and need not be.
    ["/%61pi/%6De", "/api/me"],
    ["/api/%7Eada/%2e", "/api/~ada/."],
    // What means something else when it is not.
    ["/a%2fb/%25/%3f", "/a%2Fb/%25/%3F"],
    ["/a%c3%a4", "/a%C3%A4"],
    ["/a?b=%61", "/a?b=%61"],
    // What the router would take for the end of the path.
    ["/api/me;b=1", "/api/me%3Bb=1"],
    ["/api/me#b", "/api/me"],
    ["/api/me?a=1#b?c", "/api/me?a=1"],
    // As a proxy is asked.
    ["http://kept.example/api/me?a", "/api/me?a"],
    ["HTTPS://kept.example", "/"],
    // What names no path, and what is not well encoded.
    ["*", "*"],
    ["/a%zz%4", "/a%zz%4"]
  ])("%s is %s", (written, form) => {
    expect(oneForm(written)).toBe(form)
    expect(oneForm(form)).toBe(form)
  })
})
