/**
 * Reads a package-lock.json as a graph of packages and their dependencies.
 *
 * Pure: the same text gives the same graph in the same order. A file is accepted or refused as a whole, with the places
 * of its faults. `planImport` plans the writes.
 */
import { ObjectKey } from "@tropism/domain/graph"
import {
  findPropertiesFault,
  isJsonObject,
  pointerStep,
  type Properties,
  textFault,
  type JsonFault
} from "@tropism/domain/json"
import { keyTwice, scanJson } from "@tropism/domain/json-text"
import { Effect, Schema } from "effect"
import { graphLimits } from "../../limits.ts"
import { findSyntaxFault } from "./json-syntax.ts"

/** One installed copy of a package, or one folder of the project. */
export interface LockPackage {
  readonly key: string
  readonly properties: Properties
}

export interface LockGraph {
  readonly name: string
  /** Sorted by key. */
  readonly packages: ReadonlyArray<LockPackage>
  /** Sorted by their ends; at most one from one package to another. */
  readonly dependencies: ReadonlyArray<LockDependency>
}

/** The file is not a readable lockfile; `faults` are the first of `total`. */
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

/** Reads lockfileVersion 2 and 3. `nameless` names a project whose file has no name: two unnamed projects would be one in the graph. */
export const readPackageLock = Effect.fn("readPackageLock")(function* (
  text: string,
  nameless?: string
): Effect.fn.Return<LockGraph, InvalidLockfile> {
  if (text.length > graphLimits.lockfileMaxChars)
    return yield* invalid(`The file has more than ${graphLimits.lockfileMaxChars} characters`)
  const json = text.startsWith("\ufeff") ? text.slice(1) : text
  const root = yield* decodeJson(json).pipe(Effect.catch(() => invalid(syntaxMessage(json))))
  const file = yield* checkFile(root, nameless)
  const faults = new Faults()
  const entries = readEntries(file, faults)
  if (countDependencies(entries) > graphLimits.lockfileDependencies) {
    return yield* invalid(
      `The file has more than ${graphLimits.lockfileDependencies} dependencies`,
      "/packages"
    )
  }
  // Other faults of the scan (depth, large numbers) are in fields that are not read here.
  const dropped = scanJson(json, graphLimits.lockfileDependencies)
  if (dropped?.message === keyTwice) return yield* invalid(dropped.message, dropped.pointer)
  const packages = entries.map(({ path, key, entry }): LockPackage => ({
    key,
    properties: propertiesOf(file, path, entry, faults)
  }))
  const dependencies = resolveDependencies(file, entries, faults)
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

/** Checks the outermost level. */
const checkFile = Effect.fnUntraced(function* (
  root: unknown,
  nameless: string | undefined
): Effect.fn.Return<LockFile, InvalidLockfile> {
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
  const names = [
    { pointer: "/packages//name", name: own.name },
    { pointer: "/name", name: root.name }
  ].flatMap(({ pointer, name }) => (typeof name === "string" && name !== "" ? [{ pointer, name }] : []))
  for (const { pointer, name } of [...names, { pointer: "name", name: nameless ?? "" }]) {
    const fault = textFault(name)
    if (fault !== undefined) return yield* invalid(fault, pointer)
  }
  const name = names[0]?.name ?? nameless
  if (name === undefined)
    return yield* invalid(
      "The file does not say the name of its project: write it there, or give it beside the file (?name=)",
      "name"
    )
  return { name, packages, hasWorkspaces: (own.workspaces ?? null) !== null }
})

const versionOneMessage =
  "lockfileVersion 1 does not say where packages are installed. Run `npm install --package-lock-only --lockfile-version 3` and import the new file"

const flags = ["hasInstallScript", "dev", "optional", "devOptional", "peer"] as const

/** Returns the properties of one entry: known fields of the right kind, and values derived from them. */
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

/** Old packages wrote a list here; values that are not text are ignored. */
const enginesOf = (engines: Schema.Json | undefined): Schema.Json | undefined => {
  if (Array.isArray(engines)) return engines.filter((each) => typeof each === "string")
  if (!isJsonObject(engines)) return undefined
  const known = Object.entries(engines).filter(([, range]) => typeof range === "string")
  return known.length === 0 ? undefined : Object.fromEntries(known)
}

// Resolves dependencies to the copy of a package that Node would load.
//
// From the package's folder upwards, the first `node_modules` that has the name decides. A package that is not installed gets
// no edge.

export type DependencyKind = "dependency" | "optional" | "peer" | "dev"

export interface LockDependency {
  readonly fromKey: string
  readonly toKey: string
  readonly properties: { readonly kind: DependencyKind; readonly range: string }
}

/** The dependency sections of an entry; of two kinds between the same packages the earlier wins. */
const sections: ReadonlyArray<{ readonly section: string; readonly kind: DependencyKind }> = [
  { section: "dependencies", kind: "dependency" },
  { section: "optionalDependencies", kind: "optional" },
  { section: "peerDependencies", kind: "peer" },
  { section: "devDependencies", kind: "dev" }
]

/** Counts the dependencies that the entries name, installed or not. */
const countDependencies = (entries: ReadonlyArray<InstalledEntry>): number => {
  let count = 0
  for (const { entry } of entries)
    for (const { section } of sections)
      if (isJsonObject(entry[section])) count += Object.keys(entry[section]).length
  return count
}

/** Resolves each dependency to an installed package, sorted by ends; at most one per pair of packages, none to itself. */
const resolveDependencies = (
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

/** Returns the requirements of one package, strongest kind first; without the dev dependencies of installed packages. */
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

/** Returns the folders in which Node looks for `node_modules`; a folder outside the project never reaches the project's. */
const foldersAbove = (path: string): ReadonlyArray<string> => {
  const folders = [path]
  for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1))
    folders.push(path.slice(0, at))
  return path === "" || isOutside(path) ? folders : [...folders, ""]
}

/** Maps each `node_modules` folder to its names and the keys of the packages loaded for them. A link counts as its target. */
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

// The entries of a lockfile that become objects, each with its key.
//
// Names and paths are foreign text (`__proto__` among them), so they are keys of maps and never of objects.

/** The outermost level of a lockfile. */
interface LockFile {
  readonly name: string
  readonly packages: Entry
  readonly hasWorkspaces: boolean
}

/** Counts all faults and keeps the first ones. */
class Faults {
  readonly first: Array<JsonFault> = []
  total = 0
  add(fault: JsonFault): void {
    if (this.first.length < graphLimits.lockfileFaultsShown) this.first.push(fault)
    this.total += 1
  }
}

type Entry = Readonly<Record<string, Schema.Json>>

/** An entry of `packages` that becomes an object of the graph. */
interface InstalledEntry {
  readonly path: string
  readonly key: string
  readonly entry: Entry
}

const moduleFolder = "node_modules/"

/** Returns the entries that become objects, sorted by key; a link does not. */
const readEntries = (file: LockFile, faults: Faults): ReadonlyArray<InstalledEntry> => {
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

/** Whether a path is an installed package and not a folder of the project. */
const isInstalled = (path: string): boolean =>
  path.startsWith(moduleFolder) || path.includes(`/${moduleFolder}`)

/** Returns the project's name and the path; marks a folder whose name equals an installed package's. */
const keyOf = (name: string, path: string, paths: ReadonlyMap<string, Schema.Json>): string => {
  if (path === "") return name
  if (path.startsWith(moduleFolder)) return `${name}/${path.slice(moduleFolder.length)}`
  const namesake = paths.get(moduleFolder + path)
  return namesake === undefined || isLink(namesake) ? `${name}/${path}` : `${name}/./${path}`
}

const isLink = (entry: Schema.Json): entry is Entry => isJsonObject(entry) && entry.link === true

/** Compares by code units, independent of the machine's locale. */
export const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

// Derives a package's source and licence from its lockfile entry.
//
// Addresses lose their passwords, tokens and queries before they enter the graph. The text is foreign, so every step is linear
// in its length.

/** Where a package comes from. */
export type PackageSource = "root" | "workspace" | "registry" | "git" | "file" | "url"

export interface Origin {
  readonly path: string
  readonly resolved: string | undefined
  /** Under a `node_modules`, and not a folder of the project. */
  readonly isInstalled: boolean
  readonly hasWorkspaces: boolean
}

/** Classifies a package's source; without an address it is the registry. */
const sourceOf = ({ path, resolved, isInstalled, hasWorkspaces }: Origin): PackageSource => {
  if (path === "") return "root"
  if (!isInstalled) return hasWorkspaces && !isOutside(path) ? "workspace" : "file"
  if (resolved === undefined) return "registry"
  if (gitAddress.test(resolved) || (resolved.split("#", 1)[0] ?? "").endsWith(".git")) return "git"
  if (!/^https?:\/\//.test(resolved)) return "file"
  return isRegistryTarball(resolved) ? "registry" : "url"
}

/** Whether a folder is outside the project. */
const isOutside = (path: string): boolean => path === ".." || path.startsWith("../")

const gitAddress = /^(?:git[+:@]|ssh:|github:|gitlab:|bitbucket:|gist:)/

/** Registries serve `…/name/-/name-1.0.0.tgz`; GitHub's has its own form. */
const isRegistryTarball = (address: string): boolean => {
  const path = address.split(/[?#]/, 1)[0] ?? ""
  return (path.includes("/-/") && path.endsWith(".tgz")) || path.startsWith("https://npm.pkg.github.com/")
}

/** Removes password, token and query from an address; returns any other text unchanged. */
export const withoutSecrets = (address: string): string => {
  const start = address.indexOf("://")
  if (start === -1) return address
  const scheme = address.slice(0, start)
  const rest = address.slice(start + 3)
  const authorityEnd = firstOf(rest, "/?#")
  const authority = rest.slice(0, authorityEnd)
  const at = authority.lastIndexOf("@")
  // Every SSH key logs in as "git@"; elsewhere the user may itself be a token.
  const user = scheme.endsWith("ssh") && at !== -1 ? `${authority.slice(0, at).split(":", 1)[0]}@` : ""
  const path = rest.slice(authorityEnd)
  const query = path.indexOf("?")
  const hash = path.indexOf("#")
  const kept =
    query === -1 || (hash !== -1 && hash < query)
      ? path
      : path.slice(0, query) + (hash === -1 ? "" : path.slice(hash))
  return `${scheme}://${user}${authority.slice(at + 1)}${kept}`
}

/** Returns the first position of any of the characters, or the text's length. */
const firstOf = (text: string, characters: string): number => {
  const places = [...characters].map((character) => text.indexOf(character)).filter((place) => place !== -1)
  return Math.min(text.length, ...places)
}

/** Returns the licence as text: an SPDX expression, or the `{type}` or list of old packages. */
export const licenseOf = (license: Schema.Json | undefined): string | undefined => {
  const names = new Set(
    (Array.isArray(license) ? license : [license]).map(licenseName).filter((name) => name !== undefined)
  )
  return names.size > 1 ? `(${[...names].join(" OR ")})` : [...names][0]
}

const licenseName = (license: Schema.Json | undefined): string | undefined => {
  const candidates = isJsonObject(license) ? [license.type, license.name] : [license]
  return candidates.filter((name) => typeof name === "string").find((name) => name.trim() !== "")
}
