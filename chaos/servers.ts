/**
 * Servers as `tropism start` runs them, each of which comes back when it is gone, as a supervisor would have it.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { join } from "node:path"
import type { BreakableDatabase } from "./database.ts"

export const token = "a-token-for-the-chaos"

const program = join(import.meta.dirname, "../packages/cli/src/main.ts")

const pauseBeforeStartMs = 300
const readyWithinMs = 1_000

export class MortalServer {
  url = ""
  /** Where the others of a cluster reach it. */
  readonly clusterAddress: string | undefined
  /** How often it ended and nobody had killed it. */
  endedByItself = 0
  private child: ChildProcess | undefined
  private isWanted = true
  private isKilled = false

  private readonly database: BreakableDatabase
  private readonly dataFolder: string

  /** With an address it works together with the others that have one. */
  constructor(database: BreakableDatabase, dataFolder: string, clusterAddress: string | undefined) {
    this.database = database
    this.dataFolder = dataFolder
    this.clusterAddress = clusterAddress
  }

  /** Starts it; whenever it ends it is started again, until it is closed. */
  start(): void {
    const child = spawn(
      process.execPath,
      [program, "start", "--json", ...(this.clusterAddress === undefined ? [] : ["--cluster"])],
      {
        stdio: ["ignore", "pipe", "pipe"],
        env: {
          PATH: process.env["PATH"],
          HOME: process.env["HOME"],
          HOST: "127.0.0.1",
          PORT: this.url === "" ? "0" : new URL(this.url).port,
          DATABASE_URL: this.database.url,
          TROPISM_DATA: this.dataFolder,
          TROPISM_TOKEN: token,
          TROPISM_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
          TROPISM_MIN_SCHEDULE_SECONDS: "1",
          TROPISM_LOCAL_MCP_SERVERS: "true",
          TROPISM_RATE_LIMIT: "off",
          ...(this.clusterAddress === undefined ? {} : { TROPISM_CLUSTER_ADDRESS: this.clusterAddress })
        }
      }
    )
    this.child = child
    this.isKilled = false
    let said = ""
    let remarks = ""
    child.stdout.on("data", (part: Buffer) => {
      said += part.toString()
      const line = /^\{.*"url".*\}$/m.exec(said)?.[0]
      if (line !== undefined && this.url === "") this.url = JSON.parse(line).url
    })
    child.stderr.on("data", (part: Buffer) => (remarks = (remarks + part.toString()).slice(-2_000)))
    child.once("close", () => {
      if (!this.isWanted) return
      if (!this.isKilled) {
        this.endedByItself += 1
        console.error(`A server ended by itself and is started again. It last wrote: ${remarks.trim()}`)
      }
      void Bun.sleep(pauseBeforeStartMs).then(() => this.isWanted && this.start())
    })
  }

  /** Whether it answers that it is at work. */
  isReady(): Promise<boolean> {
    return fetch(`${this.url}/ready`, { signal: AbortSignal.timeout(readyWithinMs) }).then(
      ({ ok }) => ok,
      () => false
    )
  }

  kill(): void {
    this.isKilled = true
    this.child?.kill("SIGKILL")
  }

  freeze(): void {
    this.child?.kill("SIGSTOP")
  }

  thaw(): void {
    this.child?.kill("SIGCONT")
  }

  close(): void {
    this.isWanted = false
    this.kill()
  }
}
