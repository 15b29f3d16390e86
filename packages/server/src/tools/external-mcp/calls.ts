/**
 * Makes one call of a foreign tool: records its start, calls, records its outcome.
 *
 * **Invariant** No transaction is open while the server works, so a worker crash leaves a started call without an
 * outcome. The next attempt repeats it only when the tool is idempotent; otherwise its outcome is recorded as unknown.
 * Both records are fenced by the attempt's token. A run aborts a call at its deadline or when a person interrupts the
 * turn: the call was not made, or is recorded as abandoned when it is repeatable, else as unknown. A repeatable outcome
 * waits for those of earlier calls.
 */
import type { Tool } from "@modelcontextprotocol/client"
import type { MadeCall } from "@tropism/domain/defined-tool"
import type { McpServerId, ToolCallId, ProjectId, UserId } from "@tropism/domain/ids"
import { isAllowedTool, mayCallAgain, type PinnedTool, oauthOf, wasReached } from "@tropism/domain/mcp-server"
import { type TaintSource, taintSentence } from "@tropism/domain/taint"
import { Context, Effect, Exit, Fiber, Layer, Option, type Schema, Cause, Clock, Deferred } from "effect"
import { Attachments } from "../../contexts/attachments.ts"
import { CrashPoint } from "../../crash-point.ts"
import { isBrokenByAway } from "../../database/connection-errors.ts"
import { Database, type ProjectTransaction } from "../../database/database.ts"
import { type Authority, Authorities } from "../../graph/authority.ts"
import { type ChangeRefused, refused } from "../../graph/change-refused.ts"
import { Ids } from "../../ids.ts"
import { retryDuringOutages, reportOutage } from "../../outbox/outages.ts"
import { findArgumentsFault } from "../arguments.ts"
import { whyDenied, Denials, type Why } from "../denials.ts"
import { type AttemptLost, type RunPrincipal, RunGuard } from "../principal.ts"
import {
  logRefusal,
  logUnknownTool,
  endedEvent,
  startedEvent,
  type CallStatus,
  ToolCalls
} from "../tool-calls.ts"
import { type LogCursor, type Place, type Outcome, makeLogAppend } from "../toolbox.ts"
import { type Connection, ExternalConnections } from "./connections.ts"
import { type ExternalFault, aborted, unanswered, unmade } from "./faults.ts"
import { externalLimits } from "./limits.ts"
import { type FoundPicture, picturesOf, readResult } from "./results.ts"
import { type KeptServer, McpServers } from "./servers.ts"
import { answeringTool, changedTools } from "./tool-listing.ts"

/** A foreign tool that an agent may use, as it was offered to its run. */
export interface ExternalTool {
  readonly server: Pick<KeptServer, "id" | "config">
  readonly tool: PinnedTool
}

export class ExternalCalls extends Context.Service<
  ExternalCalls,
  {
    /**
     * Makes a call, or answers why it is not made; `tool` may be the reason why there is none. When `abort` completes, the call is
     * aborted for the reason it returns; a call that had not begun leaves no record.
     */
    readonly call: (
      principal: RunPrincipal,
      call: MadeCall,
      wanted: ExternalTool | ChangeRefused,
      way: Way
    ) => Effect.Effect<Outcome | undefined, AttemptLost>
  }
