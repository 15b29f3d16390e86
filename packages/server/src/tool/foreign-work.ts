/**
 * The part of a foreign call during which no transaction is open.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Before a call the server's list is compared with what is pinned. A call takes
 * no longer than it may, and ends at once when its run aborts it; one whose run
 * goes away is waited for a little while.
 */
import type { Tool } from "@modelcontextprotocol/client"
import type { ProjectId, UserId } from "@tropism/domain/ids"
import { oauthOf, type PinnedTool, wasReached } from "@tropism/domain/mcp-server"
import { Cause, Clock, Deferred, Effect, Exit, Fiber, Option, type Schema } from "effect"
import { isBrokenByAway } from "../database/database-away.ts"
import { Database } from "../database/database.ts"
import { type ChangeRefused, refused } from "../graph/refused.ts"
import { tellAway } from "../outbox/outages.ts"
import { foreignLimits } from "./foreign-limits.ts"
import { type Connection, ForeignConnections } from "./foreign-connections.ts"
import { aborted, type ForeignFault, unanswered, unmade } from "./foreign-fault.ts"
import { picturesOf, readResult } from "./foreign-result.ts"
import { type KeptServer, McpServers } from "./mcp-servers.ts"
import { answeringTool, changedTools } from "./pinning.ts"

export const makeForeignWork = Effect.gen(function* () {
  const connections = yield* ForeignConnections
  const database = yield* Database
  const servers = yield* McpServers

  /** Lists again, and marks what has changed since a person looked. */
  const compare = Effect.fnUntraced(function* (
    projectId: ProjectId,
    connection: Connection,
    server: KeptServer
  ) {
    const tools = yield* connection.client.listTools
    connection.listed = { tools, at: yield* Clock.currentTimeMillis }
    const changed = changedTools(server.tools, tools)
    if (changed.length > 0) yield* database.inProject(projectId, servers.markChanged(server, changed))
    return tools
  })

  /** What the server lists, as fresh as a call needs it. */
  const listOf = Effect.fnUntraced(function* (
    projectId: ProjectId,
    connection: Connection,
    server: KeptServer,
    tool: PinnedTool
  ) {
    const { client, listed } = connection
    const now = yield* Clock.currentTimeMillis
    const isFresh = listed !== undefined && now - listed.at < foreignLimits.relistMs && !client.hasNews()
    // Another server of ours may have pinned what this connection has not seen yet.
    if (isFresh && isAsPinned(tool, listed.tools)) return listed.tools
    const tools = yield* compare(projectId, connection, server)
    const missing = client.missing?.()
    // Of a list that is not whole, what it has can be called.
    const isEnough =
      missing === undefined ||
      (tools.some(({ name }) => name === tool.name) && missing.isForgotten !== true && !client.isClosed())
    return isEnough ? tools : yield* missing
  })

  /**
   * Keeps with the server why it could not be used; a try that was not made says nothing new, and a member who has not signed
   * in nothing of the server. Where the database is away what the call came to matters more.
   */
  const note = (projectId: ProjectId, server: KeptServer, fault: ForeignFault | undefined) => {
    if (fault?.isSignedOut === true && oauthOf(server.config)?.per === "member") return Effect.void
    const error = fault?.message ?? null
    const isKnown = fault === undefined ? wasReached(server) : fault.isRepeated || server.lastError === error
    if (isKnown) return Effect.void
    return Effect.catchCause(database.inProject(projectId, servers.noteError(server, error)), (cause) =>
      isBrokenByAway(cause) ? tellAway(Cause.squash(cause)) : Effect.failCause(cause)
    )
  }

  /** A connection over which a tool may be called: it is reached, and says of the tool what is pinned. */
  const ready = Effect.fn("ForeignWork.ready")(function* (
    projectId: ProjectId,
    server: KeptServer,
    member: UserId | null,
    tool: PinnedTool
  ) {
    const whom = { ...server, member }
    const listed = Effect.gen(function* () {
      const connection = yield* connections.get(whom)
      const tools = yield* Effect.tapError(listOf(projectId, connection, server, tool), ({ isBroken }) =>
        isBroken ? connections.drop(connection) : Effect.void
      )
      return { connection, tools }
    })
    // A session that the server has forgotten is begun anew, once.
    const { connection, tools } = yield* Effect.catchIf(
      listed,
      ({ isForgotten = false }) => isForgotten,
      () => listed
    ).pipe(
      Effect.tapError((fault) => note(projectId, server, fault)),
      Effect.tap(() => note(projectId, server, undefined))
    )
    if (!tools.some(({ name }) => name === tool.name))
      return yield* refused(
        "notPermitted",
        `The MCP server ${server.config.name} lists no tool ${tool.name} any more`
      )
    if (!isAsPinned(tool, tools)) return yield* hasChanged(server, tool)
    return connection
  })

  /**
   * Makes the call and waits for its answer.
   *
   * **Details** When `abort` ends, the call is aborted for the reason it answers, and the server is told. Whoever
   * interrupts waits a little longer, as long as what the call comes to `isWanted`; then the call is given up the same way.
   */
  const make = Effect.fn("ForeignWork.make")(function* (
    connection: Connection,
    { args, member, projectId, server, tool }: Work,
    isWanted: Effect.Effect<boolean>,
    abort: Effect.Effect<string>
  ) {
    const parting = Deferred.makeUnsafe<void>()
    const { callTimeoutMs } = server.config
    const once = ({ client, listed }: Connection) =>
      Effect.map(client.call(asListed(tool), args as Record<string, unknown>), (answer) => ({
        isError: answer.isError === true,
        result: readResult(answer, client.scrub, answeringTool(tool, listed?.tools ?? [])),
        pictures: answer.isError === true ? [] : [...picturesOf(answer.content).values()]
      }))
    const inNewSession = Effect.andThen(
      connections.drop(connection),
      Effect.scoped(Effect.flatMap(Effect.mapError(ready(projectId, server, member, tool), asUnmade), once))
    )
    const working = yield* once(connection).pipe(
      // It refused the message, so the call was not made; a second refusal is told.
      Effect.catchIf(
        ({ isForgotten = false }) => isForgotten,
        () => inNewSession
      ),
      Effect.timeoutOrElse({
        duration: callTimeoutMs,
        orElse: () =>
          Effect.suspend(() => {
            connection.isDoubtful = true
            return Effect.fail(
              unanswered(`${server.config.name} did not answer within ${callTimeoutMs} milliseconds`)
            )
          })
      }),
      Effect.raceFirst(
        Effect.flatMap(abort, (why) => {
          connection.isDoubtful = true
          return Effect.fail(aborted(`${server.config.name} had not answered when ${why}`))
        })
      ),
      Effect.raceFirst(
        Effect.andThen(
          Deferred.await(parting),
          Effect.fail(unanswered(`${server.config.name} had not answered when the run went away`))
        )
      ),
      Effect.forkDetach
    )
    const waited = yield* Effect.exit(Effect.interruptible(Fiber.await(working)))
    const exit = Exit.isSuccess(waited) ? waited.value : yield* partFrom(working, parting, isWanted)
    const fault = Option.getOrUndefined(Exit.findErrorOption(exit))
    if (fault?.isBroken) yield* connections.drop(connection)
    // Behind the call and its bounds: what it came to is known, and the note changes nothing of that.
    if (fault?.outcome === "unmade") yield* note(projectId, server, fault)
    return exit
  }, Effect.uninterruptible)

  return { ready, make }
})

