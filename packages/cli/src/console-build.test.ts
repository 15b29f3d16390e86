/**
 * When the console is built, and that a failed or broken-off build leaves nothing half-made.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem, Path } from "effect"
import { buildConsole, isConsoleStale } from "./console-build.ts"

/** A workspace with a console and a `vite` that does what its script says. */
const workspace = (vite: string) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const root = yield* files.makeTempDirectoryScoped()
    const write = (file: string, text: string, modified?: Date) =>
      Effect.gen(function* () {
        yield* files.makeDirectory(path.dirname(path.join(root, file)), { recursive: true })
        yield* files.writeFileString(path.join(root, file), text)
        if (modified) yield* files.utimes(path.join(root, file), modified, modified)
      })
    yield* write("console/index.html", "", new Date(1_000))
    yield* write("console/src/main.tsx", "", new Date(1_000))
    yield* write("domain/src/deep/run.ts", "", new Date(1_000))
    yield* write("console/node_modules/vite/package.json", "{}")
    yield* write("console/node_modules/vite/bin/vite.js", vite)
    const checkout = {
      cliFolder: path.join(root, "cli"),
      consoleFolder: path.join(root, "console"),
      demoFolder: "",
      lockfile: ""
    }
    return {
      files,
      checkout,
      write,
      entries: files.readDirectory(path.join(root, "console")),
      read: (file: string) => files.readFileString(path.join(root, file)),
      remove: (file: string) => files.remove(path.join(root, file))
    }
  })

const builds = `
const { mkdirSync, writeFileSync } = require("node:fs")
const folder = process.argv[process.argv.indexOf("--outDir") + 1]
mkdirSync(folder, { recursive: true })
writeFileSync(folder + "/index.html", "built")
`

describe("isConsoleStale", () => {
  it.live("is so without a build, and when any source of any package in it is newer", () =>
    Effect.gen(function* () {
      const { checkout, write } = yield* workspace(builds)
      expect(yield* isConsoleStale(checkout)).toBe(true)
      yield* write("console/dist/index.html", "", new Date(2_000))
      expect(yield* isConsoleStale(checkout)).toBe(false)
      yield* write("domain/src/deep/run.ts", "", new Date(3_000))
      expect(yield* isConsoleStale(checkout)).toBe(true)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("is never so where there are no sources", () =>
    Effect.gen(function* () {
      const { checkout, remove } = yield* workspace(builds)
      yield* remove("console/index.html")
      expect(yield* isConsoleStale(checkout)).toBe(false)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("buildConsole", () => {
  it.live("puts a whole build in the place of the old one", () =>
    Effect.gen(function* () {
      const { checkout, entries, read, write } = yield* workspace(builds)
      yield* write("console/dist/old.js", "old")
      yield* buildConsole(checkout, process.execPath)
      expect(yield* read("console/dist/index.html")).toBe("built")
      expect((yield* entries).toSorted()).toEqual(["dist", "index.html", "node_modules", "src"])
      expect(yield* isConsoleStale(checkout)).toBe(false)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("keeps the old one when the build fails, and says why", () =>
    Effect.gen(function* () {
      const { checkout, entries, read, write } = yield* workspace(
        `${builds}\nconsole.error("vite says\\nerror: no such import")\nprocess.exit(1)`
      )
      yield* write("console/dist/index.html", "old")
      const failure = yield* Effect.flip(buildConsole(checkout, process.execPath))
      expect(failure.message).toBe("error: no such import")
      expect(yield* read("console/dist/index.html")).toBe("old")
      expect((yield* entries).toSorted()).toEqual(["dist", "index.html", "node_modules", "src"])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
