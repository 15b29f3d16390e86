/**
 * The part of a foreign call during which no transaction is open.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Before a call the server's list is compared with what is pinned. A call takes
 * no longer than it may; one whose run goes away is waited for a little while.
 */
import type { Tool } from "@modelcontextprotocol/client"
import type { ProjectId } from "@tropism/domain/ids"
import type { PinnedTool } from "@tropism/domain/mcp-server"
import { Clock, Deferred, Effect, Exit, Fiber, type Schema } from "effect"
import { Database } from "../database/database.ts"
import { type ChangeRefused, refused } from "../graph/refused.ts"
import { foreignLimits } from "../limits.ts"
import { type Connection, ForeignConnections } from "./foreign-connections.ts"
import { ForeignFault } from "./foreign-fault.ts"
import { readResult } from "./foreign-result.ts"
import { type KeptServer, McpServers } from "./mcp-servers.ts"
import { changedTools } from "./pinning.ts"

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
    const changed = changedTools(server.config.name, server.tools, tools)
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
    return isFresh && isAsPinned(server, tool, listed.tools)
      ? listed.tools
      : yield* compare(projectId, connection, server)
  })

  /** A connection over which a tool may be called: it is reached, and says of the tool what is pinned. */
  const ready = Effect.fn("ForeignWork.ready")(function* (
    projectId: ProjectId,
    server: KeptServer,
    tool: PinnedTool
  ) {
    const connection = yield* connections.get(server)
    const tools = yield* Effect.tapError(listOf(projectId, connection, server, tool), ({ isBroken }) =>
      isBroken ? connections.drop(server) : Effect.void
    )
    if (!tools.some(({ name }) => name === tool.name))
      return yield* refused(
        "notPermitted",
        `The MCP server ${server.config.name} lists no tool ${tool.name} any more`
      )
    if (!isAsPinned(server, tool, tools)) return yield* hasChanged(server, tool)
    return connection
  })

  /** Makes the call and waits for its answer; whoever interrupts waits a little longer. */
  const make = Effect.fn("ForeignWork.make")(function* (
    { client }: Connection,
    server: KeptServer,
    tool: PinnedTool,
    args: Schema.Json
  ) {
    const parting = Deferred.makeUnsafe<void>()
    const { callTimeoutMs } = server.config
    const working = yield* client.call(asListed(tool), args as Record<string, unknown>).pipe(
      Effect.map((answer) => ({
        isError: answer.isError === true,
        result: readResult(answer, client.scrub)
      })),
      Effect.timeoutOrElse({
        duration: callTimeoutMs,
        orElse: () =>
          Effect.fail(noAnswer(`${server.config.name} did not answer within ${callTimeoutMs} milliseconds`))
      }),
      Effect.raceFirst(
        Effect.andThen(
          Deferred.await(parting),
          Effect.fail(noAnswer(`${server.config.name} had not answered when the run went away`))
        )
      ),
      Effect.forkDetach
    )
    const waited = yield* Effect.exit(Effect.interruptible(Fiber.await(working)))
    const exit = Exit.isSuccess(waited) ? waited.value : yield* partFrom(working, parting)
    const fault = Exit.findErrorOption(exit)
    if (fault._tag === "Some" && fault.value.isBroken) yield* connections.drop(server)
    return exit
  }, Effect.uninterruptible)

  return { ready, make }
})

/** Waits for work that nobody waits for any more, within its bound. */
const partFrom = Effect.fnUntraced(function* <A, E>(
  working: Fiber.Fiber<A, E>,
  parting: Deferred.Deferred<void>
) {
  const timer = yield* Effect.sleep(foreignLimits.partingMs).pipe(
    Effect.andThen(Deferred.succeed(parting, undefined)),
    Effect.forkDetach
  )
  const exit = yield* Fiber.await(working)
  yield* Fiber.interrupt(timer)
  return exit
})

const noAnswer = (message: string) => new ForeignFault({ outcome: "unknown", message, isBroken: false })

const asListed = ({ inputSchema, name }: PinnedTool): Pick<Tool, "name" | "inputSchema"> => ({
  name,
  inputSchema: { ...inputSchema, type: "object" }
})

const isAsPinned = ({ config }: KeptServer, tool: PinnedTool, listed: ReadonlyArray<Tool>): boolean =>
  changedTools(config.name, [tool], listed).length === 0

/** Why a tool is not called that says something else now. */
export const hasChanged = (
  { config }: Pick<KeptServer, "config">,
  { name }: Pick<PinnedTool, "name">
): ChangeRefused =>
  refused(
    "notPermitted",
    `${config.name} describes ${name} otherwise than when a person looked: it is not called until an admin refreshes the server's tools`
  )
