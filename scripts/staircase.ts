/**
 * The staircase: which file may import from which.
 *
 * Every stage of an event's journey is a folder of the server, and a file
 * imports from its own folder and from folders further down the stairs, never
 * up. `stairs` is the one place that says the order. Tests may import
 * anything, and so may `testing/`, `stories/` and `simulation/`: they stand
 * outside the house and look in.
 */
import type { Complaint, SourceFile } from "./source-text.ts"
import { importsOf } from "./source-text.ts"

/** The folders of `packages/server/src` from the top to the bottom. */
export const stairs: ReadonlyArray<string> = [
  "main",
  "start-checks",
  "settings",
  "platform",
  "cluster",
  "mcp",
  "http",
  "chat",
  "dispatch",
  "run",
  "tool",
  "task",
  "graph",
  "outbox",
  "database"
]

/** A narrow flight beside `graph`: it leads down to `outbox` and `database` and knows neither tool nor run. */
export const besideGraph: ReadonlyArray<string> = ["agent", "model"]

/** The ground that every stair stands on: the bounds and the seams for tests. It knows no stair. */
export const ground: ReadonlyArray<string> = ["limits", "ids", "crash-point", "telemetry"]

/** Which packages of the workspace a package may import. */
const mayUse: Readonly<Record<string, ReadonlyArray<string>>> = {
  domain: [],
  api: ["domain"],
  server: ["domain", "api"],
  client: ["domain", "api"],
  cli: ["domain", "api", "client"],
  console: ["domain", "api", "client"]
}

/** Whether a stair may import from another. */
export const mayImport = (from: string, to: string): boolean => {
  if (from === to || ground.includes(to)) return true
  if (ground.includes(from)) return false
  const fromBeside = besideGraph.indexOf(from)
  const toBeside = besideGraph.indexOf(to)
  if (fromBeside !== -1) return to === "outbox" || to === "database" || toBeside > fromBeside
  if (toBeside !== -1) return heightOf(from) < heightOf("graph")
  return heightOf(from) < heightOf(to)
}

/** Complains of every import that leads up the stairs, across a wall or out of the house. */
export const findClimbs = (files: ReadonlyArray<SourceFile>): ReadonlyArray<Complaint> =>
  files.filter((file) => /^packages\/[^/]+\/src\/.*\.(ts|tsx|mts|mjs)$/.test(file.path)).flatMap(complaintsOf)

const complaintsOf = (file: SourceFile): ReadonlyArray<Complaint> => {
  const [, packageName = ""] = file.path.split("/")
  const isTest = /\.test\.tsx?$/.test(file.path)
  const stair = packageName === "server" ? stairOf(file.path) : undefined
  const found: Array<Complaint> = []
  if (packageName === "server" && stair !== undefined && !isStair(stair)) {
    found.push({
      path: file.path,
      line: 1,
      message: `"${stair}" is no stair of the server; put the file into a stage's folder or add the stair`
    })
  }
  if (isTest) return found
  for (const { specifier, line } of importsOf(file.text)) {
    const reason = specifier.startsWith(".")
      ? relativeFault(file.path, packageName, stair, specifier)
      : packageFault(file.path, packageName, specifier)
    if (reason !== undefined) found.push({ path: file.path, line, message: reason })
  }
  return found
}

const relativeFault = (
  path: string,
  packageName: string,
  stair: string | undefined,
  specifier: string
): string | undefined => {
  const target = resolve(path, specifier)
  if (!target.startsWith(`packages/${packageName}/src/`)) {
    return isAsset(target, packageName)
      ? undefined
      : `imports ${specifier}, which lies outside its own package's src`
  }
  if (stair === undefined || !isStair(stair)) return undefined
  const to = stairOf(target)
  return mayImport(stair, to) ? undefined : `${stair} imports from ${to}: the stairs lead down only`
}

/** What a package ships beside its source, such as the demo's definitions, is text and not code. */
const isAsset = (target: string, packageName: string): boolean =>
  target.startsWith(`packages/${packageName}/`) && /\.(json|ya?ml|css|svg|sql|txt)$/.test(target)

const packageFault = (path: string, packageName: string, specifier: string): string | undefined => {
  const other =
    /^@tropism\/([^/]+)\/?/.exec(specifier)?.[1] ?? (/^tropism(\/|$)/.test(specifier) ? "cli" : undefined)
  if (other !== undefined) {
    if (other === packageName) return `imports its own package by name (${specifier}); use a relative path`
    // What a start would use is looked at, and its database brought up to date, in the same process.
    const opensServer =
      packageName === "cli" &&
      other === "server" &&
      /\/(?:start|migrate)(\.tsx?$|\/)|\/src\/doctor\//.test(path)
    return opensServer || mayUse[packageName]?.includes(other) === true
      ? undefined
      : `${packageName} must not import ${specifier}`
  }
  if (packageName === "domain" && !/^effect(\/[A-Z][A-Za-z]*)?$/.test(specifier)) {
    return `domain imports only effect's root modules, not ${specifier}`
  }
  if (packageName === "api" && !/^effect(\/|$)/.test(specifier))
    return `api imports only domain and effect, not ${specifier}`
  return undefined
}

/** `packages/server/src/run/runs.ts` stands on `run`, `packages/server/src/main.ts` on `main`. */
const stairOf = (path: string): string => (path.split("/")[3] ?? "").replace(/(\.test)?\.[a-z]+$/, "")

const isStair = (name: string): boolean =>
  ground.includes(name) || besideGraph.includes(name) || heightOf(name) !== -1

const heightOf = (name: string): number => stairs.indexOf(name)

const resolve = (from: string, specifier: string): string => {
  const parts = from.split("/").slice(0, -1)
  for (const step of specifier.replace(/\?.*$/, "").split("/")) {
    if (step === "..") parts.pop()
    else if (step !== ".") parts.push(step)
  }
  return parts.join("/")
}
