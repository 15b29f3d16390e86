/**
 * The connections of this program to foreign servers, one for each and shared by all runs.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * A connection is made by its first call and closed when nobody has used it for a
 * while, or with the program: no child of ours outlives us. After a failure the
 * next try waits, so a server that is down costs a call no time.
 */
import type { Tool } from "@modelcontextprotocol/client"
import type { McpServerConfig } from "@tropism/domain/mcp-server"
import type { McpServerId } from "@tropism/domain/ids"
import { canonicalJson } from "@tropism/domain/json"
import { Clock, Context, Effect, Layer, RcMap, type Scope } from "effect"
import { foreignLimits } from "../limits.ts"
import { type ForeignClient, connectForeign } from "./foreign-client.ts"
import { type ForeignFault, unmade } from "./foreign-fault.ts"

/** Whom to connect to: another definition is another connection. */
export interface Whom {
  readonly id: McpServerId
  readonly config: Pick<McpServerConfig, "name" | "transport">
}

export interface Connection {
  readonly client: ForeignClient
  /** What the server listed last, and when, in milliseconds. */
  listed: { readonly tools: ReadonlyArray<Tool>; readonly at: number } | undefined
}

export class ForeignConnections extends Context.Service<
  ForeignConnections,
  {
    /** The connection to a server, made where there is none; it is held until the scope ends. */
    readonly get: (whom: Whom) => Effect.Effect<Connection, ForeignFault, Scope.Scope>
    /** Lets the next call connect anew. */
    readonly drop: (whom: Whom) => Effect.Effect<void>
  }
>()("@tropism/server/tool/ForeignConnections") {
  static readonly layer = Layer.effect(
    ForeignConnections,
    Effect.gen(function* () {
      const failures = new Map<
        string,
        { readonly times: number; readonly until: number; readonly fault: ForeignFault }
      >()

      const wanted = new Map<string, Whom["config"]>()

      const connections = yield* RcMap.make({
        lookup: (key: string) =>
          Effect.gen(function* () {
            const config = wanted.get(key)
            wanted.delete(key)
            if (!config) return yield* Effect.die(new Error("Nobody said whom to connect to"))
            const client = yield* connectForeign(config.name, config.transport)
            const connection: Connection = { client, listed: undefined }
            return connection
          }),
        idleTimeToLive: foreignLimits.idleMs,
        capacity: foreignLimits.connections
      })

      const noteFailure = Effect.fnUntraced(function* (key: string, fault: ForeignFault) {
        const now = yield* Clock.currentTimeMillis
        const times = (failures.get(key)?.times ?? 0) + 1
        const pauseMs = Math.min(foreignLimits.backOffMaxMs, foreignLimits.backOffBaseMs * 2 ** (times - 1))
        const [oldest] = failures.keys()
        failures.delete(key)
        if (failures.size >= foreignLimits.connections && oldest !== undefined) failures.delete(oldest)
        failures.set(key, { times, until: now + pauseMs, fault })
      })

      const open = Effect.fnUntraced(function* (key: string, config: Whom["config"]) {
        const failed = failures.get(key)
        const now = yield* Clock.currentTimeMillis
        if (failed && now < failed.until)
          return yield* unmade(
            `${failed.fault.message} (it is tried again in ${Math.ceil((failed.until - now) / 1_000)} seconds)`
          )
        if (!(yield* RcMap.has(connections, key))) wanted.set(key, config)
        const connection = yield* RcMap.get(connections, key).pipe(
          Effect.catchTag("ExceededCapacityError", () =>
            Effect.fail(
              unmade(
                `This server is connected to ${foreignLimits.connections} MCP servers, as many as it may be`
              )
            )
          ),
          Effect.tapError((fault) =>
            // Several may have waited for the same try: one of them notes it.
            Effect.andThen(
              RcMap.invalidate(connections, key),
              failures.get(key) === failed ? noteFailure(key, fault) : Effect.void
            )
          )
        )
        failures.delete(key)
        return connection
      })

      const get = Effect.fn("ForeignConnections.get")(function* (whom: Whom) {
        const key = keyOf(whom)
        const connection = yield* open(key, whom.config)
        if (!connection.client.isClosed()) return connection
        yield* RcMap.invalidate(connections, key)
        return yield* open(key, whom.config)
      })

      return ForeignConnections.of({ get, drop: (whom) => RcMap.invalidate(connections, keyOf(whom)) })
    })
  )
}

const keyOf = ({ config, id }: Whom): string => canonicalJson([id, config.name, config.transport])
