/**
 * Which packages of the lockfile a workspace is made of, through everything that they need.
 *
 * It is what npm would look up from the workspace's folder. Nothing is read but
 * the entries that are given.
 */

export interface LockEntry {
  readonly version?: string
  readonly license?: string
  /** The folder of a workspace, where `link` is so. */
  readonly resolved?: string
  readonly link?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

export type LockEntries = Readonly<Record<string, LockEntry>>

/** Where npm finds `name` from the package at `path`: in its own folder, else in one above. */
export const findEntry = (packages: LockEntries, path: string, name: string): string | undefined =>
  foldersAbove(path)
    .map((folder) => `${folder}node_modules/${name}`)
    .find((place) => Object.hasOwn(packages, place))

const foldersAbove = (path: string): ReadonlyArray<string> => {
  const parts = path === "" ? [] : path.split("/node_modules/")
  const inside = parts.map((_, index) => `${parts.slice(0, index + 1).join("/node_modules/")}/`)
  return [...inside.toReversed(), ""]
}

/**
 * The places of all packages from elsewhere that the workspace in `folder` leads to, sorted.
 *
 * **Details** What a workspace names for its development counts as well: it may be in the bundle. `without` is not followed.
 */
export const bundledPackages = (
  packages: LockEntries,
  folder: string,
  without: ReadonlyArray<string> = []
): ReadonlyArray<string> => {
  const seen = new Set([folder])
  const waiting = [folder]
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const { dependencies, devDependencies, optionalDependencies } = packages[path] ?? {}
    for (const name of Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies })) {
      const found = without.includes(name) ? undefined : findEntry(packages, path, name)
      if (found === undefined) continue
      const entry = packages[found]
      const place = entry?.link === true ? (entry.resolved ?? found) : found
      if (seen.has(place)) continue
      seen.add(place)
      waiting.push(place)
    }
  }
  return [...seen].filter((place) => place.includes("node_modules/")).toSorted()
}
