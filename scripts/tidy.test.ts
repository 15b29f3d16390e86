/**
 * Holds the checkout to the rules of `tidy-rules.ts`, and fails when it looked at less than there is.
 *
 * The files are found by walking the folders and compared with what git lists:
 * a rule that silently saw half of the code would be worse than none.
 */
import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { SourceFile } from "./source-text.ts"
import { findUnusedFaces } from "./staircase.ts"
import { rules } from "./tidy-rules.ts"

const root = join(import.meta.dirname, "..")
const unread = new Set(["node_modules", ".git", "dist", ".tropism"])
const isText = (path: string): boolean =>
  /\.(ts|tsx|mts|js|mjs|css|sql|md|json|jsonc|ya?ml|sh|html)$|^\.ci\//.test(path)

const walk = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder)).flatMap((name) => {
    const path = folder === "" ? name : `${folder}/${name}`
    if (unread.has(name)) return []
    return statSync(join(root, path)).isDirectory() ? walk(path) : [path]
  })

const gitLists = (): ReadonlyArray<string> => {
  const answer = spawnSync("git", ["-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8"
  })
  if (answer.status !== 0)
    throw new Error(`git could not list the files: ${answer.stderr}${answer.error?.message ?? ""}`)
  return answer.stdout.split("\0").filter((path) => path !== "" && existsSync(join(root, path)))
}

const listed = gitLists()
const listedSet = new Set(listed)
const files: ReadonlyArray<SourceFile> = walk("")
  .filter((path) => isText(path) && listedSet.has(path))
  .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }))

describe("the checkout", () => {
  it("was read whole: every text file that git lists", () => {
    const read = new Set(files.map((file) => file.path))
    expect(listed.filter((path) => isText(path) && !read.has(path))).toEqual([])
    expect(read.size).toBeGreaterThan(40)
    for (const name of ["domain", "api", "server"]) {
      expect(files.some((file) => file.path.startsWith(`packages/${name}/src/`))).toBe(true)
    }
  })

  it("lists as public only what another module imports", () => {
    expect(findUnusedFaces(files).map(({ message }) => message)).toEqual([])
  })

  for (const [name, rule] of Object.entries(rules)) {
    it(`${name}: ${rule.sentence}`, () => {
      const complaints = rule.find(files).map(({ path, line, message }) => `${path}:${line} ${message}`)
      expect(complaints).toEqual([])
    })
  }
})
