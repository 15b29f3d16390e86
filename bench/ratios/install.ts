/**
 * Installs the peers where they are missing: `npm ci` in `bench`, a package of its own that nobody else installs.
 */
import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { join } from "node:path"

const benchFolder = join(import.meta.dirname, "..")

const versionOf = async (name: string): Promise<string | undefined> => {
  const file = join(benchFolder, "node_modules", name, "package.json")
  return existsSync(file) ? JSON.parse(await readFile(file, "utf8")).version : undefined
}

/** The peers that are not installed in the version that `bench/package.json` names. */
const missingPeers = async (): Promise<ReadonlyArray<string>> => {
  const { dependencies } = JSON.parse(await readFile(join(benchFolder, "package.json"), "utf8"))
  const named = Object.entries(dependencies)
  const found = await Promise.all(named.map(([name]) => versionOf(name)))
  return named.filter(([, version], index) => found[index] !== version).map(([name]) => name)
}

/** Makes sure that all peers are there, and says so when it has to install them. */
export const installPeers = async (tell: (line: string) => void): Promise<void> => {
  const missing = await missingPeers()
  if (missing.length === 0) return
  tell(
    `Installing ${missing.length} peers into bench/node_modules (npm ci --prefix bench): ${missing.join(", ")}`
  )
  const npm = Bun.spawn(["npm", "ci", "--prefix", benchFolder], { stdout: "inherit", stderr: "inherit" })
  if ((await npm.exited) !== 0)
    throw new Error(
      "The peers could not be installed: look at what npm says above, or measure without them by npm run bench"
    )
}
