/**
 * Connections to foreign servers: one per server and account, shared by all runs.
 *
 * A connection is opened by its first call. It is closed when idle, when its server is removed, disabled or redefined,
 * or with this program, so no child process outlives it. Failed connections back off, so a server that is down costs a
 * call no time.
 */
import type { Tool } from "@modelcontextprotocol/client"
import { canonicalJson } from "@tropism/domain/json"
import { type Cause, Clock, Context, Effect, Exit, Layer, Queue, RcMap, Scope } from "effect"
import { Database } from "../../database/database.ts"
import { Notifier } from "../../outbox/notifier.ts"
import { type ExternalClient, ExternalConnecting } from "./client.ts"
import { faultLike, type ExternalFault, unmade } from "./faults.ts"
import { externalLimits } from "./limits.ts"
import { type Access, OAuthGrants, type Whom } from "./oauth-grants.ts"
import { McpServers } from "./servers.ts"

export interface Connection {
  /** Identifies the server's definition and the account used. */
  readonly key: string
  readonly client: ExternalClient
  /** The server's last list and its time in milliseconds. */
  listed: { readonly tools: ReadonlyArray<Tool>; readonly at: number } | undefined
  /** A call on it timed out: the server is pinged before the next one. */
  isDoubtful: boolean
  /** A new connection replaces it. */
  isGivenUp: boolean
}

export class ExternalConnections extends Context.Service<
  ExternalConnections,
  {
    /** Returns the connection to a server, opening it if needed; it is held until the scope ends. */
    readonly get: (whom: Whom) => Effect.Effect<Connection, ExternalFault, Scope.Scope>
    /** Makes the next call reconnect; needs no database, because a call may fail while that is unreachable. */
    readonly drop: (connection: Pick<Connection, "key">) => Effect.Effect<void>
    /** Makes the next call reconnect, if there is a connection. */
    readonly dropOf: (whom: Whom) => Effect.Effect<void>
  }
