/**
 * Makes the package `@tropism/client` that a stranger installs: `npm run pack:client`, optionally with the folder for it.
 *
 * It is the plain client alone: one file of JavaScript for browsers, Node and Bun
 * that needs no other package, and the types of everything that it hands out.
 * Those may lead nowhere but to each other. Nothing stays behind.
 */
import { spawnSync } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { notices } from "./notices.ts"

const root = join(import.meta.dirname, "..")
const folder = join(root, "packages/client")
const entry = "src/plain/entry.ts"

const readJson = (file: string) => JSON.parse(readFileSync(file, "utf8"))

const run = (program: string, args: ReadonlyArray<string>, cwd: string): string => {
  const { error, status, stderr, stdout } = spawnSync(program, args, { cwd, encoding: "utf8" })
  if (error === undefined && status === 0) return stdout
  throw new Error(`${program} ${args.slice(0, 2).join(" ")} failed: ${error?.message ?? stdout + stderr}`)
}

/** The program, and the packages from elsewhere of which something is in it. */
const bundle = (target: string, scratch: string): ReadonlyArray<string> => {
  const told = join(scratch, "told.json")
  run(
    process.execPath,
    [
      "build",
      join(folder, entry),
      "--target=browser",
      "--minify",
      `--outfile=${join(target, "client.js")}`,
      `--metafile=${told}`
    ],
    root
  )
  const [output] = Object.values<{ readonly inputs: object }>(readJson(told).outputs)
  const places = Object.keys(output?.inputs ?? {}).flatMap(
    (file) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []
  )
  return [...new Set(places)].toSorted()
}

/** The types that the entry leads to; one that leads out of them would be missing where they are used. */
const printTypes = (target: string, scratch: string): void => {
  const settings = join(scratch, "tsconfig.json")
  const out = join(scratch, "types")
  const compilerOptions = {
    noEmit: false,
    incremental: false,
    tsBuildInfoFile: null,
    declaration: true,
    emitDeclarationOnly: true,
    rootDir: join(root, "packages"),
    outDir: out,
    typeRoots: [join(root, "node_modules/@types")]
  }
  const extended = {
    extends: join(root, "tsconfig.json"),
    compilerOptions,
    include: [],
    files: [join(folder, entry)]
  }
  writeFileSync(settings, JSON.stringify(extended))
  run(process.execPath, [join(root, "node_modules/.bin/tsc"), "-p", settings], root)
  const printed = join(out, "client/src/plain")
  const waiting = ["entry"]
  const seen = new Set(waiting)
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const text = readFileSync(join(printed, `${name}.d.ts`), "utf8")
    for (const [, from = ""] of text.matchAll(/\b(?:from |import\()"([^"]+)"/g)) {
      const [, other] = /^\.\/([\w.-]+)\.ts$/.exec(from) ?? []
      if (other === undefined)
        throw new Error(`The types of ${name}.ts lead to ${from}, which is not in the package.`)
      if (!seen.has(other)) waiting.push(other)
      seen.add(other)
    }
    const own = join(target, "types", `${name}.d.ts`)
    mkdirSync(dirname(own), { recursive: true })
    writeFileSync(own, text.replaceAll(/(["'])(\.\/[\w.-]+)\.ts\1/g, "$1$2.js$1"))
  }
}

const manifest = () => {
  const { description, license, name, version } = readJson(join(folder, "package.json"))
  const types = `./types/entry.d.ts`
  return {
    name,
    version,
    description,
    license,
    type: "module",
    sideEffects: false,
    engines: { node: ">=20" },
    types,
    exports: { ".": { types, default: "./client.js" }, "./package.json": "./package.json" }
  }
}

const pack = (target: string, scratch: string): void => {
  const made = join(scratch, "package")
  mkdirSync(made)
  mkdirSync(target, { recursive: true })
  const { packages } = readJson(join(root, "package-lock.json"))
  const places = bundle(made, scratch)
  writeFileSync(join(made, "THIRD-PARTY-NOTICES.txt"), notices(root, packages, places))
  printTypes(made, scratch)
  copyFileSync(join(folder, "README.md"), join(made, "README.md"))
  writeFileSync(join(made, "package.json"), `${JSON.stringify(manifest(), null, 2)}\n`)
  const [packed] = JSON.parse(run("npm", ["pack", "--json", "--pack-destination", target], made))
  const kilobytes = (bytes: number) => `${Math.ceil(bytes / 1_000)} kB`
  console.log(join(target, packed.filename))
  console.log(
    `${packed.entryCount} files, ${kilobytes(packed.size)} packed, ${kilobytes(packed.unpackedSize)} unpacked`
  )
}

const scratch = mkdtempSync(join(tmpdir(), "tropism-client-"))
try {
  pack(resolve(process.argv[2] ?? "."), scratch)
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
