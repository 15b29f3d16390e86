#!/usr/bin/env node
/**
 * Starts the command line on Bun, whatever Node runs this.
 *
 * npm runs this file with the machine's Node; the program itself needs Bun,
 * which is a dependency. It hands over arguments, signals and the exit code,
 * and adds nothing. Plain Node 20: it has to run before anything else can.
 */
import { spawn } from "node:child_process"
import { existsSync, statSync } from "node:fs"
import { createRequire } from "node:module"
import { constants } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const folder = dirname(dirname(fileURLToPath(import.meta.url)))

/** The sources in a checkout, else what the package has of them. */
const main = [join(folder, "src", "main.ts"), join(folder, "dist", "main.js")].find(existsSync)

/** Without its install script, `bun` holds a placeholder of a few hundred bytes that only fails. */
const leastProgramBytes = 1_000_000

const isProgram = (file) => existsSync(file) && statSync(file).size > leastProgramBytes

const packageFolder = (name) => {
  try {
    return dirname(createRequire(import.meta.url).resolve(`${name}/package.json`))
  } catch {
    return undefined
  }
}

/** The program of the package `bun`, else that of the package for this platform which its install script would have linked. */
const findBun = () => {
  if (process.versions.bun) return process.execPath
  const arch = process.arch === "arm64" ? "aarch64" : process.arch
  const platform = process.platform === "win32" ? "windows" : process.platform
  const candidates = [
    ["bun", "bin/bun.exe"],
    ["bun", "bin/bun"],
    ...["", "-musl", "-baseline", "-musl-baseline"].flatMap((variant) =>
      ["bin/bun", "bin/bun.exe"].map((file) => [`@oven/bun-${platform}-${arch}${variant}`, file])
    )
  ]
  for (const [name, file] of candidates) {
    const folder = packageFolder(name)
    if (folder && isProgram(join(folder, file))) return join(folder, file)
  }
  return undefined
}

const bun = findBun()
if (!main || !bun) {
  process.stderr.write('tropism: Bun is not installed. Run "npm ci" in the folder of the program.\n')
  process.exit(1)
}

// From before there is a program: one that has begun may be heard before this process goes on, and a signal in that
// moment would end this process instead of being passed on. Node calls a listener only when what stands here is through.
for (const signal of ["SIGTERM", "SIGHUP", "SIGQUIT"]) process.on(signal, () => child.kill(signal))

// Ctrl-C reaches the program from its terminal already, and npm tells this process of it once more: what is
// passed on comes by another way, so that however late it comes it is never taken for another press of the key.
process.on("SIGINT", () => child.stdio[3]?.write("SIGINT\n"))

// The fourth stream says only that an interrupt is passed on. It closes when this process dies,
// however it dies, so that the program behind it never stays as an orphan on the port.
const child = spawn(bun, [main, ...process.argv.slice(2)], {
  stdio: ["inherit", "inherit", "inherit", "pipe"],
  // Bun keeps all requests beyond 256 waiting, whoever they go to: models that never answer would hold up all others.
  env: { BUN_CONFIG_MAX_HTTP_REQUESTS: "65336", ...process.env, TROPISM_LAUNCHER_FD: "3" }
})
child.stdio[3]?.on("error", () => {})

child.on("error", (error) => {
  process.stderr.write(`tropism: ${bun} cannot be started: ${error.message}\n`)
  process.exit(1)
})

child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code ?? 1)
  process.exit(128 + (constants.signals[signal] ?? 0))
})
