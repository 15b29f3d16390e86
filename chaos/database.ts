/**
 * A PostgreSQL that is stopped at once and started again, and the wire to it that is cut or falls silent.
 *
 * Servers reach it through the wire only; who judges goes around it.
 */
import { connect as dial, createServer, type Socket } from "node:net"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { embedded, type EmbeddedPostgres } from "@tropism/server/database/embedded-postgres"
import { withDatabase } from "@tropism/server/database/postgres-access"
import { SQL } from "bun"
import { Effect, Exit, Logger, Redacted, Scope } from "effect"

export interface BreakableDatabase {
  /** The address on the wire, for `DATABASE_URL`. */
  readonly url: string
  /** The address around the wire. */
  readonly directUrl: () => string
  /** Asks around the wire, over a connection of its own. */
  // oxlint-disable-next-line typescript/no-explicit-any -- rows of every shape
  readonly ask: (statement: string, values?: ReadonlyArray<unknown>) => Promise<ReadonlyArray<any>>
  /** Stops it as by `pg_ctl stop -m immediate` and starts it again. */
  readonly stopAndStart: () => Promise<void>
  /** Breaks all connections of the wire. */
  readonly cut: () => void
  /** Lets nothing through any more on all connections of the wire, and closes none; new ones work. */
  readonly fallSilent: () => void
  readonly close: () => Promise<void>
}

const name = "chaos"

/** How long a stopped PostgreSQL may take to be gone. */
const stopTimeoutMs = 20_000

/** After so long PostgreSQL, which asks whether the other side is there, closes a connection that fell silent. */
const missedMs = 30_000

const isThere = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const open = async (dataFolder: string) => {
  const scope = Scope.makeUnsafe()
  const postgres = await Effect.runPromise(
    embedded({ dataFolder, settings: { max_connections: "300" } }).pipe(
      Effect.provideService(Scope.Scope, scope),
      Effect.provide([NodeServices.layer, Logger.layer([])])
    )
  )
  return { postgres, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

/** Starts it on an empty data folder. */
export const startDatabase = async (dataFolder: string): Promise<BreakableDatabase> => {
  let running = await open(dataFolder)
  const sockets = new Set<Socket>()
  const silent = new WeakSet<Socket>()
  const wire = createServer((near) => {
    const far = dial(running.postgres.port, "127.0.0.1")
    const end = (): void => {
      if (silent.has(near)) return
      for (const socket of [near, far]) {
        sockets.delete(socket)
        socket.destroy()
      }
    }
    const pass = (from: Socket, to: Socket): void => {
      sockets.add(from)
      from.on("error", end).on("close", end)
      from.on("data", (bytes) => {
        if (silent.has(from) || to.write(bytes)) return
        from.pause()
        to.once("drain", () => from.resume())
      })
    }
    pass(near, far)
    pass(far, near)
  })
  const port = await new Promise<number>((resolve) =>
    wire.listen(0, "127.0.0.1", () => {
      const address = wire.address()
      resolve(typeof address === "object" && address !== null ? address.port : 0)
    })
  )
  const directUrl = (): string => addressOf(running.postgres)
  const ask: BreakableDatabase["ask"] = async (statement, values = []) => {
    const sql = new SQL(directUrl(), { max: 1 })
    return await sql.unsafe(statement, [...values]).finally(() => sql.close())
  }
  const made = new SQL(Redacted.value(running.postgres.adminUrl), { max: 1 })
  await made.unsafe(`create database ${name}`).finally(() => made.close())
  const url = new URL(directUrl())
  url.port = String(port)
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  const fallSilent = (): void => {
    const fallen = [...sockets]
    for (const socket of fallen) silent.add(socket)
    void Bun.sleep(missedMs).then(() => {
      for (const socket of fallen) {
        sockets.delete(socket)
        socket.destroy()
      }
    })
  }
  return {
    url: url.toString(),
    directUrl,
    ask,
    cut,
    fallSilent,
    stopAndStart: async () => {
      const { pid } = running.postgres
      process.kill(pid, "SIGQUIT")
      const deadline = performance.now() + stopTimeoutMs
      while (isThere(pid)) {
        if (performance.now() > deadline) throw new Error(`PostgreSQL ${pid} does not stop`)
        await Bun.sleep(20)
      }
      await running.close()
      running = await open(dataFolder)
    },
    close: async () => {
      wire.close()
      cut()
      await running.close()
    }
  }
}

const addressOf = (postgres: EmbeddedPostgres): string =>
  Redacted.value(withDatabase(postgres.adminUrl, name))
