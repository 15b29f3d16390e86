/**
 * A bundle does what the program does that it was made of, or it is not made.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it, onTestFinished } from "vitest"

/** Runs Bun, and answers how it ended and what it said. */
const bun = (...args: ReadonlyArray<string>) => {
  const { status, stderr, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" })
  return { status, said: stdout + stderr }
}

const bundled = (text: string) => {
  const folder = mkdtempSync(join(tmpdir(), "tropism-bundle-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, "main.ts"), text)
  const program = join(folder, "dist/main.js")
  const made = bun(join(import.meta.dirname, "pack-bundle.ts"), join(folder, "main.ts"), join(folder, "dist"))
  return { made, program }
}

it("has what a package hands on of the modules that Bun brings itself", () => {
  const { made, program } = bundled(`
    import * as NodeWS from ${JSON.stringify(Bun.resolveSync("@effect/platform-node/NodeWS", import.meta.dirname))}
    console.log(new NodeWS.WebSocketServer({ noServer: true }) instanceof NodeWS.WebSocketServer)`)
  expect(made).toMatchObject({ status: 0 })
  expect(bun(program)).toEqual({ status: 0, said: "true\n" })
})

it("is refused where it uses a name that nothing defines, and says which", () => {
  const { made } = bundled("if (process.argv.length > 9) console.log(exports_Lost.name)")
  expect(made).toEqual({ status: 1, said: expect.stringContaining("'exports_Lost' is not defined") })
})
