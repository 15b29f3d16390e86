/**
 * Where a package comes from, under which licence, and with no secret told.
 */
import { describe, expect, it } from "@effect/vitest"
import type { Schema } from "effect"
import { propertiesOf, read } from "../../../testing/lockfiles.ts"
import { licenseOf, withoutSecrets } from "./package-lock.ts"

describe("licenseOf", () => {
  it.each<[Schema.Json, Schema.Json | undefined]>([
    ["MIT", "MIT"],
    ["(MIT OR Apache-2.0)", "(MIT OR Apache-2.0)"],
    ["SEE LICENSE IN LICENSE.md", "SEE LICENSE IN LICENSE.md"],
    [{ type: "MIT", url: "https://example.org" }, "MIT"],
    [[{ type: "MIT" }, { type: "Apache-2.0" }], "(MIT OR Apache-2.0)"],
    [["MIT"], "MIT"],
    [["MIT", "MIT"], "MIT"],
    ["", undefined],
    ["  ", undefined],
    [null, undefined],
    [[["MIT"]], undefined],
    [[], undefined],
    [{}, undefined],
    [{ type: 1 }, undefined],
    [7, undefined]
  ])("%j is %j", (license, text) => {
    expect(licenseOf(license)).toBe(text)
  })
})

describe("sources", () => {
  it.each<[path: string, resolved: Schema.Json | undefined, source: string, kept: string | undefined]>([
    ["node_modules/a", undefined, "registry", undefined],
    ["node_modules/a", "https://registry.npmjs.org/a/-/a-1.0.0.tgz", "registry", undefined],
    [
      "node_modules/a",
      "https://npm.example.org/api/npm/all/@s/a/-/a-1.0.0.tgz?cache=1",
      "registry",
      undefined
    ],
    ["node_modules/a", "https://npm.pkg.github.com/download/@s/a/1.0.0/0123", "registry", undefined],
    [
      "node_modules/a",
      "git+ssh://git@github.com/s/a.git#0123",
      "git",
      "git+ssh://git@github.com/s/a.git#0123"
    ],
    [
      "node_modules/a",
      "git+https://token@github.com/s/a.git#0123",
      "git",
      "git+https://github.com/s/a.git#0123"
    ],
    [
      "node_modules/a",
      "git+ssh://me:secret@example.org/a.git#v1?x",
      "git",
      "git+ssh://me@example.org/a.git#v1?x"
    ],
    ["node_modules/a", "https://example.org/a.git", "git", "https://example.org/a.git"],
    [
      "node_modules/a",
      "https://me:secret@example.org/a.tgz?token=secret#x",
      "url",
      "https://example.org/a.tgz#x"
    ],
    ["node_modules/a", "https://example.org/a.tgz?token=secret", "url", "https://example.org/a.tgz"],
    ["node_modules/a", "file:../a-1.0.0.tgz", "file", undefined],
    ["packages/a", undefined, "workspace", undefined],
    ["../a", undefined, "file", undefined]
  ])("%s from %j is %s", (path, resolved, source, kept) => {
    const { packages } = read({
      "": { workspaces: ["packages/*"] },
      [path]: resolved === undefined ? {} : { resolved }
    })
    expect(packages.find((each) => each.properties.path === path)?.properties).toMatchObject({
      source,
      ...(kept === undefined ? {} : { resolved: kept })
    })
    expect(packages.filter((each) => "resolved" in each.properties)).toHaveLength(kept === undefined ? 0 : 1)
  })

  it("a folder is a file dependency where the project has no workspaces", () => {
    expect(
      propertiesOf(
        read({
          "": { dependencies: { a: "file:libs/a" } },
          "libs/a": {},
          "node_modules/a": { resolved: "libs/a", link: true }
        }),
        "shop/libs/a"
      )?.source
    ).toBe("file")
  })
})

describe("withoutSecrets", () => {
  it.each([
    ["^1.0.0 || >=2 <3", "^1.0.0 || >=2 <3"],
    ["npm:other@^1.0.0", "npm:other@^1.0.0"],
    ["git@github.com:s/a.git", "git@github.com:s/a.git"],
    ["https://token@example.org", "https://example.org"],
    ["https://a:b@c:d@example.org/x@y", "https://example.org/x@y"],
    ["git://me:secret@example.org/a.git", "git://example.org/a.git"],
    ["ssh://git@example.org:22/a.git", "ssh://git@example.org:22/a.git"],
    ["https://example.org?a=b", "https://example.org"],
    ["https://example.org/#a?b", "https://example.org/#a?b"]
  ])("of %j is %j", (address, plain) => {
    expect(withoutSecrets(address)).toBe(plain)
  })
})
