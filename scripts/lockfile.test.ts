/**
 * The lockfile is whole: `npm ci` refuses one that leaves a dependency out.
 *
 * An install can leave out the builds of a tool for other platforms when it
 * could not ask for them; such a file still works for the one who wrote it and
 * for nobody who begins with a clean clone.
 */
import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"

interface Entry {
  readonly link?: boolean
  readonly dependencies?: Record<string, string>
  readonly optionalDependencies?: Record<string, string>
}

/** Names whose entry cannot be found from a path upward, as npm looks for them. */
const findMissing = (packages: Readonly<Record<string, Entry>>): ReadonlyArray<string> =>
  Object.entries(packages).flatMap(([path, entry]) =>
    Object.keys({ ...entry.dependencies, ...entry.optionalDependencies }).filter(
      (name) => !foldersAbove(path).some((folder) => Object.hasOwn(packages, `${folder}node_modules/${name}`))
    )
  )

const foldersAbove = (path: string): ReadonlyArray<string> => {
  const parts = path === "" ? [] : path.split("/node_modules/")
  const inside = parts.map((_, index) => `${parts.slice(0, index + 1).join("/node_modules/")}/`)
  return ["", ...inside]
}

describe("package-lock.json", () => {
  it.each(["package-lock.json", "bench/package-lock.json"])(
    "%s has an entry for every dependency that it names",
    (path) => {
      const lock = JSON.parse(readFileSync(new URL(`../${path}`, import.meta.url), "utf8"))
      expect(Object.keys(lock.packages).length).toBeGreaterThan(100)
      expect(findMissing(lock.packages)).toEqual([])
    }
  )

  it("is found wanting when the build of a tool for another platform was left out", () => {
    const packages = {
      "": { dependencies: { tool: "1" } },
      "node_modules/tool": { optionalDependencies: { "tool-linux": "1", "tool-darwin": "1" } },
      "node_modules/tool/node_modules/tool-linux": {}
    }
    expect(findMissing(packages)).toEqual(["tool-darwin"])
  })
})
