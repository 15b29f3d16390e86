/**
 * Holds the test files to their tiers: by their names, what they start, and how long they took.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { importsOf } from "./source-text.ts"
import { slowestFileSeconds, testTimes, tierOf } from "./tiers.ts"

const root = join(import.meta.dirname, "..")

const tests = ["packages", "scripts", "bench", "endurance", "hostile", "mutants"]
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map(
      (path) => `${folder}/${path.replaceAll("\\", "/")}`
    )
  )
  .filter((path) => /\.(?:test\.tsx?|soak\.ts)$/.test(path) && !path.includes("/node_modules/"))

/** What starts processes or several servers, stops databases, or fills one to count what a statement costs. */
const heavy =
  /\/(?:mortal-servers|real-server|two-servers|terminal-process|run-program|silent-way|operated-database|database-process|rows-read|filled-database|real-visit|simulated-for-tests)\.ts$/

describe("the first tier", () => {
  const first = tests.filter((path) => tierOf(path) === "first" && !path.endsWith(".smoke.test.ts"))

  it("starts no processes, breaks no database and opens no browser, but for one smoke test of each", () => {
    const imports = (path: string) => importsOf(readFileSync(join(root, path), "utf8"))
    expect(first.length).toBeGreaterThan(300)
    expect(first.filter((path) => imports(path).some(({ specifier }) => heavy.test(specifier)))).toEqual([])
  })

  it("has a smoke test of each kind of fault and of the console", () => {
    const smokes = tests
      .filter((path) => path.endsWith(".smoke.test.ts"))
      .map((path) => path.split("/").at(-1))
    expect(smokes.toSorted()).toEqual(
      ["console", "crash", "freeze", "outage", "seeds", "two-servers"].map((name) => `${name}.smoke.test.ts`)
    )
  })

  it(`has no file that takes over ${slowestFileSeconds} s`, () => {
    const slow = Object.entries(testTimes).filter(
      ([path, seconds]) => tierOf(path) === "first" && seconds > slowestFileSeconds
    )
    expect(slow).toEqual([])
  })
})

describe("the table of times", () => {
  it("names only files that are there", () => {
    expect(Object.keys(testTimes).length).toBeGreaterThan(100)
    expect(Object.keys(testTimes).filter((path) => !existsSync(join(root, path)))).toEqual([])
  })
})
