/**
 * The entries of a lockfile that become objects, each with its key.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Names and paths are somebody else's text, `__proto__` among them, so they are
 * keys of maps and never of objects. What an entry says of its package is read
 * in `package-lock.ts`.
 */
import { ObjectKey } from "@tropism/domain/graph"
import { isJsonObject, type JsonFault, pointerStep } from "@tropism/domain/json"
import { Schema } from "effect"
import { graphLimits } from "../limits.ts"

/** The outermost level of a lockfile. */
export interface LockFile {
  readonly name: string
  readonly packages: Entry
  readonly hasWorkspaces: boolean
}

/** All faults are counted, the first of them kept. */
export class Faults {
  readonly first: Array<JsonFault> = []
  total = 0
  add(fault: JsonFault): void {
    if (this.first.length < graphLimits.lockfileFaultsShown) this.first.push(fault)
    this.total += 1
  }
}

export type Entry = Readonly<Record<string, Schema.Json>>

/** An entry of `packages` that is an object of the graph. */
export interface InstalledEntry {
  readonly path: string
  readonly key: string
  readonly entry: Entry
}

export const moduleFolder = "node_modules/"

/** Finds the objects of a lockfile, in the order of their keys; a link is none. */
export const readEntries = (file: LockFile, faults: Faults): ReadonlyArray<InstalledEntry> => {
  const paths = new Map(Object.entries(file.packages))
  const entries: Array<InstalledEntry> = []
  const keys = new Set<string>()
  for (const [path, entry] of paths) {
    if (isLink(entry)) continue
    const pointer = `/packages${pointerStep(path)}`
    const key = keyOf(file.name, path, paths)
    if (!isJsonObject(entry)) faults.add({ pointer, message: "A package must be an object" })
    else if (!isObjectKey(key))
      faults.add({
        pointer,
        message: "A package's path and the project's name must have at most 499 characters together"
      })
    else if (keys.has(key)) faults.add({ pointer, message: `Another package has the key ${key} already` })
    else {
      keys.add(key)
      entries.push({ path, key, entry })
    }
  }
  return entries.sort((a, b) => order(a.key, b.key))
}

const isObjectKey = Schema.is(ObjectKey)

/** Whether a path is that of an installed package and not of a folder of the project. */
export const isInstalled = (path: string): boolean =>
  path.startsWith(moduleFolder) || path.includes(`/${moduleFolder}`)

/** The project's name and the path; a folder that bears the name of an installed package is told apart from it. */
const keyOf = (name: string, path: string, paths: ReadonlyMap<string, Schema.Json>): string => {
  if (path === "") return name
  if (path.startsWith(moduleFolder)) return `${name}/${path.slice(moduleFolder.length)}`
  const namesake = paths.get(moduleFolder + path)
  return namesake === undefined || isLink(namesake) ? `${name}/${path}` : `${name}/./${path}`
}

export const isLink = (entry: Schema.Json): entry is Entry => isJsonObject(entry) && entry.link === true

/** By code units, so that no machine's language has a say. */
export const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
