/**
 * Who depends on whom: the copy of a package that Node would load.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * From the folder of a package upwards, the first `node_modules` that has the
 * name decides. What is not installed has no edge.
 */
import { isJsonObject, pointerStep, textFault } from "@tropism/domain/json"
import { graphLimits } from "../limits.ts"
import { isOutside, withoutSecrets } from "./package-facts.ts"
import {
  type Faults,
  type InstalledEntry,
  isInstalled,
  isLink,
  type LockFile,
  moduleFolder,
  order
} from "./package-lock-entries.ts"

export type DependencyKind = "dependency" | "optional" | "peer" | "dev"

export interface LockDependency {
  readonly fromKey: string
  readonly toKey: string
  readonly properties: { readonly kind: DependencyKind; readonly range: string }
}

/** Where dependencies stand in an entry; of two kinds between the same packages the earlier wins. */
const sections: ReadonlyArray<{ readonly section: string; readonly kind: DependencyKind }> = [
  { section: "dependencies", kind: "dependency" },
  { section: "optionalDependencies", kind: "optional" },
  { section: "peerDependencies", kind: "peer" },
  { section: "devDependencies", kind: "dev" }
]

/** How many dependencies the entries name, installed or not. */
export const countDependencies = (entries: ReadonlyArray<InstalledEntry>): number => {
  let count = 0
  for (const { entry } of entries)
    for (const { section } of sections)
      if (isJsonObject(entry[section])) count += Object.keys(entry[section]).length
  return count
}

/** Leads each dependency to what is installed, in the order of the ends; at most one from one package to another, and none to itself. */
export const resolveDependencies = (
  file: LockFile,
  entries: ReadonlyArray<InstalledEntry>,
  faults: Faults
): ReadonlyArray<LockDependency> => {
  const folders = foldersOf(file, entries)
  const dependencies: Array<LockDependency> = []
  for (const from of entries) {
    const reachable = foldersAbove(from.path).flatMap((folder) => folders.get(folder) ?? [])
    const found = new Map<string, LockDependency>()
    for (const { kind, name, range } of requirementsOf(from, faults)) {
      const toKey = reachable.find((names) => names.has(name))?.get(name)
      if (toKey === undefined || toKey === from.key || found.has(toKey)) continue
      found.set(toKey, { fromKey: from.key, toKey, properties: { kind, range: withoutSecrets(range) } })
    }
    for (const dependency of [...found.values()].sort((a, b) => order(a.toKey, b.toKey)))
      dependencies.push(dependency)
  }
  return dependencies
}

interface Requirement {
  readonly kind: DependencyKind
  readonly name: string
  readonly range: string
}

/** What one package asks for, the strongest kind first; an installed package's own development does not count. */
const requirementsOf = ({ path, entry }: InstalledEntry, faults: Faults): ReadonlyArray<Requirement> =>
  sections.flatMap(({ section, kind }) => {
    const ranges = entry[section] ?? null
    if (ranges === null || (kind === "dev" && isInstalled(path))) return []
    const pointer = `/packages${pointerStep(path)}/${section}`
    if (!isJsonObject(ranges)) {
      faults.add({ pointer, message: "Dependencies must be an object of names and version ranges" })
      return []
    }
    return Object.entries(ranges).flatMap(([name, range]) => {
      const message = typeof range === "string" ? rangeFault(range) : "A version range must be text"
      if (message !== undefined) faults.add({ pointer: pointer + pointerStep(name), message })
      return typeof range === "string" ? [{ kind, name, range }] : []
    })
  })

const rangeFault = (range: string): string | undefined =>
  range.length > graphLimits.lockfileRangeMaxChars
    ? `A version range must have at most ${graphLimits.lockfileRangeMaxChars} characters`
    : textFault(range)

/** The folders in which Node looks for `node_modules`, from a package's own upwards; one outside the project never reaches it. */
const foldersAbove = (path: string): ReadonlyArray<string> => {
  const folders = [path]
  for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1))
    folders.push(path.slice(0, at))
  return path === "" || isOutside(path) ? folders : [...folders, ""]
}

/** What each `node_modules` holds: by its folder, then by name, the key of what is loaded. A link stands for its target. */
const foldersOf = (
  file: LockFile,
  entries: ReadonlyArray<InstalledEntry>
): ReadonlyMap<string, ReadonlyMap<string, string>> => {
  const keys = new Map(entries.map(({ path, key }) => [path, key]))
  const folders = new Map<string, Map<string, string>>()
  for (const [path, entry] of Object.entries(file.packages)) {
    const target = isLink(entry) ? entry.resolved : path
    const key = typeof target === "string" ? keys.get(target) : undefined
    if (key === undefined || !isInstalled(path)) continue
    const at = path.lastIndexOf(moduleFolder)
    const folder = path.slice(0, Math.max(0, at - 1))
    const names = folders.get(folder) ?? new Map<string, string>()
    folders.set(folder, names.set(path.slice(at + moduleFolder.length), key))
  }
  return folders
}
