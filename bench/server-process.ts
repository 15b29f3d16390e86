/**
 * A server in a process of its own, on a new data folder that goes with it.
 *
 * The bench speaks to it as anybody would, through HTTP. Beside that it looks at
 * the server's rows with a login of the owner, because a question through HTTP
 * at each look would be load, and it reads from the operating system how much
 * processor time the server and its PostgreSQL took.
 */
import { mkdtemp, readdir, readFile, rm, chmod } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { localUrl, ownerRole, serverRole } from "@tropism/server/database/postgres-access"
import { databaseName } from "@tropism/server/database/provision"
import { Redacted } from "effect"

export interface ServerProcess {
  readonly url: string
  readonly token: string
  readonly ownerUrl: Redacted.Redacted<string>
  readonly serverUrl: Redacted.Redacted<string>
  /** Processor milliseconds so far: of the server, and of PostgreSQL. */
  readonly cpuMs: () => Promise<{ readonly server: number; readonly postgres: number }>
  /** Bytes that the server's heap holds, after what nobody needs is gone. */
  readonly heapBytes: () => Promise<number>
  readonly stop: () => Promise<void>
}

const token = "a-token-for-the-bench"

/** Starts a server on an empty database; `BENCH_BUN_FLAGS` reach its Bun, for profiles. */
export const startServerProcess = async (): Promise<ServerProcess> => {
  const dataFolder = await mkdtemp(join(tmpdir(), "tropism-bench-"))
  await chmod(dataFolder, 0o711)
  const flags = (process.env["BENCH_BUN_FLAGS"] ?? "").split(" ").filter((flag) => flag !== "")
  const child = Bun.spawn([process.execPath, ...flags, join(import.meta.dirname, "serve.ts")], {
    env: { ...process.env, HOST: "127.0.0.1", PORT: "0", TROPISM_DATA: dataFolder, TROPISM_TOKEN: token },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit"
  })
  const stop = async () => {
    child.kill("SIGTERM")
    await child.exited
    await rm(dataFolder, { recursive: true, force: true })
  }
  const nextLine = linesOf(child.stdout)
  const url = await nextLine().catch(async (error: unknown) => {
    await stop()
    throw error
  })
  const record = JSON.parse(await readFile(join(dataFolder, "database.json"), "utf8"))
  const login = (role: string, password: string) =>
    localUrl({ role, password, port: record.port, database: databaseName })
  const cluster = record.cluster.startsWith("/") ? record.cluster : join(dataFolder, record.cluster)
  const postmaster = Number((await readFile(join(cluster, "postmaster.pid"), "utf8")).split("\n", 1)[0])
  return {
    url: JSON.parse(url).url,
    token,
    ownerUrl: login(ownerRole, record.passwords.owner),
    serverUrl: login(serverRole, record.passwords.server),
    cpuMs: async () => ({ server: (await cpuOf(child.pid)).ms, postgres: await cpuOfFamily(postmaster) }),
    heapBytes: async () => {
      child.kill("SIGUSR2")
      return JSON.parse(await nextLine()).heapBytes
    },
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

/** Linux counts in hundredths of a second. */
const msPerTick = 10

const cpuOf = async (pid: number): Promise<{ readonly parent: number; readonly ms: number }> => {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "")
  // The name stands in brackets and may hold anything; what follows is numbers.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
  return { parent: Number(fields[1]), ms: (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * msPerTick }
}

const cpuOfFamily = async (postmaster: number): Promise<number> => {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number)
  const processes = await Promise.all(pids.map(cpuOf))
  const own = await cpuOf(postmaster)
  return processes.reduce((sum, { parent, ms }) => (parent === postmaster ? sum + ms : sum), own.ms)
}
