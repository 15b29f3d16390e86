/**
 * A server in a process of its own, on a new data folder that goes with it.
 *
 * The bench speaks to it as anybody would, through HTTP. Beside that it looks at
 * the server's rows with a login of the owner, because a question through HTTP
 * at each look would be load, and it reads from the operating system how much
 * processor time the server and its PostgreSQL took.
 */
import { rmSync } from "node:fs"
import { mkdtemp, readdir, readFile, chmod } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { adminRole } from "@tropism/server/database/embedded-cluster"
import { localUrl, ownerRole, serverRole } from "@tropism/server/database/postgres-access"
import { databaseName } from "@tropism/server/database/schema"
import { Redacted } from "effect"

export interface ServerProcess {
  readonly url: string
  /** Everything in it goes when the server stops, unless the folder was given. */
  readonly dataFolder: string
  readonly token: string
  readonly ownerUrl: Redacted.Redacted<string>
  readonly serverUrl: Redacted.Redacted<string>
  /** The superuser's login, for databases of others beside the server's own. */
  readonly adminUrl: Redacted.Redacted<string>
  /** Processor milliseconds so far: of the server, and of PostgreSQL. */
  readonly cpuMs: () => Promise<{ readonly server: number; readonly postgres: number }>
  /** Bytes that the server's heap holds, after what nobody needs is gone. */
  readonly heapBytes: () => Promise<number>
  /** Bytes of the machine's memory that the server takes. */
  readonly residentBytes: () => Promise<number>
  /** Files, sockets and pipes that the server has open. */
  readonly handles: () => Promise<number>
  readonly stop: () => Promise<void>
}

const token = "a-token-for-the-bench"

/** What a time-out, a terminal that closes and a person at one send to a run. */
const stops = ["SIGTERM", "SIGINT", "SIGHUP"] as const

/** A data folder of the bench's own, which goes with the folder that it is made in. */
export const newDataFolder = async (inside: string): Promise<string> => {
  const dataFolder = await mkdtemp(join(inside, "tropism-bench-"))
  await chmod(dataFolder, 0o711)
  return dataFolder
}

/** What is told to stop it: by its end, by whoever asks, or by a signal to the bench. */
interface Launched {
  readonly pid: number
  readonly url: string
  readonly nextLine: () => Promise<string>
  /** Asks its heap to be told. */
  readonly ask: () => void
  readonly stop: () => Promise<void>
}

