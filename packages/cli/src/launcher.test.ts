/**
 * `bin/tropism.mjs` as npm runs it: with Node, from any folder, with or without install scripts.
 */
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { pathToFileURL } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { until } from "../testing/invoke.ts"
import { launch, launcher } from "../testing/launch.ts"

const end = (file: string, ...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const started = yield* launch(file, args)
    yield* until(() => started.code() !== undefined)
    return { code: started.code(), out: started.out(), error: started.error() }
  })

/** An installed `tropism` with a program of its own, and Bun where the given function puts it. */
const installed = (program: string, placeBun: (modules: string, bun: string) => void) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = realpathSync(mkdtempSync(join(tmpdir(), "tropism-launcher-")))
      const own = join(folder, "node_modules", "tropism")
      mkdirSync(join(own, "bin"), { recursive: true })
      mkdirSync(join(own, "src"))
      copyFileSync(launcher, join(own, "bin", "tropism.mjs"))
      writeFileSync(join(own, "src", "main.ts"), program)
      placeBun(join(folder, "node_modules"), process.execPath)
      return { folder, file: join(own, "bin", "tropism.mjs") }
    }),
    ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )

const placePackage = (modules: string, name: string, file: string, place: (target: string) => void) => {
  mkdirSync(dirname(join(modules, name, file)), { recursive: true })
  writeFileSync(join(modules, name, "package.json"), "{}")
  place(join(modules, name, file))
}

const linked = (modules: string, bun: string) =>
  placePackage(modules, "bun", "bin/bun.exe", (target) => symlinkSync(bun, target))

/** As `npm ci --ignore-scripts` leaves it: a placeholder that fails, and the program in the platform's package. */
const unlinked = (modules: string, bun: string) => {
  placePackage(modules, "bun", "bin/bun.exe", (target) =>
    writeFileSync(target, "#!/bin/sh\nexit 1\n", { mode: 0o755 })
  )
  const arch = process.arch === "arm64" ? "aarch64" : process.arch
  placePackage(modules, `@oven/bun-${process.platform}-${arch}`, "bin/bun", (target) =>
    symlinkSync(bun, target)
  )
}

const stopping =
  'process.on("SIGTERM", () => { console.log("stopping"); process.exit(5) }); console.log("up"); setInterval(() => {}, 1000)'

/** A module that lets Node stand still where it has started a program, as on a busy machine, until a file is there. */
const standingStillBehindSpawn = (goOn: string) => `
import processes from "node:child_process"
import { existsSync } from "node:fs"
import { syncBuiltinESMExports } from "node:module"
const { spawn } = processes
processes.spawn = (...given) => {
  const child = spawn(...given)
  while (!existsSync(${JSON.stringify(goOn)})) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
  return child
}
syncBuiltinESMExports()
`

describe("the launcher", () => {
  it.live("starts the command line from any folder", () =>
    Effect.gen(function* () {
      expect(yield* end(launcher, "--version")).toEqual({ code: 0, out: "tropism v0.1.0\n", error: "" })
    })
  )

  it.live("ends with the command's exit code and one sentence on standard error", () =>
    Effect.gen(function* () {
      const usage = yield* end(launcher, "tasks", "approve")
      expect(usage).toEqual({
        code: 2,
        out: "",
        error: expect.stringMatching(/^tropism: [^\n]*\btask\b[^\n]*"tropism tasks approve --help"[^\n]*\n$/)
      })
      const failure = yield* end(launcher, "tasks")
      expect(failure.code).toBe(1)
      expect(failure.error).toMatch(/^tropism: [^\n]*\bTROPISM_TOKEN\b[^\n]*\n$/)
    })
  )

  it.live("finds Bun where its install script did not run", () =>
    Effect.gen(function* () {
      const { file } = yield* installed(
        "console.log(JSON.stringify(process.argv.slice(2))); process.exit(7)",
        unlinked
      )
      expect(yield* end(file, "a b", "--c=d")).toEqual({ code: 7, out: '["a b","--c=d"]\n', error: "" })
    })
  )

  it.live("says what to do where there is no Bun", () =>
    Effect.gen(function* () {
      const { file } = yield* installed("", () => undefined)
      expect(yield* end(file)).toEqual({
        code: 1,
        out: "",
        error: expect.stringMatching(/^tropism: [^\n]*\bBun\b[^\n]*"npm ci"[^\n]*\n$/)
      })
    })
  )

  it.live("passes signals on and waits for the program to end", () =>
    Effect.gen(function* () {
      const { file } = yield* installed(stopping, linked)
      const started = yield* launch(file, [])
      yield* until(() => started.out().includes("up"))
      started.process.kill("SIGTERM")
      yield* until(() => started.code() !== undefined)
      expect({ code: started.code(), out: started.out() }).toEqual({ code: 5, out: "up\nstopping\n" })
    })
  )

  it.live("passes on a signal that comes before it has gone on behind the program's start", () =>
    Effect.gen(function* () {
      const { folder, file } = yield* installed(stopping, linked)
      const slow = join(folder, "slow.mjs")
      writeFileSync(slow, standingStillBehindSpawn(join(folder, "go on")))
      const started = yield* launch(file, [], { NODE_OPTIONS: `--import=${pathToFileURL(slow).href}` })
      yield* until(() => started.out().includes("up"))
      started.process.kill("SIGTERM")
      writeFileSync(join(folder, "go on"), "")
      yield* until(() => started.code() !== undefined)
      expect({ code: started.code(), out: started.out() }).toEqual({ code: 5, out: "up\nstopping\n" })
    })
  )

  it.live("leaves no program behind when it is killed", () =>
    Effect.gen(function* () {
      const program =
        'void Bun.file(Number(process.env.TROPISM_LAUNCHER_FD)).stream().pipeTo(new WritableStream()).then(() => { console.log("alone"); process.exit(0) }); console.log("up"); setInterval(() => {}, 1000)'
      const { file } = yield* installed(program, linked)
      const started = yield* launch(file, [])
      yield* until(() => started.out().includes("up"))
      started.process.kill("SIGKILL")
      yield* until(() => started.out().includes("alone"))
    })
  )
})
