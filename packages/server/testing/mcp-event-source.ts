/**
 * A foreign MCP server with events, over Streamable HTTP: a real one of the official SDK, which keeps its log or lies about it.
 */
import { createMcpHandler, Server } from "@modelcontextprotocol/server"
import { Effect, Schema } from "effect"
import { answering as sending, oddServer, sessions } from "./mcp-odd-server.ts"
import type { Json } from "./platform.ts"

/** What a story may let a source answer, instead of what is true. */
export type Answering = (params: Json, truly: (params: Json) => Json) => Json

export interface EventSourceServer {
  readonly url: string
  /** What was asked so far, oldest first. */
  readonly asked: ReadonlyArray<Json>
  /** Lets something happen. */
  readonly happen: (...ids: ReadonlyArray<string>) => void
  /** Answers in another way from now on; undefined is the truth. */
  readonly lie: (answering: Answering | undefined) => void
  /** Answers no question from now on, until it is let go; what is held then gets its answer. */
  readonly hold: () => void
  readonly letGo: () => void
}

const params = { params: Schema.toStandardSchemaV1(Schema.Record(Schema.String, Schema.Unknown)) }

/** One event as a source tells it. */
export const eventOf = (eventId: string, data: unknown = { title: eventId }, name = "order.placed") => ({
  eventId,
  name,
  timestamp: new Date().toISOString(),
  data
})

/** A server whose events happen when the story says so, until the scope ends. */
export const eventSource = ({
  offers = true,
  port = 0
}: { readonly offers?: boolean; readonly port?: number } = {}) =>
  Effect.gen(function* () {
    const log: Array<Json> = []
    const asked: Array<Json> = []
    let answering: Answering | undefined
    let gate = Promise.resolve()
    let open = () => {}
    const truly = ({ cursor, maxEvents = 50 }: Json): Json => {
      const from = cursor === undefined ? log.length : Number(cursor)
      const events = log.slice(from, from + maxEvents)
      const next = from + events.length
      return {
        events,
        cursor: String(next),
        hasMore: next < log.length,
        truncated: false,
        nextPollMs: 1_000
      }
    }
    const handler = createMcpHandler(() => {
      const server = new Server(
        { name: "orders", version: "1" },
        {
          capabilities: {
            tools: {},
            ...(offers ? { extensions: { "io.modelcontextprotocol/events": {} } } : {})
          }
        }
      )
      server.setRequestHandler("tools/list", () => Promise.resolve({ tools: [] }))
      server.setRequestHandler("events/poll", params, (given: Json) => {
        asked.push(given)
        return gate.then(() => (answering ? answering(given, truly) : truly(given))) as Promise<Json>
      })
      return server
    }, {})
    const running = yield* Effect.acquireRelease(
      Effect.sync(() =>
        Bun.serve({ port, hostname: "127.0.0.1", idleTimeout: 0, fetch: (request) => handler.fetch(request) })
      ),
      (server) => Effect.promise(() => server.stop(true))
    )
    const made: EventSourceServer = {
      url: `http://127.0.0.1:${running.port}/mcp`,
      asked,
      happen: (...ids) => ids.forEach((id) => log.push(eventOf(id))),
      lie: (how) => {
        answering = how
      },
      hold: () => {
        const held = Promise.withResolvers<void>()
        gate = held.promise
        open = held.resolve
      },
      letGo: () => open()
    }
    return made
  })

const offered = { tools: {}, extensions: { "io.modelcontextprotocol/events": {} } }

/** A server of the revision 2025-11-25, with sessions, whose events happen when the story says so, until the scope ends. */
export const sessionSource = ({ offers = true }: { readonly offers?: boolean } = {}) =>
  Effect.gen(function* () {
    const { decide, state } = sessions()
    const log: Array<Json> = []
    const offer = () => {
      state.capabilities = offered
    }
    if (offers) offer()
    const { of, url } = yield* oddServer((heard) => {
      const other = decide(heard)
      const { message } = heard
      if (other !== undefined || message?.method !== "events/poll") return other
      const events = log.slice(Number(message.params.cursor ?? log.length))
      return sending(message, { events, cursor: String(log.length), hasMore: false, nextPollMs: 1_000 })
    })
    return {
      url,
      state,
      /** How often it was asked what happened. */
      asked: () => of("events/poll").length,
      happen: (id: string) => void log.push(eventOf(id)),
      /** Whoever begins a session from now on is told of its events. */
      offer
    }
  })
