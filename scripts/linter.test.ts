/**
 * Proves that the linter's configuration complains where the house depends on it.
 *
 * A linter that read nothing passes too, so bad files are laid into a folder of
 * their own and each must be answered with the rule that stands against it.
 */
import { spawnSync } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const root = join(import.meta.dirname, "..")
const folder = mkdtempSync(join(tmpdir(), "tropism-linter-"))
const stage = "packages/server/src/runs"

const badFiles: Readonly<Record<string, string>> = {
  [`${stage}/a.ts`]: 'import type { B } from "./b.ts"\nexport interface A {\n  readonly b: B\n}\n',
  [`${stage}/b.ts`]: 'import type { A } from "./a.ts"\nexport interface B {\n  readonly a: A\n}\n',
  [`${stage}/async.ts`]: "export const f = async () => 1\n",
  [`${stage}/clock.ts`]: "export const at = Date.now()\n",
  [`${stage}/chance.ts`]: "export const draw = Math.random()\n",
  [`${stage}/environment.ts`]: 'export const key = process.env["KEY"]\n',
  [`${stage}/timer.ts`]: "export const wait = (f: () => void) => setTimeout(f, 5)\n",
  [`${stage}/any.ts`]: "export const f = (x: any) => x\n",
  [`${stage}/default.ts`]: "export default 1\n",
  [`${stage}/barrel.ts`]: 'export * from "./clock.ts"\n',
  "packages/server/src/main.ts": "export const f = async () => Date.now()\n"
}

let complaints: ReadonlyArray<string> = []

beforeAll(() => {
  for (const [path, text] of Object.entries(badFiles)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  for (const name of [".oxlintrc.json", "tsconfig.json"]) copyFileSync(join(root, name), join(folder, name))
  const answer = spawnSync(join(root, "node_modules/.bin/oxlint"), ["-f", "unix", "packages"], {
    cwd: folder,
    encoding: "utf8"
  })
  complaints = `${answer.stdout}${answer.stderr}`.split("\n")
})

afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
})

const against = (file: string): ReadonlyArray<string> =>
  complaints
    .filter((line) => line.startsWith(`${stage}/${file}.ts:`))
    .map((line) => /\[\w+\/[\w@-]*\(?([\w-]+)\)?\]/.exec(line)?.[1] ?? line)

describe("the linter", () => {
  it.each([
    ["a", "no-cycle"],
    ["b", "no-cycle"],
    ["async", "no-async-await"],
    ["clock", "no-restricted-properties"],
    ["chance", "no-restricted-properties"],
    ["environment", "no-process-env"],
    ["timer", "no-restricted-globals"],
    ["any", "no-explicit-any"],
    ["default", "no-default-export"],
    ["barrel", "no-barrel-file"]
  ])("complains about %s.ts by %s", (file, rule) => {
    expect(against(file)).toContain(rule)
  })

  it("lets the entry point speak to the runtime", () => {
    expect(complaints.filter((line) => line.startsWith("packages/server/src/main.ts:"))).toEqual([])
  })
})
