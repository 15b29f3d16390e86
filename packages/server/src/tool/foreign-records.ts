/**
 * The two records of a foreign call: that it has begun, and what it came to.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Each is one transaction that holds the run, so only the attempt that has it
 * writes, and in each the row and the event of the log go together.
 */
import type { McpServerId, ToolCallId } from "@tropism/domain/ids"
import type { MadeCall } from "@tropism/domain/defined-tool"
import type { TaintSource } from "@tropism/domain/taint"
import { Effect, type Schema } from "effect"
import { Attachments } from "../agent/attachments.ts"
import { CrashPoint } from "../crash-point.ts"
import { Database, type ProjectTransaction } from "../database/database.ts"
import { Authorities } from "../graph/authority.ts"
import { Ids } from "../ids.ts"
import { throughOutages } from "../outbox/outages.ts"
import { endedEvent, startedEvent } from "./call-events.ts"
import { Denials, type Why } from "./denials.ts"
import type { FoundPicture } from "./foreign-result.ts"
import { type LogCursor, makeLogAppend } from "./log-append.ts"
import { McpServers } from "./mcp-servers.ts"
import { type AttemptLost, RunGuard, type RunPrincipal } from "./principal.ts"
import { type CallStatus, ToolCalls } from "./tool-calls.ts"
import type { Outcome } from "./toolbox.ts"

/** What a call came to. */
export interface Settled {
  readonly status: Exclude<CallStatus, "started">
  readonly result: Schema.Json
  readonly pictures?: ReadonlyArray<FoundPicture>
  /** The right that was missing. */
  readonly denied?: Why | undefined
}

/** What is there already when an outcome is recorded. */
export interface Before {
  readonly log: LogCursor
  readonly wasBegun: boolean
  /** What of the outcome is untrusted. */
  readonly taint?: ReadonlyArray<TaintSource>
}

export const makeForeignRecords = Effect.gen(function* () {
  const database = yield* Database
  const authorities = yield* Authorities
  const servers = yield* McpServers
  const guard = yield* RunGuard
  const toolCalls = yield* ToolCalls
  const denials = yield* Denials
  const ids = yield* Ids
  const attachments = yield* Attachments
  const append = yield* makeLogAppend

  /** A transaction in which only the attempt that has the run writes. */
  const held = <A>(
    principal: RunPrincipal,
    effect: Effect.Effect<A, never, ProjectTransaction>
  ): Effect.Effect<A, AttemptLost> =>
    database.inProject(principal.projectId, Effect.andThen(guard.hold(principal), effect))

  /** What is known of a call, of its server and of its agent at this moment. */
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

  /** Records what a call came to. */
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
              // A try whose answer went with the database has kept it already.
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
        ).pipe((recorded) => (wasBegun ? throughOutages(recorded) : recorded))
      )
      .pipe(Effect.tap(() => CrashPoint.hit("tool.afterCommit")))

  /** Whether what the call comes to can still be recorded. */
  const isWanted = (principal: RunPrincipal): Effect.Effect<boolean> =>
    Effect.match(held(principal, Effect.void), { onFailure: () => false, onSuccess: () => true }).pipe(
      // Nobody said that it is not.
      Effect.catchDefect(() => Effect.succeed(true))
    )

  return { look, begin, settle, isWanted }
})

/** The same bytes are kept once. */
const eachOnce = (pictures: ReadonlyArray<FoundPicture>): ReadonlyArray<FoundPicture> => [
  ...new Map(pictures.map((picture) => [picture.digest, picture])).values()
]
