/**
 * The Events extension at the MCP door: the graph's log of events as a source (SEP-3415).
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * Whoever may read the project may listen to it, by polls, over a stream or at an
 * address of his own. All three read the same feed by the same cursors, so a
 * client may change from one to another and miss nothing.
 */
import type { Server, ServerCapabilities } from "@modelcontextprotocol/server"
import { Effect, Schema } from "effect"
import { Database } from "../database/database.ts"
import { Closing } from "../http/closing.ts"
import { cursorAt } from "./event-cursors.ts"
import { eventLimits } from "./event-limits.ts"
import { PollParams, pollSize, readBeginning, readListening, StreamParams } from "./event-params.ts"
import { EventReading } from "./event-reading.ts"
import { EventSubscribing } from "./event-subscribing.ts"
import { EventStreams } from "./event-streams.ts"
import { listedEvents } from "./event-types.ts"
import { anyParams, readParams } from "./method-params.ts"
import type { McpCaller, McpPart, RunForServer } from "./part.ts"

export const eventsExtension = "io.modelcontextprotocol/events"

/** Clients that were made before the extension was final look for it beside the other capabilities. */
const capabilities: ServerCapabilities & { readonly events: object } = {
  extensions: { [eventsExtension]: {} },
  events: {}
}

const ListParams = Schema.Struct({ cursor: Schema.optional(Schema.NullOr(Schema.String)) })

/** The part, on the services of the platform; its streams end when the server stops. */
export const eventsPart: Effect.Effect<
  McpPart,
  never,
  Closing | Database | EventReading | EventStreams | EventSubscribing
> = Effect.gen(function* () {
  const database = yield* Database
  const reading = yield* EventReading
  const streams = yield* EventStreams
  const subscribing = yield* EventSubscribing
  const closing = yield* Closing

  const poll = Effect.fn("mcp.events.poll")(function* (
    { projectId }: McpCaller,
    params: Readonly<Record<string, unknown>>
  ) {
    const asked = yield* readParams(PollParams, params)
    const listening = yield* readListening(asked)
    const beginning = yield* readBeginning(projectId, asked)
    return yield* database.inProject(
      projectId,
      Effect.gen(function* () {
        const { position, truncated } = yield* reading.begin(beginning)
        const seen = yield* reading.look(listening, position, pollSize(asked.maxEvents))
        return {
          events: seen.occurrences.map(({ position: _place, ...occurrence }) => occurrence),
          cursor: cursorAt(projectId, seen.position),
          truncated,
          hasMore: seen.hasMore,
          nextPollMs: eventLimits.nextPollMs
        }
      })
    )
  })

  const extend =
    (caller: McpCaller) =>
    (server: Server, run: RunForServer): void => {
      server.setRequestHandler("events/list", anyParams, (params) =>
        run(Effect.as(readParams(ListParams, params), { events: listedEvents }))
      )
      server.setRequestHandler("events/poll", anyParams, (params) => run(poll(caller, params)))
      server.setRequestHandler("events/subscribe", anyParams, (params) =>
        run(Effect.map(subscribing.subscribe(caller, params), (kept) => ({ ...kept })))
      )
      server.setRequestHandler("events/unsubscribe", anyParams, (params) =>
        run(Effect.as(subscribing.unsubscribe(caller, params), {}))
      )
      server.setRequestHandler("events/stream", anyParams, (params, context) =>
        run(
          Effect.gen(function* () {
            const asked = yield* readParams(StreamParams, params)
            const listening = yield* readListening(asked)
            const beginning = yield* readBeginning(caller.projectId, asked)
            yield* Effect.raceFirst(streams.stream(caller, listening, beginning, context), closing.begun)
            return {}
          })
        )
      )
    }

  return {
    name: "events extension",
    offerTo: (caller) => ({
      capabilities,
      extend: extend(caller)
    })
  }
})