>()("@tropism/server/tool/ExternalCalls") {
  static readonly layer = Layer.effect(
    ExternalCalls,
    Effect.gen(function* () {
      const { begin, isWanted, look, settle } = yield* makeForeignRecords
      const { make, ready } = yield* makeForeignWork

      /** The two records of a call and the work between them. */
      const through = Effect.fnUntraced(function* (
        principal: RunPrincipal,
        call: MadeCall,
        { server, tool, wasBegun }: Cleared,
        { abort, log, place }: Way
      ) {
        const source: ReadonlyArray<TaintSource> =
          server.config.untrusted === true ? [{ kind: "mcpServer", id: server.config.name }] : []
        const aborting = yield* Effect.forkScoped(abort)
        const connected = yield* ready(principal.projectId, server, principal.userId, tool).pipe(
          Effect.tap(() => (wasBegun ? Effect.void : place.toBegin)),
          Effect.result,
          Effect.raceFirst(Effect.as(Fiber.join(aborting), undefined)),
          Effect.interruptible
        )
        if (connected === undefined) {
          if (!wasBegun) return undefined
          return yield* settle(principal, call, abandonedOutcome("The run stopped. "), { log, wasBegun })
        }
        if (connected._tag === "Failure") {
          if (wasBegun)
            return yield* settle(principal, call, unknownOutcome("", tool, server), { log, wasBegun })
          const taint = hasSpoken(connected.failure) ? source : []
          yield* place.toEnd
          return yield* settle(principal, call, settledAs(connected.failure, server), {
            log,
            wasBegun,
            taint
          })
        }
        if (!wasBegun) yield* begin(principal, call, log, tool.isReadOnly)
        yield* place.hasBegun
        yield* CrashPoint.hit("run.beforeForeignCall")
        const exit = yield* make(
          connected.success,
          {
            projectId: principal.projectId,
            server,
            member: principal.userId,
            tool,
            args: call.arguments
          },
          isWanted(principal),
          Fiber.join(aborting)
        )
        yield* CrashPoint.hit("run.afterForeignCall")
        if (mayCallAgain(server.config, tool)) yield* place.toEnd
        return yield* settle(principal, call, outcomeOf(exit, tool, server), {
          log,
          wasBegun: true,
          taint: source
        })
      }, Effect.scoped)

      const call = Effect.fn("ExternalCalls.call")(function* (
        principal: RunPrincipal,
        call: MadeCall,
        wanted: ExternalTool | ChangeRefused,
        way: Way
      ) {
        const { log, place } = way
        const serverId: McpServerId | undefined = "_tag" in wanted ? undefined : wanted.server.id
        const { authority, earlier, server } = yield* look(principal, call, log, serverId)
        if (earlier && earlier.status !== "started")
          return { status: earlier.status, result: earlier.result, appended: [] }
        const cleared = clear(call, wanted, server, authority)
        const wasBegun = earlier !== undefined
        if (wasBegun && (!("tool" in cleared) || !mayCallAgain(cleared.server.config, cleared.tool)))
          return yield* settle(
            principal,
            call,
            unknownOutcome("The worker died during the call. ", undefined),
            { log, wasBegun }
          )
        const outcome = yield* "tool" in cleared
          ? through(principal, call, { ...cleared, wasBegun }, way)
          : Effect.andThen(place.toEnd, settle(principal, call, refusalOf(cleared), { log, wasBegun }))
        if (outcome?.status === "refused")
          yield* "_tag" in wanted
            ? logUnknownTool(principal, call)
            : logRefusal(principal, call, "A call of a foreign tool was refused", outcome.result)
        return outcome
      })

      return ExternalCalls.of({ call })
    })
  )
}

/** Completes with the reason when the run no longer waits for a call. */
export type Abort = Effect.Effect<string>

/** What a call shares with the calls made concurrently. */
export interface Way {
  readonly log: LogCursor
  readonly place: Place
  readonly abort: Abort
}

/** A call that passed the gate. */
interface Cleared {
  readonly server: KeptServer
  readonly tool: PinnedTool
  readonly wasBegun: boolean
}

/** The gate: every check of a call before the server is contacted. */
const clear = (
  call: MadeCall,
  wanted: ExternalTool | ChangeRefused,
  server: KeptServer | undefined,
  authority: Authority | undefined
): Omit<Cleared, "wasBegun"> | ChangeRefused => {
  if ("_tag" in wanted) return wanted
  const { name } = wanted.server.config
  if (!server?.config.enabled)
    return refused("notPermitted", `The MCP server ${name} was removed or disabled`)
  const tool = server.tools.find((pinned) => pinned.name === wanted.tool.name)
  if (!tool || !isAllowedTool(server.config, tool.name))
    return refused(
      "notPermitted",
      `The MCP server ${name} has no tool ${wanted.tool.name} for agents any more`
    )
  if (tool.changedAt !== null) return hasChanged(server, tool)
  if (!authority?.isActive)
    return refused("agentDisabled", "The agent is disabled or deleted: it may call nothing")
  // A foreign tool's effect and arguments leave the system, where no suggestion is possible.
  if (authority.taintedBy.length > 0 && server.config.allowUntrusted !== true)
    return refused(
      "untrusted",
      `${taintSentence(authority.taintedBy)}: ${call.name} acts outside of the graph, where nothing can be suggested. An admin may let such runs call ${name} with allowUntrusted`
    )
  // A suggestion waits for a person; a foreign tool's effect does not.
  if (authority.definedMode === "suggest" && !tool.isReadOnly)
    return refused(
      "notPermitted",
      `The agent may only suggest, and ${call.name} acts outside of the graph: it may call foreign tools that are read-only`
    )
  return findArgumentsFault(tool, call.arguments) ?? { server, tool }
}

