/**
 * What every comparison stands on: one Tropism server, its PostgreSQL, and a database beside it for each peer.
 *
 * A peer's program lives as long as its comparison, so that none is at work
 * while others are measured. Databases are never shared between peers.
 */
import { join } from "node:path"
import { withDatabase } from "@tropism/server/database/postgres-access"
import { Redacted } from "effect"
import type { Rows } from "../database.ts"
import { openRows } from "../database.ts"
import type { Send } from "../doors.ts"
import type { ServerProcess } from "../server-process.ts"
import { type Program, startProgram } from "./programs.ts"

/** How much of everything: a whole run, or one that only shows that the comparisons work. */
export interface Scale {
  /** Steps of the shorter and of the longer run. */
  readonly steps: number
  readonly manySteps: number
  /** Repetitions of a short run within one round. */
  readonly times: number
  /** Durable runs of ten steps. */
  readonly runs: number
  readonly perSecond: number
  readonly steadyEvents: number
  /** Events that each wake one agent, and that each wake ten. */
  readonly narrow: number
  readonly wide: number
  readonly backlog: number
  /** Turns of the shorter and of the longer context; turns that are measured on each in one round. */
  readonly fewTurns: number
  readonly manyTurns: number
  readonly measuredTurns: number
  readonly openedEvents: number
  readonly opens: number
  /** Objects of the full folder; how long an idle server is left alone first, and then is looked at. */
  readonly objects: number
  readonly restMs: number
  readonly idleMs: number
  /** Agents of which one matches; queued runs; how long a queue is worked on in one round. */
  readonly crowd: number
  readonly shortQueue: number
  readonly longQueue: number
  readonly worksMs: number
}

export interface Stage {
  readonly server: ServerProcess
  readonly send: Send
  readonly rows: Rows
  readonly scale: Scale
  /** Starts a peer's program (`bench/peers/NAME.ts`) with the peer's database; twice for two instances. */
  readonly startPeer: (name: string) => Promise<Program>
  /** Starts a program of the house, which keeps nothing. */
  readonly startOurs: (name: string) => Promise<Program>
  /** Bytes of a peer's database. */
  readonly databaseBytes: (name: string) => Promise<number>
}

const benchFolder = join(import.meta.dirname, "..")

/** The runtime that the peers' packages ask for; ours is Bun. */
const node = join(benchFolder, "node_modules/node/bin/node")

const databaseOf = (peer: string): string => `bench_${peer.replaceAll("-", "_")}`

/** Opens the stage on a running server. */
export const openStage = (
  server: ServerProcess,
  send: Send,
  rows: Rows,
  scale: Scale
): Stage & { readonly close: () => Promise<void> } => {
  const admin = openRows(server.adminUrl)
  const made = new Set<string>()
  const programs: Array<Program> = []
  const keep = (program: Program): Program => {
    programs.push(program)
    return program
  }
  return {
    server,
    send,
    rows,
    scale,
    startPeer: async (name) => {
      const database = databaseOf(name)
      if (!made.has(database)) await admin.ask((sql) => sql.unsafe(`create database ${database}`))
      made.add(database)
      return keep(
        await startProgram([node, join(benchFolder, "peers", `${name}.ts`)], {
          BENCH_DATABASE_URL: Redacted.value(withDatabase(server.adminUrl, database)),
          ...quiet
        })
      )
    },
    startOurs: async (name) =>
      keep(await startProgram([process.execPath, join(import.meta.dirname, `${name}.ts`)], {})),
    databaseBytes: async (name) => {
      const [row] = await admin.ask((sql) =>
        sql.unsafe<{ bytes: number }>("select pg_database_size($1)::float8 as bytes", [databaseOf(name)])
      )
      return row?.bytes ?? Number.NaN
    },
    close: async () => {
      await Promise.allSettled(programs.map((program) => program.stop()))
      await admin.close()
    }
  }
}

/** No peer writes a log, traces to anybody or tells its makers that it runs. */
const quiet = {
  NODE_NO_WARNINGS: "1",
  OPENAI_AGENTS_DISABLE_TRACING: "1",
  LANGCHAIN_TRACING_V2: "false",
  MASTRA_TELEMETRY_DISABLED: "1",
  GRAPHILE_LOGGER_DEBUG: "",
  NO_LOG_SUCCESS: "1",
  DO_NOT_TRACK: "1"
}
