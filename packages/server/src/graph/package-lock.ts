/**
 * Reads a package-lock.json as a graph: packages, and who depends on whom.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Pure: the same text gives the same graph, in the same order. A file is read
 * whole or refused whole, with the places that are wrong. Dependencies are
 * resolved as Node resolves them, from the folder of a package upwards, so an
 * edge leads to the very copy that would be loaded. What is written to the
 * graph is planned by `planImport` and not here.
 */
import { ObjectKey } from "@tropism/domain/graph"
import {
  findPropertiesFault,
  isJsonObject,
  type JsonFault,
  pointerStep,
  type Properties,
  textFault
} from "@tropism/domain/json"
import { Effect, Schema } from "effect"
import { graphLimits } from "../limits.ts"
import { findSyntaxFault } from "./json-syntax.ts"
import { isOutside, licenseOf, sourceOf, withoutSecrets } from "./package-facts.ts"

export type DependencyKind = "dependency" | "optional" | "peer" | "dev"

/** One installed copy of a package, or one folder of the project. */
export interface LockPackage {
  readonly key: string
  readonly properties: Properties
}

export interface LockDependency {
  readonly fromKey: string
  readonly toKey: string
  readonly properties: { readonly kind: DependencyKind; readonly range: string }
}

export interface LockGraph {
  readonly name: string
  /** In the order of their keys. */
  readonly packages: ReadonlyArray<LockPackage>
  /** In the order of their ends; at most one from one package to another. */
  readonly dependencies: ReadonlyArray<LockDependency>
}

/** The file is no lockfile that can be read; `faults` are the first of `total`. */
export class InvalidLockfile extends Schema.TaggedError<InvalidLockfile>()("InvalidLockfile", {
  faults: Schema.Array(Schema.Struct({ pointer: Schema.String, message: Schema.String })),
  total: Schema.Int
}) {
  override get message(): string {
    const more = this.total - this.faults.length
    const lines = this.faults.map(({ pointer, message }) =>
      pointer === "" ? message : `${message} (at ${pointer})`
    )
    return [...lines, ...(more > 0 ? [`… and ${more} more`] : [])].join("\n")
  }
}

/** Reads lockfileVersion 2 and 3. */
export const readPackageLock = Effect.fn("readPackageLock")(function* (
  text: string
): Effect.fn.Return<LockGraph, InvalidLockfile> {
  if (text.length > graphLimits.lockfileMaxChars)
    return yield* invalid(`The file has more than ${graphLimits.lockfileMaxChars} characters`)
  const json = text.startsWith("\ufeff") ? text.slice(1) : text
  const root = yield* decodeJson(json).pipe(Effect.catch(() => invalid(syntaxMessage(json))))
  const file = yield* checkFile(root)
  const faults = new Faults()
  const installed = readEntries(file, faults)
  if (installed.edges > graphLimits.lockfileDependencies) {
    return yield* invalid(
      `The file has more than ${graphLimits.lockfileDependencies} dependencies`,
      "/packages"
    )
  }
  const packages = installed.entries.map(({ path, key, entry }): LockPackage => ({
    key,
    properties: propertiesOf(file, path, entry, faults)
  }))
  const dependencies = resolveDependencies(installed, faults)
  if (faults.total > 0) return yield* new InvalidLockfile({ faults: faults.first, total: faults.total })
  return { name: file.name, packages, dependencies }
})

const decodeJson = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Unknown))

const invalid = (message: string, pointer = "") =>
  Effect.fail(new InvalidLockfile({ faults: [{ pointer, message }], total: 1 }))

const syntaxMessage = (text: string): string => {
  const place = findSyntaxFault(text)
  if (!place) return "The file is not JSON"
  const where = `The file is not JSON: line ${place.line}, column ${place.column}`
  if (place.excerpt === "") return `${where} breaks off`
  const isConflict = /^(<{7}|={7}|>{7})/.test(place.excerpt)
  return `${where} reads ${place.excerpt}${isConflict ? "; resolve the merge conflict first" : ""}`
}

/** All faults are counted, the first of them kept. */
class Faults {
  readonly first: Array<JsonFault> = []
  total = 0
  add(fault: JsonFault): void {
    if (this.first.length < graphLimits.lockfileFaultsShown) this.first.push(fault)
    this.total += 1
  }
}

type Entry = Readonly<Record<string, Schema.Json>>

interface LockFile {
  readonly name: string
  readonly packages: Entry
  readonly hasWorkspaces: boolean
}