>()("@tropism/server/tool/ExternalConnections") {
  static readonly layer = Layer.effect(
    ExternalConnections,
    Effect.gen(function* () {
      const failures = new Map<
        string,
        { readonly times: number; readonly until: number; readonly fault: ExternalFault }
      >()

      const wanted = new Map<string, { readonly whom: Whom; readonly access: Access }>()
      const grants = yield* OAuthGrants
      const database = yield* Database
      const servers = yield* McpServers
      const notifier = yield* Notifier
      const here = yield* Effect.scope
      const connect = yield* ExternalConnecting

      /** Closes something in the background; only the end of this program waits for it. */
      const endAside = (ending: Effect.Effect<void>) => Effect.forkIn(Effect.uninterruptible(ending), here)

      /** Closes a connection once its server is removed, disabled or redefined. */
      const watch = Effect.fnUntraced(function* (key: string, whom: Whom, changes: Queue.Dequeue<void>) {
        while (true) {
          yield* Queue.take(changes)
          if (yield* isOver(key, whom)) return yield* endAside(RcMap.invalidate(connections, key))
        }
      })

      /**
       * Whether the server was replaced, removed or disabled, or its account changed by a sign-in or sign-out; false while the
       * database is unreachable.
       */
      const isOver = (key: string, { id, member, projectId }: Whom) =>
        database.inProject(projectId, servers.find(id)).pipe(
          Effect.flatMap((kept) => {
            if (!kept?.config.enabled) return Effect.succeed(true)
            const whom = { ...kept, member }
            return Effect.match(grants.accessOf(whom), {
              onSuccess: (access) => keyOf(whom, access) !== key,
              onFailure: () => true
            })
          }),
          Effect.catchDefect((defect) =>
            Effect.as(Effect.logWarning("Nobody knows whether a connection is still wanted", defect), false)
          )
        )

      const connections: RcMap.RcMap<string, Connection, ExternalFault | Cause.ExceededCapacityError> =
        yield* RcMap.make({
          lookup: (key: string) =>
            Effect.gen(function* () {
              const { access, whom } = wanted.get(key) ?? {}
              wanted.delete(key)
              if (!whom || !access) return yield* Effect.die(new Error("Nobody said whom to connect to"))
              const changes = yield* notifier.listen(`server:${whom.id}`)
              const client = yield* connect(whom.config.name, whom.config.transport, access.bearer)
              yield* Effect.forkScoped(watch(key, whom, changes))
              // A program's resources are released when it exits, not at the next call.
              yield* Effect.andThen(
                client.closed,
                Effect.forkDetach(RcMap.invalidate(connections, key))
              ).pipe(Effect.forkScoped)
              const connection: Connection = {
                key,
                client,
                listed: undefined,
                isDoubtful: false,
                isGivenUp: false
              }
              return connection
            }),
          idleTimeToLive: externalLimits.idleMs,
          capacity: externalLimits.connections
        })

      const noteFailure = Effect.fnUntraced(function* (key: string, fault: ExternalFault) {
        const now = yield* Clock.currentTimeMillis
        const times = (failures.get(key)?.times ?? 0) + 1
        const pauseMs = Math.min(externalLimits.backOffMaxMs, externalLimits.backOffBaseMs * 2 ** (times - 1))
        const [oldest] = failures.keys()
        failures.delete(key)
        if (failures.size >= externalLimits.connections && oldest !== undefined) failures.delete(oldest)
        failures.set(key, { times, until: now + pauseMs, fault })
      })

      const open = Effect.fnUntraced(function* (key: string, whom: Whom, access: Access) {
        const failed = failures.get(key)
        const now = yield* Clock.currentTimeMillis
        if (failed && now < failed.until)
          return yield* faultLike(failed.fault, {
            message: `${failed.fault.message} (it is tried again in ${Math.ceil((failed.until - now) / 1_000)} seconds)`,
            isRepeated: true
          })
        if (!(yield* RcMap.has(connections, key))) wanted.set(key, { whom, access })
        const connection = yield* RcMap.get(connections, key).pipe(
          Effect.catchTag("ExceededCapacityError", () =>
            Effect.fail(
              unmade(
                `This server is connected to ${externalLimits.connections} MCP servers, as many as it may be`
              )
            )
          ),
          Effect.tapError((fault) =>
            // Several callers may have waited for the same try; one of them stores its fault.
            Effect.andThen(
              RcMap.invalidate(connections, key),
              failures.get(key) === failed ? noteFailure(key, fault) : Effect.void
            )
          )
        )
        failures.delete(key)
        return connection
      })

      const get = Effect.fn("ExternalConnections.get")(function* (whom: Whom) {
        const access = yield* grants.accessOf(whom)
        const key = keyOf(whom, access)
        const trial = yield* Scope.fork(yield* Effect.scope)
        const connection = yield* Scope.provide(open(key, whom, access), trial)
        if (yield* isFit(connection)) return connection
        // Of several concurrent callers one closes the connection; its replacement stays open.
        if (!connection.isGivenUp) {
          connection.isGivenUp = true
          yield* RcMap.invalidate(connections, key)
        }
        // A hanging program takes time to end, so this happens in the background.
        yield* endAside(Scope.close(trial, Exit.void))
        return yield* open(key, whom, access)
      })

      const drop = ({ key }: Pick<Connection, "key">) => RcMap.invalidate(connections, key)

      /** A connection of a former sign-in has ended already. */
      const dropOf = (whom: Whom) =>
        Effect.matchEffect(grants.accessOf(whom), {
          onSuccess: (access) => drop({ key: keyOf(whom, access) }),
          onFailure: () => Effect.void
        })

      return ExternalConnections.of({ get, drop, dropOf })
    })
  )
}

/** Whether a connection is usable; after a timeout the server must answer a ping first. */
const isFit = Effect.fnUntraced(function* (connection: Connection) {
  if (connection.client.isClosed()) return false
  if (!connection.isDoubtful) return true
  const isAlive = yield* connection.client.isAlive
  if (isAlive) connection.isDoubtful = false
  return isAlive
})

const keyOf = ({ config, id }: Pick<Whom, "id" | "config">, { key }: Access): string =>
  canonicalJson([id, config.name, config.transport, key])