const refusalOf = (refusal: ChangeRefused): Settled => {
  const { detail, pointer, reason } = refusal
  const denied = whyDenied(refusal)
  return {
    status: denied ? "refused" : "failed",
    result: { error: detail, reason, ...(pointer === undefined ? {} : { pointer }) },
    denied
  }
}

/** Whether the reason for a refusal contains text of the server. */
const hasSpoken = (why: ChangeRefused | ExternalFault): boolean =>
  why._tag === "ExternalFault" && why.isOurs !== true

/** The outcome of a call that was not made, because of the gate or the connection. */
const settledAs = (why: ChangeRefused | ExternalFault, { config }: KeptServer): Settled => {
  if (why._tag === "ChangeRefused") return refusalOf(why)
  const error =
    why.isSignedOut === true
      ? `The MCP server ${config.name} is ${why.message.slice(0, 1).toLowerCase()}${why.message.slice(1)}`
      : `The MCP server ${config.name} cannot be reached: ${why.message}`
  return {
    status: "failed",
    result: { error, reason: why.isSignedOut === true ? "signedOut" : "unavailable" }
  }
}

const unknownOutcome = (why: string, tool: PinnedTool | undefined, server?: KeptServer): Settled => ({
  status: "unknown",
  result: {
    error: `${why}The outcome is unknown: it may or may not have happened.${
      tool && server && mayCallAgain(server.config, tool)
        ? " The tool may be called again."
        : " Find out before you call it again."
    }`,
    reason: "unknownOutcome"
  }
})

/** The outcome of a repeatable call that the run aborted. */
const abandonedOutcome = (why: string): Settled => ({
  status: "abandoned",
  result: { error: `${why}The call was aborted. The tool may be called again.`, reason: "aborted" }
})

/** The outcome of the work. */
const outcomeOf = (
  exit: Exit.Exit<
    {
      readonly isError: boolean
      readonly result: Schema.Json
      readonly pictures: ReadonlyArray<FoundPicture>
    },
    ExternalFault
  >,
  tool: PinnedTool,
  server: KeptServer
): Settled => {
  if (exit._tag === "Success")
    return exit.value.isError
      ? { status: "failed", result: { error: exit.value.result, reason: "toolFailed" } }
      : { status: "completed", result: exit.value.result, pictures: exit.value.pictures }
  const fault = Option.getOrUndefined(Exit.findErrorOption(exit))
  if (fault?.outcome === "unmade") return settledAs(fault, server)
  if (fault?.outcome === "answered")
    return { status: "failed", result: { error: fault.message, reason: "toolFailed" } }
  const why = fault ? `${fault.message}. ` : ""
  return fault?.isAborted === true && mayCallAgain(server.config, tool)
    ? abandonedOutcome(why)
    : unknownOutcome(why, tool, server)
}

// The two records of a foreign call: its start and its outcome.
//
// Each is one transaction that locks the run, so only the current attempt writes; the row and the log event are written
// together.

/** The outcome of a call. */
interface Settled {
  readonly status: Exclude<CallStatus, "started">
  readonly result: Schema.Json
  readonly pictures?: ReadonlyArray<FoundPicture>
  /** The missing right. */
  readonly denied?: Why | undefined
}

/** What precedes an outcome in the log. */
export interface Before {
  readonly log: LogCursor
  readonly wasBegun: boolean
  /** The untrusted sources of the outcome. */
  readonly taint?: ReadonlyArray<TaintSource>
}

