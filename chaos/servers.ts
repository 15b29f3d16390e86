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
  /** Whether somebody has ended it. */
  private isEnded = false
  /** The last that it wrote in its log. */
  private remarks = ""

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
    this.isEnded = false
    let said = ""
    this.remarks = ""
    child.stdout.on("data", (part: Buffer) => {
      said += part.toString()
      const line = /^\{.*"url".*\}$/m.exec(said)?.[0]
      if (line !== undefined && this.url === "") this.url = JSON.parse(line).url
    })
    child.stderr.on("data", (part: Buffer) => {
      this.remarks = (this.remarks + part.toString()).slice(-20_000)
    })
    child.once("close", () => {
      if (!this.isWanted) return
      if (!this.isEnded) {
        this.endedByItself += 1
        console.error(
          `A server ended by itself and is started again. It last wrote: ${this.remarks.slice(-2_000).trim()}`
        )
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

  /** How often the last of its log says that the server at an address is gone, and its runs are free. */
  missed(address: string): number {
    return this.remarks
      .split("\n")
      .filter((line) => line.includes("A server is gone") && line.includes(address)).length
  }

  /** Asks it to stop in good order, and answers its exit code; null where a signal ended it. It comes back as always. */
  stop(): Promise<number | null> {
    this.isEnded = true
    const { child } = this
    return new Promise((resolve) => {
      child?.once("close", resolve)
      child?.kill("SIGTERM")
    })
  }

  kill(): void {
    this.isEnded = true
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
