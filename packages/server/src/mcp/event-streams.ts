/**
 * Live streams of one kind of event to one client each.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * A stream is a cursor that moves on: it reads behind its place whenever the feed
 * grows, so nothing is missed and nothing comes twice, also over connections that
 * break, for a client comes back with the last cursor. What is said to a client is
 * not known to be taken, so a stream that has said much ends and is opened again.
 * Before anything is told the token is looked at: whoever lost it or the project
 * hears nothing from that moment on.
 */
import type { ProtocolError, ServerContext } from "@modelcontextprotocol/server"
import { Clock, Context, Effect, Layer } from "effect"
import { Database } from "../database/database.ts"
import { streamLimits } from "../http/stream-limits.ts"
import { Tokens } from "../http/tokens.ts"
import { nextWakeUp, WakeUps } from "../outbox/wake-ups.ts"
import { whoIs } from "./caller.ts"
import { cursorAt } from "./event-cursors.ts"
import { eventLimits } from "./event-limits.ts"
import { eventFault } from "./event-params.ts"
import { type Beginning, EventReading, type Listening } from "./event-reading.ts"
import type { McpCaller } from "./part.ts"
import { gone, makePlaces } from "./streams.ts"

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
      const tokens = yield* Tokens
      const wakeUps = yield* WakeUps
      const places = makePlaces({ ofOwner: eventLimits.streamsPerUser, inAll: eventLimits.streams }, () =>
        eventFault.exhausted(
          "streams",
          eventLimits.streamsPerUser,
          "Too many streams are open: close one first"
        )
      )

      const follow = Effect.fnUntraced(function* (
        { projectId, tokenHash }: McpCaller,
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
          const isTelling = seen.occurrences.length > 0 || now - saidAt >= streamLimits.heartbeatIntervalMs
          if (isTelling && !(yield* whoIs(tokens, { projectId, tokenHash }))) return
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
        caller: McpCaller,
        listening: Listening,
        beginning: Beginning,
        context: ServerContext
      ) {
        const { principal, projectId } = caller
        const { mcpReq } = context
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
        yield* Effect.raceFirst(follow(caller, listening, position, notify), gone(context))
      }, Effect.scoped)

      return EventStreams.of({ stream })
    })
  )
}

const subscriptionKey = "io.modelcontextprotocol/subscriptionId"