const makeForeignRecords = Effect.gen(function* () {
  const database = yield* Database
  const authorities = yield* Authorities
  const servers = yield* McpServers
  const guard = yield* RunGuard
  const toolCalls = yield* ToolCalls
  const denials = yield* Denials
  const ids = yield* Ids
  const attachments = yield* Attachments
  const append = yield* makeLogAppend

  /** A transaction in which only the run's current attempt writes. */
  const held = <A>(
    principal: RunPrincipal,
    effect: Effect.Effect<A, never, ProjectTransaction>
  ): Effect.Effect<A, AttemptLost> =>
    database.inProject(principal.projectId, Effect.andThen(guard.hold(principal), effect))

  /** Reads the call's record, its server and its agent. */
  const look = (principal: RunPrincipal, call: MadeCall, log: LogCursor, serverId: McpServerId | undefined) =>
    log.alone(
      held(
        principal,
        Effect.gen(function* () {
          const earlier = yield* toolCalls.find(principal.runId, call.id)
          const server = serverId === undefined ? undefined : yield* servers.find(serverId)
          const authority = yield* authorities.of(principal.agentId, principal.runId, false)
          return { earlier, server, authority }
        })
      )
    )

  const keep = Effect.fnUntraced(function* (
    principal: RunPrincipal,
    call: MadeCall,
    status: CallStatus,
    result: Schema.Json,
    decision: "execute" | "refuse" | null
  ) {
    const { agentId, contextName, runId, userId } = principal
    const id = (yield* ids.next) as ToolCallId
    const { arguments: args, coerced, id: callId, name: tool } = call
    yield* toolCalls.keep({
      id,
      runId,
      agentId,
      userId,
      contextName,
      callId,
      tool,
      arguments: args,
      coerced: coerced ?? null,
      status,
      decision,
      promotionId: null,
      result,
      reads: []
    })
    return id
  })

  /** Records that a call has begun. */
  const begin = (principal: RunPrincipal, call: MadeCall, log: LogCursor, isReadOnly: boolean) =>
    log
      .write((end) =>
        held(
          principal,
          Effect.gen(function* () {
            yield* keep(principal, call, "started", null, isReadOnly ? null : "execute")
            const appended = yield* append(principal, end, [startedEvent(call)])
            yield* CrashPoint.hit("tool.beforeCommit")
            return { appended }
          })
        )
      )
      .pipe(Effect.tap(() => CrashPoint.hit("tool.afterCommit")))

  /** Records a call's outcome. */
  const settle = (
    principal: RunPrincipal,
    call: MadeCall,
    { denied, pictures = [], result, status }: Settled,
    { log, taint, wasBegun }: Before
  ): Effect.Effect<Outcome, AttemptLost> =>
    log
      .write((end) =>
        held(
          principal,
          Effect.gen(function* () {
            if (wasBegun) {
              // An earlier try whose commit response was lost has recorded it already.
              if (!(yield* toolCalls.end(principal.runId, call.id, status, result)))
                return { status, result, appended: [] }
            } else {
              const id = yield* keep(principal, call, status, result, denied ? "refuse" : null)
              if (denied) yield* denials.ofCall(principal, id, call, denied)
            }
            const untrusted = (taint ?? []).length > 0
            if (pictures.length > 0)
              yield* attachments.keepFound(eachOnce(pictures).map((picture) => ({ ...picture, untrusted })))
            const named = pictures.map(({ bytes: _bytes, ...picture }) => picture)
            const events = [
              ...(wasBegun ? [] : [startedEvent(call)]),
              endedEvent(call, status, result, named)
            ]
            const appended = yield* append(principal, end, events, taint)
            yield* CrashPoint.hit("tool.beforeCommit")
            return { status, result, appended }
          })
        ).pipe((recorded) => (wasBegun ? retryDuringOutages(recorded) : recorded))
      )
      .pipe(Effect.tap(() => CrashPoint.hit("tool.afterCommit")))

  /** Whether the call's outcome can still be recorded. */
  const isWanted = (principal: RunPrincipal): Effect.Effect<boolean> =>
    Effect.match(held(principal, Effect.void), { onFailure: () => false, onSuccess: () => true }).pipe(
      // When the database is unreachable, the outcome counts as wanted.
      Effect.catchDefect(() => Effect.succeed(true))
    )

  return { look, begin, settle, isWanted }
})

/** Removes pictures with equal bytes. */
const eachOnce = (pictures: ReadonlyArray<FoundPicture>): ReadonlyArray<FoundPicture> => [
  ...new Map(pictures.map((picture) => [picture.digest, picture])).values()
]

// The part of a foreign call without an open transaction.
//
// Before a call the server's list is compared with the pins. A call has a deadline and ends at once when its run aborts it;
// when the run's fiber is interrupted, the call gets a short grace period.

