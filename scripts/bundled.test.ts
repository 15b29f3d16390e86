/**
 * What a workspace is made of: found as npm finds it, through links and folders of its own.
 */
import { describe, expect, it } from "vitest"
import { bundledPackages, type LockEntries } from "./bundled.ts"

const packages: LockEntries = {
  "": { devDependencies: { linter: "1" } },
  "packages/cli": { devDependencies: { "@house/server": "1", yaml: "2" } },
  "packages/server": { dependencies: { effect: "4" }, optionalDependencies: { postgres: "18" } },
  "node_modules/@house/server": { link: true, resolved: "packages/server" },
  "node_modules/effect": { dependencies: { yaml: "1" } },
  "node_modules/effect/node_modules/yaml": { version: "1" },
  "node_modules/yaml": { version: "2" },
  "node_modules/postgres": {},
  "node_modules/linter": {}
}

describe("bundledPackages", () => {
  it("follows workspaces and takes the nearest of two versions", () => {
    expect(bundledPackages(packages, "packages/server")).toEqual([
      "node_modules/effect",
      "node_modules/effect/node_modules/yaml",
      "node_modules/postgres"
    ])
    expect(bundledPackages(packages, "packages/cli")).toContain("node_modules/yaml")
    expect(bundledPackages(packages, "packages/cli")).not.toContain("node_modules/linter")
  })

  it("stops at what is left out", () => {
    expect(bundledPackages(packages, "packages/cli", ["@house/server"])).toEqual(["node_modules/yaml"])
  })
})
