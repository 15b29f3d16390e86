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
  "reactions",
  "runs",
  "tools",
  "review",
  "graph",
  "outbox",
  "tenancy",
  "database"
]

/** A narrow flight beside `graph`: it leads down to `outbox`, `tenancy` and `database` and knows neither tools nor runs. */
export const besideGraph: ReadonlyArray<string> = ["agents", "contexts", "models"]

/** Where the flight beside `graph` leads. */
const belowGraph: ReadonlyArray<string> = ["outbox", "tenancy", "database"]

/** The ground that every stair stands on: the bounds and the seams for tests. It knows no stair. */
export const ground: ReadonlyArray<string> = ["limits", "ids", "crash-point", "telemetry"]

/**
 * The public files of each module: other modules import these and no others.
 *
 * A file that no other module imports any more leaves the list. Whoever adds one says why the module needs another door.
 */
export const faces: Readonly<Record<string, string>> = {
  agents:
    "agents authority cron-schedules definition-checks layer outside-network template todo-assistants versions",
  chat: "chat completions conversations layer limits turns",
  cluster: "absent-servers cluster layer limits peers sweeps work-poller",
  contexts: "appending attachments contexts layer passages text-deltas",
  database:
    "connection-errors data-folder database embedded-postgres export-backpressure fair-row-locks group-commit limits migrations pool postgres-access schema sealing",
  graph:
    "authority change-refused exporter gateway import/import-records import/imports import/line-importer import/package-importer import/package-lock inspector layer moments objects provenance recording relationships verification",
  http: "access authentication edge jwt layer limits listener operations-routes origins paging problems rate-limits request-validation review-routes routes runs-routes streams tenancy-routes tokens",
  mcp: "event-callbacks event-delivery layer people-tools routes",
  models:
    "ai-sdk-model built-in-scripts model-request models progress request-queue script setting-faults storable-parts tool-schemas window",
  outbox: "fair-slots layer notifier outages outbox",
  reactions:
    "backtest-reports backtests chains comparisons dispatcher explain external-events health layer manual-retries manual-triggers new-contexts releases schedules webhooks",
  review:
    "autonomy decisions layer limits questions rejections task-digest task-queries tasks todos undo undo-plan",
  runs: "admission attempt-context budgets cancellation chain-caps client-results completion-and-retry fencing kill-switches layer liveness processing-log provider-waits questions run-queries run-store run-texts run-types step-queries stopping sub-runs verifier worker",
  telemetry: "metrics tracing",
  tenancy: "dump idempotency-keys layer projects restore",
  tools:
    "arguments denials external-mcp/calls external-mcp/events external-mcp/faults external-mcp/oauth-grants external-mcp/oauth-protocol external-mcp/registry external-mcp/servers external-mcp/sign-ins graph-effects layer offered-tools person-tools principal run-tools tool-calls toolbox"
}

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
  if (fromBeside !== -1) return belowGraph.includes(to) || toBeside > fromBeside
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
  if (!mayImport(stair, to)) return `${stair} imports from ${to}: the stairs lead down only`
  return to === stair || isPublic(target) ? undefined : `imports ${target}, which is private to ${to}`
}

/** The path of a file of the server within its module. */
const nameIn = (path: string): string => path.split("/").slice(4).join("/").replace(/\.ts$/, "")

const isPublic = (path: string): boolean => {
  const listed = faces[stairOf(path)]
  return listed === undefined || nameIn(path) === "" || listed.split(" ").includes(nameIn(path))
}

/** Complains of public files that no other module imports. */
export const findUnusedFaces = (files: ReadonlyArray<SourceFile>): ReadonlyArray<Complaint> => {
  const used = new Set(
    files
      .filter(({ path }) => /^packages\/server\/src\/.*\.ts$/.test(path) && !path.endsWith(".test.ts"))
      .flatMap(({ path, text }) =>
        importsOf(text)
          .filter(({ specifier }) => specifier.startsWith("."))
          .map(({ specifier }) => resolve(path, specifier))
          .filter((target) => stairOf(target) !== stairOf(path))
          .map((target) => `${stairOf(target)}/${nameIn(target)}`)
      )
  )
  return Object.entries(faces).flatMap(([module, listed]) =>
    listed
      .split(" ")
      .filter((name) => !used.has(`${module}/${name}`))
      .map((name) => ({
        path: "scripts/staircase.ts",
        line: 1,
        message: `lists ${module}/${name} as public, but no other module imports it`
      }))
  )
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

/** `packages/server/src/runs/run-store.ts` stands on `run`, `packages/server/src/main.ts` on `main`. */
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
