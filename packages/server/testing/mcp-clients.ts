/**
 * The words in which stories come to the MCP door, as clients do.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { Effect, type Scope } from "effect"
import { type Doors, eventually, type Json } from "./platform.ts"

export type Revision = "2025-11-25" | "2026-07-28"
export const revisions: ReadonlyArray<Revision> = ["2025-11-25", "2026-07-28"]

/** The official client at an address of the door, until the scope ends. */
export const connect = (
  doors: Doors,
  path: string,
  revision: Revision,
  headers: Record<string, string> = { authorization: `Bearer ${doors.token}` }
) =>
  Effect.acquireRelease(
    Effect.promise(() => {
      const client = new Client(
        { name: "a-story", version: "1" },
        revision === "2026-07-28" ? { versionNegotiation: { mode: { pin: revision } } } : {}
      )
      const transport = new StreamableHTTPClientTransport(new URL(path, doors.url), {
        requestInit: { headers }
      })
      return client.connect(transport).then(() => client)
    }),
    (client) => Effect.promise(() => client.close())
  )

/** Whatever is said. */
const anything = {
  "~standard": { version: 1, vendor: "a-story", validate: (value: unknown) => ({ value }) }
} as const

/** Sends a request of which the client has no method; a refusal is an answer, too. */
export const asking = (client: Client, method: string, params: Json): Effect.Effect<Json> =>
  Effect.promise(() =>
    client.request({ method, params }, anything).then(
      (result) => result,
      ({ code, message }: Json) => ({ error: { code, message } })
    )
  )

/** A stream of events that the client follows, one at a time. */
export interface FollowedEvents {
  /** The events, once so many have come. */
  readonly until: (count: number) => Effect.Effect<ReadonlyArray<Json>>
  /** Breaks the connection off. */
  readonly cut: Effect.Effect<void>
}

/** Lets the client follow a stream of events, until the scope ends. */
export const followEvents = (
  client: Client,
  params: Json
): Effect.Effect<FollowedEvents, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const heard: Array<Json> = []
        const line = new AbortController()
        client.setNotificationHandler(
          "notifications/events/event",
          { params: anything },
          (event: unknown) => void heard.push(event as Json)
        )
        const over = client
          .request({ method: "events/stream", params }, anything, { signal: line.signal })
          .then(
            () => undefined,
            () => undefined
          )
        const cut = Effect.promise(() => {
          line.abort()
          return over
        })
        return { heard, cut }
      }),
      ({ cut }) => cut
    ),
    ({ cut, heard }) => ({
      until: (count) =>
        eventually(
          Effect.sync(() => [...heard]),
          ({ length }) => length >= count
        ),
      cut
    })
  )

/** One message as it goes over the wire, and what came back; of a stream its messages. */
export const sendMessage = (
  doors: Doors,
  path: string,
  message: unknown,
  headers: Record<string, string | undefined> = {}
) =>
  Effect.promise(() => {
    const given = {
      authorization: `Bearer ${doors.token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers
    }
    const sent = Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined)
    return fetch(new URL(path, doors.url), {
      method: "POST",
      headers: { "x-request-id": "story", ...Object.fromEntries(sent) },
      body: typeof message === "string" ? message : JSON.stringify(message)
    }).then((response) =>
      response.text().then((text) => ({
        status: response.status,
        headers: response.headers,
        messages: messagesOf(text)
      }))
    )
  })

const messagesOf = (text: string): ReadonlyArray<Json> =>
  text.startsWith("{") || text.startsWith("[")
    ? [JSON.parse(text)]
    : text
        .split("\n")
        .filter((line) => line.startsWith("data: {"))
        .map((line) => JSON.parse(line.slice(6)))

/** The message that begins a session of the revision 2025-11-25. */
export const opening = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "a-story", version: "1" }
  }
}
