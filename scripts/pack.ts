/**
 * Makes the package `tropism` that a stranger installs: `npm run pack`, optionally with the folder for it.
 *
 * `npm pack` of packages/cli calls this file before it (`build`) and after it
 * (`clean`). Between the two, `dist` there holds all that the program is made
 * of, in the versions that the tests ran with: the packages of the workspace
 * and those from elsewhere in one bundle, the built console, the scripts that
 * stand in for models, the lockfile that the demo shows. What a bundle cannot
 * hold, Bun and PostgreSQL, npm installs beside it. Nothing stays behind.
 */
import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { bundledPackages, type LockEntries } from "./bundled.ts"
import { notices } from "./notices.ts"

const root = join(import.meta.dirname, "..")
const folder = join(root, "packages/cli")
const dist = join(folder, "dist")

const readJson = (file: string) => JSON.parse(readFileSync(file, "utf8"))

const run = (args: ReadonlyArray<string>, cwd: string) => {
  const { error, status } = spawnSync(process.execPath, args, {
    cwd,
    env: { ...process.env, NODE_ENV: "production" },
    stdio: ["ignore", "ignore", "inherit"]
  })
  if (error === undefined && status === 0) return
  console.error(
    `bun ${args.slice(0, 2).join(" ")} ${error ? `did not start: ${error.message}` : `ended with ${status}`}`
  )
  process.exit(1)
}

const clean = () => rmSync(dist, { recursive: true, force: true })

const bundleProgram = () =>
  run([join(root, "scripts/pack-bundle.ts"), join(folder, "src/main.ts"), dist], root)

const buildConsole = () =>
  run(
    [
      join(root, "node_modules/vite/bin/vite.js"),
      "build",
      "--outDir",
      join(dist, "console/dist"),
      "--emptyOutDir",
      "--logLevel",
      "error"
    ],
    join(root, "packages/console")
  )

/** What only builds the console is not in it. */
const buildTools = ["vite", "@vitejs/plugin-react", "@tailwindcss/vite", "@types/react", "@types/react-dom"]

const writeOrigins = (packages: LockEntries, { name, version }: { name: string; version: string }) => {
  const program = bundledPackages(packages, "packages/cli")
  const console = bundledPackages(packages, "packages/console", buildTools)
  const places = [...new Set([...program, ...console])].toSorted()
  writeFileSync(join(dist, "THIRD-PARTY-NOTICES.txt"), notices(root, packages, places))
  const direct = Object.assign(
    {},
    ...["cli", "client", "api", "domain", "server"].map((one) => packages[`packages/${one}`]?.dependencies)
  )
  const dependencies = Object.fromEntries(
    Object.entries(direct).filter(
      ([one]) => Object.hasOwn(packages, `node_modules/${one}`) && !packages[`node_modules/${one}`]?.link
    )
  )
  const entries = program.map((place) => [place, packages[place]])
  const lockfile = {
    name,
    version,
    lockfileVersion: 3,
    packages: { "": { name, version, dependencies }, ...Object.fromEntries(entries) }
  }
  writeFileSync(join(dist, "package-lock.json"), `${JSON.stringify(lockfile, null, 2)}\n`)
}

const build = () => {
  clean()
  bundleProgram()
  buildConsole()
  cpSync(join(root, "packages/server/src/models/scripts"), join(dist, "scripts"), { recursive: true })
  writeOrigins(readJson(join(root, "package-lock.json")).packages, readJson(join(folder, "package.json")))
}

/** Packs into `target` and says what came of it. */
const pack = (target: string) => {
  mkdirSync(target, { recursive: true })
  const { status, stdout } = spawnSync("npm", ["pack", "--json", "--pack-destination", target], {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"]
  })
  if (status !== 0) process.exit(1)
  // The scripts of the package speak before npm does.
  const [packed] = JSON.parse(stdout.slice(stdout.search(/^\[/m)))
  const megabytes = (bytes: number) => `${(bytes / 1_000_000).toFixed(1)} MB`
  console.log(join(target, packed.filename))
  console.log(
    `${packed.entryCount} files, ${megabytes(packed.size)} packed, ${megabytes(packed.unpackedSize)} unpacked`
  )
}

const [word] = process.argv.slice(2)
if (word === "build") build()
else if (word === "clean") clean()
else pack(resolve(word ?? "."))