/** Judges the outermost level. */
const checkFile = Effect.fnUntraced(function* (root: unknown): Effect.fn.Return<LockFile, InvalidLockfile> {
  if (!isJsonObject(root)) return yield* invalid("The file is not a JSON object")
  const { lockfileVersion, packages } = root
  if (lockfileVersion === 1) return yield* invalid(versionOneMessage, "/lockfileVersion")
  if (lockfileVersion !== 2 && lockfileVersion !== 3) {
    return yield* invalid(
      "The file is no package-lock.json: its lockfileVersion is neither 2 nor 3",
      "/lockfileVersion"
    )
  }
  if (!isJsonObject(packages))
    return yield* invalid("The file is no package-lock.json: it has no object `packages`", "/packages")
  if (Object.keys(packages).length > graphLimits.lockfilePackages) {
    return yield* invalid(`The file has more than ${graphLimits.lockfilePackages} packages`, "/packages")
  }
  const own = isJsonObject(packages[""]) ? packages[""] : {}
  const name =
    [own.name, root.name].filter((each) => typeof each === "string").find((each) => each !== "") ??
    "package-lock"
  const fault = textFault(name)
  if (fault !== undefined) return yield* invalid(fault, "/name")
  return { name, packages, hasWorkspaces: (own.workspaces ?? null) !== null }
})

const versionOneMessage =
  "lockfileVersion 1 does not say where packages are installed. Run `npm install --package-lock-only --lockfile-version 3` and import the new file"

/** An entry of `packages` that is an object of the graph. */
interface InstalledEntry {
  readonly path: string
  readonly key: string
  readonly entry: Entry
}

interface Installed {
  /** In the order of their keys. */
  readonly entries: ReadonlyArray<InstalledEntry>
  /** By folder that has a `node_modules`, then by the name it is installed under: the key of what is loaded. */
  readonly folders: ReadonlyMap<string, ReadonlyMap<string, string>>
  readonly edges: number
}

const moduleFolder = "node_modules/"

const readEntries = (file: LockFile, faults: Faults): Installed => {
  const paths = new Map(Object.entries(file.packages))
  const entries = new Map<string, InstalledEntry>()
  const keys = new Set<string>()
  let edges = 0
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
      entries.set(path, { path, key, entry })
      for (const { section } of sections)
        if (isJsonObject(entry[section])) edges += Object.keys(entry[section]).length
    }
  }
  return {
    entries: [...entries.values()].sort((a, b) => order(a.key, b.key)),
    folders: foldersOf(paths, entries),
    edges
  }
}

const isObjectKey = Schema.is(ObjectKey)

/** Gathers what each `node_modules` holds; a link stands for its target. */
const foldersOf = (
  paths: ReadonlyMap<string, Schema.Json>,
  entries: ReadonlyMap<string, InstalledEntry>
): Installed["folders"] => {
  const folders = new Map<string, Map<string, string>>()
  for (const [path, entry] of paths) {
    const target = isLink(entry) ? entry.resolved : path
    const key = typeof target === "string" ? entries.get(target)?.key : undefined
    if (key === undefined || !isInstalled(path)) continue
    const at = path.lastIndexOf(moduleFolder)
    const folder = path.slice(0, Math.max(0, at - 1))
    const names = folders.get(folder) ?? new Map<string, string>()
    folders.set(folder, names.set(path.slice(at + moduleFolder.length), key))
  }
  return folders
}

/** Whether a path is that of an installed package and not of a folder of the project. */
const isInstalled = (path: string): boolean =>
  path.startsWith(moduleFolder) || path.includes(`/${moduleFolder}`)

/** The project's name and the path; a folder that bears the name of an installed package is told apart from it. */
const keyOf = (name: string, path: string, paths: ReadonlyMap<string, Schema.Json>): string => {
  if (path === "") return name
  if (path.startsWith(moduleFolder)) return `${name}/${path.slice(moduleFolder.length)}`
  const namesake = paths.get(moduleFolder + path)
  return namesake === undefined || isLink(namesake) ? `${name}/${path}` : `${name}/./${path}`
}

const isLink = (entry: Schema.Json): entry is Entry => isJsonObject(entry) && entry.link === true

/** By code units, so that no machine's language has a say. */
const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const flags = ["hasInstallScript", "dev", "optional", "devOptional", "peer"] as const

