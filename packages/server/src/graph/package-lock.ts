/**
 * Reads a package-lock.json as a graph: packages, and who depends on whom.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Pure: the same text gives the same graph, in the same order. A file is read
 * whole or refused whole, with the places that are wrong. What is written to
 * the graph is planned by `planImport` and not here.
 */
import {
  findPropertiesFault,
  isJsonObject,
  pointerStep,
  type Properties,
  textFault
} from "@tropism/domain/json"
import { keyTwice, scanJson } from "@tropism/domain/json-text"
import { Effect, Schema } from "effect"
import { graphLimits } from "../limits.ts"
import { findSyntaxFault } from "./json-syntax.ts"
import { licenseOf, sourceOf, withoutSecrets } from "./package-facts.ts"
import { countDependencies, type LockDependency, resolveDependencies } from "./package-lock-dependencies.ts"
import {
  type Entry,
  Faults,
  isInstalled,
  type LockFile,
  moduleFolder,
  readEntries
} from "./package-lock-entries.ts"

/** One installed copy of a package, or one folder of the project. */
export interface LockPackage {
  readonly key: string
  readonly properties: Properties
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

/** Reads lockfileVersion 2 and 3; `nameless` is the name of the project where the file says none, since two without a name would be one to the graph. */
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
  // Whatever else the scan minds (depth, large numbers) is in fields that are not read here.
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

/** Judges the outermost level. */
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
