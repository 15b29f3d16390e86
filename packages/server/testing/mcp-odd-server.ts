/**
 * An MCP server over HTTP whose every answer a story decides, word for word.
 *
 * It speaks the revision of 2025-11-25, or that of 2026-07-28, as far as a client
 * needs it before a call; what it does beyond is what the story makes of it. The
 * well-behaved servers of the stories are made with the official SDK.
 */
import { Effect, type Scope } from "effect"
import { addServer } from "./mcp-words.ts"
import type { Json } from "./platform.ts"
import { newStoryHere } from "./shared-server.ts"

/** One request that the server has got. */
export interface OddHeard {
  readonly method: string
  readonly headers: Headers
  /** The message of a POST. */
  readonly message: Json
  /** Whether its sender has hung up. */
  readonly isGone: () => boolean
}

/** What the story makes of a request; undefined where the server does what servers do. */
export type OddAnswer = (heard: OddHeard) => Response | Promise<Response> | undefined

export interface OddServer {
  readonly url: string
  readonly heard: ReadonlyArray<OddHeard>
  /** The requests of a method of HTTP, or the messages of a method of MCP. */
  readonly of: (method: string) => ReadonlyArray<OddHeard>
}

export const oddTool = (more: Record<string, unknown> = {}): Json => ({
  name: "lookup",
  description: "Looks a word up.",
  inputSchema: { type: "object", properties: { word: { type: "string" } } },
  ...more
})

/** An answer to a message, as JSON. */
export const answering = (message: Json, result: Json, headers: Record<string, string> = {}): Response =>
  Response.json({ jsonrpc: "2.0", id: message.id, result }, { headers })

/** The result of a call that went well. */
export const said = (text: string, more: Record<string, unknown> = {}): Json => ({
  resultType: "complete",
  content: [{ type: "text", text }],
  ...more
})

/** A stream of events, sent as they are written here. */
export const streaming = (...chunks: ReadonlyArray<string>): Response =>
  new Response(chunks.join(""), { headers: { "content-type": "text/event-stream" } })

/** A body that begins with a text and never ends. */
export const endless = (contentType: string, begins: string): Response =>
  new Response(
    new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(begins)) }),
    { headers: { "content-type": contentType } }
  )

/** An answer that never comes. */
export const never = (): Promise<Response> => new Promise(() => {})

/** Starts the server, until the scope ends. */
export const oddServer = (
  decide: OddAnswer,
  {
    isNew = false,
    port = 0,
    tools = [oddTool()]
  }: { isNew?: boolean; port?: number; tools?: ReadonlyArray<Json> } = {}
): Effect.Effect<OddServer, never, Scope.Scope> =>
  Effect.gen(function* () {
    const heard: Array<OddHeard> = []
    const answer = (request: Request): Promise<Response> =>
      request.text().then((body) => {
        const message = body === "" ? undefined : JSON.parse(body)
        const one = {
          method: request.method,
          headers: request.headers,
          message,
          isGone: () => request.signal.aborted
        }
        heard.push(one)
        return decide(one) ?? usual(one, isNew, tools)
      })
    const server = yield* Effect.acquireRelease(
      Effect.sync(() => Bun.serve({ port, hostname: "127.0.0.1", idleTimeout: 0, fetch: answer })),
      (running) => Effect.promise(() => running.stop(true))
    )
    return {
      url: `http://127.0.0.1:${server.port}/mcp`,
      heard,
      of: (method) => heard.filter((one) => one.method === method || one.message?.method === method)
    }
  })

const usual = ({ message, method }: OddHeard, isNew: boolean, tools: ReadonlyArray<Json>): Response => {
  if (method === "DELETE") return new Response(null, { status: 204 })
  if (message === undefined) return new Response(null, { status: 405 })
  const about = { capabilities: { tools: {} }, serverInfo: { name: "odd", version: "1" } }
  const cached = { resultType: "complete", ttlMs: 0, cacheScope: "private" }
  switch (message.method) {
    case "server/discover":
      return isNew
        ? answering(message, { ...cached, supportedVersions: ["2026-07-28"], ...about })
        : Response.json({
            jsonrpc: "2.0",
            id: message.id,
            error: { code: -32601, message: "Method not found" }
          })
    case "initialize":
      return answering(message, { protocolVersion: "2025-11-25", ...about })
    case "tools/list":
      return answering(message, { ...(isNew ? cached : {}), tools })
    case "tools/call":
      return answering(message, said("fig is a word."))
    default:
      return message.id === undefined ? new Response(null, { status: 202 }) : answering(message, {})
  }
}

/** A project with such a server in it. */
export const newOddShop = (
  decide: OddAnswer,
  options: Parameters<typeof oddServer>[1] = {},
  overrides: Record<string, unknown> = {}
) =>
  Effect.gen(function* () {
    const story = yield* newStoryHere
    const odd = yield* oddServer(decide, options)
    const server = yield* addServer(story, { type: "http", url: odd.url }, overrides)
    return { story, odd, server }
  })

/** A server of 2025-11-25 with sessions; the story says which of them it knows no more, or lets freeze. */
export const sessions = () => {
  const state = {
    sessions: 0,
    known: new Set<string>(),
    frozen: new Set<string>(),
    /** What it says of itself to whoever begins a session. */
    capabilities: { tools: {} } as Json
  }
  const decide: OddAnswer = ({ headers, message, method }) => {
    if (message?.method === "server/discover") return undefined
    if (message?.method === "initialize") {
      const id = `session-${(state.sessions += 1)}`
      state.known.add(id)
      return answering(
        message,
        {
          protocolVersion: "2025-11-25",
          capabilities: state.capabilities,
          serverInfo: { name: "odd", version: "1" }
        },
        { "mcp-session-id": id }
      )
    }
    const id = headers.get("mcp-session-id") ?? ""
    if (state.frozen.has(id)) return never()
    if (!state.known.has(id)) return new Response("There is no such session", { status: 404 })
    if (method === "DELETE") state.known.delete(id)
    return undefined
  }
  return { state, decide }
}

/** What a server does at a call, and as usual otherwise. */
export const atCall =
  (answer: (message: Json) => Response | Promise<Response>): OddAnswer =>
  ({ message }) =>
    message?.method === "tools/call" ? answer(message) : undefined
