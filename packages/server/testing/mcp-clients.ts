/**
 * The words in which stories come to the MCP door, as clients do.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { Effect } from "effect"
import type { Doors, Json } from "./platform.ts"

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
      headers: Object.fromEntries(sent),
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