/** Starts a program that serves, which `remove` cleans up behind. */
const launch = async (
  environment: Readonly<Record<string, string>>,
  hear: ((line: string) => void) | undefined,
  remove: () => void
): Promise<Launched> => {
  const flags = (process.env["BENCH_BUN_FLAGS"] ?? "").split(" ").filter((flag) => flag !== "")
  const child = Bun.spawn([process.execPath, ...flags, join(import.meta.dirname, "serve.ts")], {
    // Requests are counted as everywhere, and none is refused.
    env: {
      ...process.env,
      HOST: "127.0.0.1",
      PORT: "0",
      TROPISM_TOKEN: token,
      TROPISM_RATE_LIMIT: "1000000",
      ...environment
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: hear === undefined ? "inherit" : "pipe"
  })
  if (hear !== undefined && child.stderr !== undefined) void hearAll(child.stderr, hear)
  // What was at work when somebody stopped the bench may end it before the folder is gone.
  process.on("exit", remove)
  const end = async () => {
    try {
      child.kill("SIGTERM")
      await child.exited
      remove()
      process.off("exit", remove)
    } finally {
      for (const signal of stops) process.off(signal, leave)
    }
  }
  let ending: Promise<void> | undefined
  // Signals are heard until the folder is gone: one may come while the server ends, or twice.
  const stop = () => (ending ??= end())
  // Whoever is stopped leaves neither a server nor its folder behind.
  const leave = (signal: NodeJS.Signals): void => void stop().finally(() => process.kill(process.pid, signal))
  for (const signal of stops) process.on(signal, leave)
  const nextLine = linesOf(child.stdout)
  const line = await nextLine().catch(async (error: unknown) => {
    await stop()
    throw error
  })
  return { pid: child.pid, url: JSON.parse(line).url, nextLine, ask: () => child.kill("SIGUSR2"), stop }
}

/** Starts a server of a cluster on a database that is there, with a key that all of them have. */
export const startClusterProcess = (
  databaseUrl: Redacted.Redacted<string>,
  clusterAddress: string
): Promise<Pick<Launched, "url" | "stop">> =>
  launch(
    {
      DATABASE_URL: Redacted.value(databaseUrl),
      TROPISM_CLUSTER_ADDRESS: clusterAddress,
      TROPISM_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString("base64")
    },
    undefined,
    () => undefined
  )

/**
 * Starts a server on an empty database; `BENCH_BUN_FLAGS` reach its Bun, for profiles.
 *
 * **Details** `hear` is told each line of its log, beside standard error. A folder that is given stays when the server
 * stops; without one the server has a new folder, which goes with it.
 */
export const startServerProcess = async (
  environment: Readonly<Record<string, string>> = {},
  hear?: (line: string) => void,
  folder?: string
): Promise<ServerProcess> => {
  const dataFolder = folder ?? (await newDataFolder(tmpdir()))
  const remove = (): void => {
    if (folder === undefined) rmSync(dataFolder, { recursive: true, force: true })
  }
  const { ask, nextLine, pid, stop, url } = await launch(
    { TROPISM_DATA: dataFolder, ...environment },
    hear,
    remove
  )
  const record = JSON.parse(await readFile(join(dataFolder, "database.json"), "utf8"))
  const login = (role: string, password: string) =>
    localUrl({ role, password, port: record.port, database: databaseName })
  const cluster = record.cluster.startsWith("/") ? record.cluster : join(dataFolder, record.cluster)
  const postmaster = Number((await readFile(join(cluster, "postmaster.pid"), "utf8")).split("\n", 1)[0])
  return {
    url,
    dataFolder,
    token,
    ownerUrl: login(ownerRole, record.passwords.owner),
    serverUrl: login(serverRole, record.passwords.server),
    adminUrl: login(adminRole, record.passwords.admin),
    cpuMs: async () => ({ server: (await cpuOf(pid)).ms, postgres: await cpuOfFamily(postmaster) }),
    heapBytes: async () => {
      ask()
      return JSON.parse(await nextLine()).heapBytes
    },
    residentBytes: async () => {
      const status = await readFile(`/proc/${pid}/status`, "utf8")
      return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1_024
    },
    handles: async () => (await readdir(`/proc/${pid}/fd`)).length,
    stop
  }
}

/** Reads a stream line by line. */
const linesOf = (stream: ReadableStream<Uint8Array>): (() => Promise<string>) => {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let text = ""
  return async () => {
    while (!text.includes("\n")) {
      const { done, value } = await reader.read()
      if (done) throw new Error("The server ended before it had answered")
      text += decoder.decode(value, { stream: true })
    }
    const [line = "", ...rest] = text.split("\n")
    text = rest.join("\n")
    return line
  }
}

/** Tells each line of a log until it ends. */
const hearAll = async (log: ReadableStream<Uint8Array>, hear: (line: string) => void): Promise<void> => {
  const nextLine = linesOf(log)
  for (;;) {
    const line = await nextLine().catch(() => undefined)
    if (line === undefined) return
    console.error(line)
    hear(line)
  }
}

/** Linux counts in hundredths of a second. */
const msPerTick = 10

const cpuOf = async (pid: number) => {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "")
  // The name stands in brackets and may hold anything; what follows is numbers.
  const fields = text
    .slice(text.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number)
  const [, parent = 0] = fields
  const [user = 0, system = 0, usersOfEnded = 0, systemsOfEnded = 0] = fields.slice(11)
  return { parent, ms: (user + system) * msPerTick, endedMs: (usersOfEnded + systemsOfEnded) * msPerTick }
}

/** What PostgreSQL's processes have used, with those that have ended: connections come and go between two looks. */
const cpuOfFamily = async (postmaster: number): Promise<number> => {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number)
  const processes = await Promise.all(pids.map(cpuOf))
  const own = await cpuOf(postmaster)
  const alive = processes.filter(({ parent }) => parent === postmaster)
  return alive.reduce((sum, { ms }) => sum + ms, own.ms + own.endedMs)
}
