/**
 * Makes one call of a foreign tool: recorded as begun, made, recorded with its outcome.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * No transaction is open while the server works, so a worker that dies leaves a
 * call that has begun and no outcome. Whoever takes the run over finds that, and
 * makes the call again only where the tool may be called twice; otherwise its
 * outcome is unknown, and says so. Both records carry the attempt's token. A run
 * aborts a call when its time is up or somebody interrupts its turn: the call was
 * not made, or is recorded as abandoned where it may be repeated, else as unknown.
 * An outcome that can be had again waits for those of the calls before it.
 */
import type { MadeCall } from "@tropism/domain/defined-tool"
import type { McpServerId } from "@tropism/domain/ids"
import { isAllowedTool, mayCallAgain, type PinnedTool } from "@tropism/domain/mcp-server"
import { type TaintSource, taintSentence } from "@tropism/domain/taint"
import { Context, Effect, Exit, Fiber, Layer, Option, type Schema } from "effect"
import { CrashPoint } from "../crash-point.ts"
import type { Authority } from "../graph/authority.ts"
import { type ChangeRefused, refused } from "../graph/refused.ts"
import { whyDenied } from "./denials.ts"
import { findArgumentsFault } from "./foreign-arguments.ts"
import type { ForeignFault } from "./foreign-fault.ts"
import { makeForeignRecords, type Settled } from "./foreign-records.ts"
import type { FoundPicture } from "./foreign-result.ts"
import { hasChanged, makeForeignWork } from "./foreign-work.ts"
import type { LogCursor } from "./log-append.ts"
import type { KeptServer } from "./mcp-servers.ts"
import type { AttemptLost, RunPrincipal } from "./principal.ts"
import { logRefusal, logUnknownTool } from "./refusal-log.ts"
import type { Place } from "./side-by-side.ts"
import type { Outcome } from "./toolbox.ts"

/** A foreign tool that an agent may use, as it was when its run was shown it. */
export interface ForeignTool {
  readonly server: Pick<KeptServer, "id" | "config">
  readonly tool: PinnedTool
}

export class ForeignCalls extends Context.Service<
  ForeignCalls,
  {
    /**
     * Makes a call, or answers why it is not made; in place of a tool stands why there is none to call. When `abort`
     * ends, the call is aborted for the reason it answers; one that had not begun leaves no record.
     */
    readonly call: (
      principal: RunPrincipal,
      call: MadeCall,
      wanted: ForeignTool | ChangeRefused,
      way: Way
    ) => Effect.Effect<Outcome | undefined, AttemptLost>
  }
>()("@tropism/server/tool/ForeignCalls") {
  static readonly layer = Layer.effect(
    ForeignCalls,
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

      const call = Effect.fn("ForeignCalls.call")(function* (
        principal: RunPrincipal,
        call: MadeCall,
        wanted: ForeignTool | ChangeRefused,
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

      return ForeignCalls.of({ call })
    })
  )
}

/** Ends when the run no longer waits for a call, and answers why. */
export type Abort = Effect.Effect<string>

/** What a call shares with those that are made beside it. */
export interface Way {
  readonly log: LogCursor
  readonly place: Place
  readonly abort: Abort
}

/** A call that nothing speaks against. */
interface Cleared {
  readonly server: KeptServer
  readonly tool: PinnedTool
  readonly wasBegun: boolean
}

/** The gate: everything that can be said against a call before anybody is asked. */
const clear = (
  call: MadeCall,
  wanted: ForeignTool | ChangeRefused,
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
  // What a foreign tool does, and what it is told, goes where nobody can suggest anything.
  if (authority.taintedBy.length > 0 && server.config.allowUntrusted !== true)
    return refused(
      "untrusted",
      `${taintSentence(authority.taintedBy)}: ${call.name} acts outside of the graph, where nothing can be suggested. An admin may let such runs call ${name} with allowUntrusted`
    )
  // A suggestion waits for a person; what a foreign tool does waits for nobody.
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

/** Whether a server has a say in why a call was not made. */
const hasSpoken = (why: ChangeRefused | ForeignFault): boolean =>
  why._tag === "ForeignFault" && why.isOurs !== true

/** A call that was not made, for a reason that the gate or the connection gives. */
const settledAs = (why: ChangeRefused | ForeignFault, { config }: KeptServer): Settled => {
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

/** What a call came to that the run aborted and that may be called again. */
const abandonedOutcome = (why: string): Settled => ({
  status: "abandoned",
  result: { error: `${why}The call was aborted. The tool may be called again.`, reason: "aborted" }
})

/** What the work came to. */
const outcomeOf = (
  exit: Exit.Exit<
    {
      readonly isError: boolean
      readonly result: Schema.Json
      readonly pictures: ReadonlyArray<FoundPicture>
    },
    ForeignFault
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