/** One call that is made. */
interface Work {
  readonly projectId: ProjectId
  readonly server: KeptServer
  /** For whom the run works. */
  readonly member: UserId | null
  readonly tool: PinnedTool
  readonly args: Schema.Json
}

/** Waits for work that nobody waits for any more, within its bound. */
const partFrom = Effect.fnUntraced(function* <A, E>(
  working: Fiber.Fiber<A, E>,
  parting: Deferred.Deferred<void>,
  isWanted: Effect.Effect<boolean>
) {
  const timer = yield* Effect.flatMap(isWanted, (is) =>
    is ? Effect.sleep(foreignLimits.partingMs) : Effect.void
  ).pipe(Effect.andThen(Deferred.succeed(parting, undefined)), Effect.forkDetach)
  const exit = yield* Fiber.await(working)
  yield* Fiber.interrupt(timer)
  return exit
})

const asUnmade = (why: ForeignFault | ChangeRefused): ForeignFault =>
  why._tag === "ChangeRefused" ? unmade(why.detail) : why

const asListed = ({ inputSchema, name }: PinnedTool): Pick<Tool, "name" | "inputSchema"> => ({
  name,
  inputSchema: { ...inputSchema, type: "object" }
})

const isAsPinned = (tool: PinnedTool, listed: ReadonlyArray<Tool>): boolean =>
  changedTools([tool], listed).length === 0

/** Why a tool is not called that says something else now. */
export const hasChanged = (
  { config }: Pick<KeptServer, "config">,
  { name }: Pick<PinnedTool, "name">
): ChangeRefused =>
  refused(
    "notPermitted",
    `${config.name} describes ${name} otherwise than when a person looked: it is not called until an admin refreshes the server's tools`
  )
