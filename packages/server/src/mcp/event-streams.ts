/**
 * Live streams of one kind of event to one client each.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * A stream is a cursor that moves on: it reads behind its place whenever the feed
 * grows, so nothing is missed and nothing comes twice, also over connections that
 * break, for a client comes back with the last cursor. What is said to a client is
 * not known to be taken, so a stream that has said much ends and is opened again.
 * Whether its client may still listen is the door's to look at.
 */
import type { ProtocolError, ServerContext } from "@modelcontextprotocol/server"
import type { ProjectId } from "@tropism/domain/ids"
import { Clock, Context, Effect, Layer } from "effect"
import { Database } from "../database/database.ts"
import { streamLimits } from "../http/stream-limits.ts"
import { nextWakeUp, WakeUps } from "../outbox/wake-ups.ts"
import { cursorAt } from "./event-cursors.ts"
import { eventLimits } from "./event-limits.ts"
import { eventFault } from "./event-params.ts"
import { type Beginning, EventReading, type Listening } from "./event-reading.ts"
import type { McpCaller } from "./part.ts"

type Notify = (kind: string, params: Record<string, unknown>) => Effect.Effect<void>

export class EventStreams extends Context.Service<
  EventStreams,
  {
    /** Tells what happens until the client goes or has been told much. */
    readonly stream: (
      caller: McpCaller,
      listening: Listening,
      beginning: Beginning,
      context: ServerContext
    ) => Effect.Effect<void, ProtocolError>
  }
>()("@tropism/server/mcp/EventStreams") {
  static readonly layer = Layer.effect(
    EventStreams,
    Effect.gen(function* () {
      const database = yield* Database
      const reading = yield* EventReading
      const wakeUps = yield* WakeUps
      const places = makePlaces()

      const follow = Effect.fnUntraced(function* (
        projectId: ProjectId,
        listening: Listening,
        from: number,
        notify: Notify
      ) {
        const mailbox = yield* wakeUps.listen(`feed:${projectId}`)
        let [position, chars, saidAt] = [from, 0, yield* Clock.currentTimeMillis]
        while (chars < eventLimits.streamMaxChars) {
          const seen = yield* database.inProject(
            projectId,
            reading.look(listening, position, eventLimits.pollEvents)
          )
          position = seen.position
          const now = yield* Clock.currentTimeMillis
          for (const { position: place, ...occurrence } of seen.occurrences) {
            yield* notify("event", { ...occurrence, cursor: cursorAt(projectId, place) })
            chars += JSON.stringify(occurrence).length
            saidAt = now
          }
          if (now - saidAt >= streamLimits.heartbeatIntervalMs) {
            yield* notify("heartbeat", { cursor: cursorAt(projectId, position) })
            saidAt = now
          }
          if (!seen.hasMore) yield* nextWakeUp(mailbox, streamLimits.heartbeatIntervalMs)
        }
      }, Effect.scoped)

      const stream = Effect.fn("EventStreams.stream")(function* (
        { principal, projectId }: McpCaller,
        listening: Listening,
        beginning: Beginning,
        { mcpReq }: ServerContext
      ) {
        yield* Effect.acquireRelease(places.enter(`${projectId} ${principal.userId}`), places.leave)
        const notify: Notify = (kind, params) =>
          Effect.promise(() =>
            mcpReq.notify({
              method: `notifications/events/${kind}`,
              params: { ...params, _meta: { [subscriptionKey]: mcpReq.id } }
            })
          )
        const { position, truncated } = yield* database.inProject(projectId, reading.begin(beginning))
        yield* notify("active", { cursor: cursorAt(projectId, position), truncated })
        yield* Effect.raceFirst(follow(projectId, listening, position, notify), gone(mcpReq.signal))
      }, Effect.scoped)

      return EventStreams.of({ stream })
    })
  )
}

const subscriptionKey = "io.modelcontextprotocol/subscriptionId"

/** How many streams are open, of each owner and of all. */
const makePlaces = () => {
  const open = new Map<string, number>()
  let openInAll = 0
  return {
    enter: (owner: string): Effect.Effect<string, ProtocolError> =>
      Effect.suspend(() => {
        const count = open.get(owner) ?? 0
        if (count >= eventLimits.streamsPerUser || openInAll >= eventLimits.streams)
          return Effect.fail(
            eventFault.exhausted(
              "streams",
              eventLimits.streamsPerUser,
              "Too many streams are open: close one first"
            )
          )
        open.set(owner, count + 1)
        openInAll += 1
        return Effect.succeed(owner)
      }),
    leave: (owner: string): Effect.Effect<void> =>
      Effect.sync(() => {
        openInAll -= 1
        const left = (open.get(owner) ?? 1) - 1
        if (left === 0) open.delete(owner)
        else open.set(owner, left)
      })
  }
}

/** Until the client has gone. */
const gone = (signal: AbortSignal): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const leave = () => resume(Effect.void)
    if (signal.aborted) leave()
    signal.addEventListener("abort", leave, { once: true })
    return Effect.sync(() => signal.removeEventListener("abort", leave))
  })