const makeForeignWork = Effect.gen(function* () {
  const connections = yield* ExternalConnections
  const database = yield* Database
  const servers = yield* McpServers

  /** Lists again, and marks the tools that changed since a person reviewed them. */
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

  /** Returns the server's list, as fresh as a call needs it. */
  const listOf = Effect.fnUntraced(function* (
    projectId: ProjectId,
    connection: Connection,
    server: KeptServer,
    tool: PinnedTool
  ) {
    const { client, listed } = connection
    const now = yield* Clock.currentTimeMillis
    const isFresh = listed !== undefined && now - listed.at < externalLimits.relistMs && !client.hasNews()
    // Another worker may have pinned tools that this connection has not listed yet.
    if (isFresh && isAsPinned(tool, listed.tools)) return listed.tools
    const tools = yield* compare(projectId, connection, server)
    const missing = client.missing?.()
    // A tool that an incomplete list contains can be called.
    const isEnough =
      missing === undefined ||
      (tools.some(({ name }) => name === tool.name) && missing.isForgotten !== true && !client.isClosed())
    return isEnough ? tools : yield* missing
  })

  /**
   * Stores why the server could not be used. Skips a repeated fault without a new try, and a member who has not signed in, which
   * is no fault of the server. Ignores an unreachable database, because the call's outcome matters more.
   */
  const note = (projectId: ProjectId, server: KeptServer, fault: ExternalFault | undefined) => {
    if (fault?.isSignedOut === true && oauthOf(server.config)?.per === "member") return Effect.void
    const error = fault?.message ?? null
    const isKnown = fault === undefined ? wasReached(server) : fault.isRepeated || server.lastError === error
    if (isKnown) return Effect.void
    return Effect.catchCause(database.inProject(projectId, servers.noteError(server, error)), (cause) =>
      isBrokenByAway(cause) ? reportOutage(Cause.squash(cause)) : Effect.failCause(cause)
    )
  }

  /** Returns a connection on which the tool may be called: the server is reachable and lists the pinned tool. */
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
    // A session that the server has forgotten is opened again, once.
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
   * **Details** When `abort` completes, the call is aborted for the reason it returns, and the server is notified. An
   * interruption waits for a grace period while the outcome `isWanted`; then the call is aborted in the same way.
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
      // The server refused the message, so the call was not made; a second refusal is reported.
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
    // After the call and outside its deadline: the outcome is known and does not depend on this.
    if (fault?.outcome === "unmade") yield* note(projectId, server, fault)
    return exit
  }, Effect.uninterruptible)

  return { ready, make }
})

/** One call to make. */
interface Work {
  readonly projectId: ProjectId
  readonly server: KeptServer
  /** The member the run works for. */
  readonly member: UserId | null
  readonly tool: PinnedTool
  readonly args: Schema.Json
}

/** Waits for interrupted work within the grace period. */
const partFrom = Effect.fnUntraced(function* <A, E>(
  working: Fiber.Fiber<A, E>,
  parting: Deferred.Deferred<void>,
  isWanted: Effect.Effect<boolean>
) {
  const timer = yield* Effect.flatMap(isWanted, (is) =>
    is ? Effect.sleep(externalLimits.partingMs) : Effect.void
  ).pipe(Effect.andThen(Deferred.succeed(parting, undefined)), Effect.forkDetach)
  const exit = yield* Fiber.await(working)
  yield* Fiber.interrupt(timer)
  return exit
})

const asUnmade = (why: ExternalFault | ChangeRefused): ExternalFault =>
  why._tag === "ChangeRefused" ? unmade(why.detail) : why

const asListed = ({ inputSchema, name }: PinnedTool): Pick<Tool, "name" | "inputSchema"> => ({
  name,
  inputSchema: { ...inputSchema, type: "object" }
})

const isAsPinned = (tool: PinnedTool, listed: ReadonlyArray<Tool>): boolean =>
  changedTools([tool], listed).length === 0

/** The refusal of a tool that differs from its pin. */
const hasChanged = (
  { config }: Pick<KeptServer, "config">,
  { name }: Pick<PinnedTool, "name">
): ChangeRefused =>
  refused(
    "notPermitted",
    `${config.name} describes ${name} otherwise than when a person looked: it is not called until an admin refreshes the server's tools`
  )