/** What becomes of one entry: known fields of the right kind, and what is derived of them. */
const propertiesOf = (file: LockFile, path: string, entry: Entry, faults: Faults): Properties => {
  const pointer = `/packages${pointerStep(path)}`
  for (const field of ["name", "version"]) {
    if ((entry[field] ?? null) !== null && typeof entry[field] !== "string")
      faults.add({ pointer: `${pointer}/${field}`, message: `${field} must be text` })
  }
  const resolved = typeof entry.resolved === "string" ? entry.resolved : undefined
  const source = sourceOf({
    path,
    resolved,
    isInstalled: isInstalled(path),
    hasWorkspaces: file.hasWorkspaces
  })
  const properties: Properties = {
    name: path === "" ? file.name : nameOf(path, entry),
    path,
    lockfile: file.name,
    source,
    ...(typeof entry.version === "string" ? { version: entry.version } : {}),
    ...(resolved !== undefined && (source === "git" || source === "url")
      ? { resolved: withoutSecrets(resolved) }
      : {}),
    ...present("license", licenseOf(entry.license)),
    ...present(
      "deprecated",
      typeof entry.deprecated === "string" && entry.deprecated !== "" ? entry.deprecated : undefined
    ),
    ...present("engines", enginesOf(entry.engines)),
    ...Object.fromEntries(flags.filter((flag) => entry[flag] === true).map((flag) => [flag, true]))
  }
  const fault = findPropertiesFault(properties)
  if (fault)
    faults.add({
      pointer: pointer + fault.pointer.slice("/properties".length).replace(/^\/path$/, ""),
      message: fault.message
    })
  return properties
}

const present = (field: string, value: Schema.Json | undefined): Properties =>
  value === undefined ? {} : { [field]: value }

const nameOf = (path: string, entry: Entry): string => {
  if (typeof entry.name === "string" && entry.name !== "") return entry.name
  const at = path.lastIndexOf(moduleFolder)
  return at === -1 ? path.slice(path.lastIndexOf("/") + 1) : path.slice(at + moduleFolder.length)
}

/** Old packages wrote a list here; what is no text says nothing about an engine. */
const enginesOf = (engines: Schema.Json | undefined): Schema.Json | undefined => {
  if (Array.isArray(engines)) return engines.filter((each) => typeof each === "string")
  if (!isJsonObject(engines)) return undefined
  const known = Object.entries(engines).filter(([, range]) => typeof range === "string")
  return known.length === 0 ? undefined : Object.fromEntries(known)
}

/** Where dependencies stand in an entry; of two kinds between the same packages the earlier wins. */
const sections: ReadonlyArray<{ readonly section: string; readonly kind: DependencyKind }> = [
  { section: "dependencies", kind: "dependency" },
  { section: "optionalDependencies", kind: "optional" },
  { section: "peerDependencies", kind: "peer" },
  { section: "devDependencies", kind: "dev" }
]

const resolveDependencies = (
  { entries, folders }: Installed,
  faults: Faults
): ReadonlyArray<LockDependency> => {
  const dependencies: Array<LockDependency> = []
  for (const { path, key: fromKey, entry } of entries) {
    const reachable = foldersAbove(path).flatMap((folder) => folders.get(folder) ?? [])
    const found = new Map<string, LockDependency>()
    for (const { section, kind } of sections) {
      if (kind === "dev" && isInstalled(path)) continue
      const pointer = `/packages${pointerStep(path)}/${section}`
      for (const [name, range] of readRanges(entry[section], pointer, faults)) {
        const toKey = reachable.find((names) => names.has(name))?.get(name)
        if (toKey !== undefined && !found.has(toKey))
          found.set(toKey, { fromKey, toKey, properties: { kind, range: withoutSecrets(range) } })
      }
    }
    dependencies.push(...[...found.values()].sort((a, b) => order(a.toKey, b.toKey)))
  }
  return dependencies
}

const readRanges = (
  section: Schema.Json | undefined,
  pointer: string,
  faults: Faults
): ReadonlyArray<readonly [string, string]> => {
  if ((section ?? null) === null) return []
  if (!isJsonObject(section)) {
    faults.add({ pointer, message: "Dependencies must be an object of names and version ranges" })
    return []
  }
  return Object.entries(section).flatMap(([name, range]) => {
    const message = typeof range === "string" ? textFault(range) : "A version range must be text"
    if (message !== undefined) faults.add({ pointer: pointer + pointerStep(name), message })
    return typeof range === "string" ? [[name, range] as const] : []
  })
}

/** The folders in which Node looks for `node_modules`, from a package's own upwards; one outside the project never reaches it. */
const foldersAbove = (path: string): ReadonlyArray<string> => {
  const folders = [path]
  for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1))
    folders.push(path.slice(0, at))
  return path === "" || isOutside(path) ? folders : [...folders, ""]
}
