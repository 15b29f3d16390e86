/**
 * The places of the API that take a text: what is sent there, and where it comes out again.
 */
import type { Json } from "../packages/server/testing/platform.ts"
import type { Furnished } from "./furnishing.ts"
import type { Request } from "./target.ts"

/** A place where a text goes in, and where it comes out. */
export interface Place {
  readonly name: string
  readonly request: (text: string, at: number) => Request
  /** The text in the answer. */
  readonly told?: (body: Json, text: string) => unknown
  /** Where to ask for it again, and the text there; the answer's own form by itself. */
  readonly again?: (body: Json, text: string) => string
  readonly beginsRun?: true
}

/** Every place of a project. */
export const placesIn = (room: Furnished): ReadonlyArray<Place> =>
  [graphPlaces, agentPlaces, spokenPlaces, toolPlaces, peoplePlaces, filePlaces, addressPlaces].flatMap(
    (places) => places(room)
  )

const postsTo =
  (path: string) =>
  (to: string, body: unknown): Request => ({ method: "POST", path: `${path}${to}`, body })

/** Where something lies in a list that answered with its id. */
const readsFrom = (path: string) => (list: string) => (body: Json) => `${path}/${list}/${body.id}`

/** Objects and relationships. */
const graphPlaces = ({ objectId, otherId, path }: Furnished): ReadonlyArray<Place> => {
  const post = postsTo(path)
  const byId = readsFrom(path)
  return [
    {
      name: "an object's type",
      request: (text) => post("/objects", { type: text }),
      told: (body) => body.type,
      again: byId("objects")
    },
    {
      name: "an object's key",
      request: (text) => post("/objects", { type: "Keyed", key: text }),
      told: (body) => body.key,
      again: byId("objects")
    },
    {
      name: "a property's name",
      request: (text) => post("/objects", { type: "Named", properties: { [text]: 1 } }),
      told: (body) => Object.keys(body.properties)[0],
      again: byId("objects")
    },
    {
      name: "a property's value",
      request: (text) => post("/objects", { type: "Valued", properties: { text } }),
      told: (body) => body.properties.text,
      again: byId("objects")
    },
    {
      name: "a value in a patch",
      request: (text) => ({
        method: "PATCH",
        path: `${path}/objects/${otherId}`,
        body: { properties: { deep: { [text]: [text] } } }
      }),
      told: (body, text) => body.properties.deep[text][0]
    },
    {
      name: "a relationship's type",
      request: (text) => post("/relationships", { type: text, fromId: objectId, toId: otherId }),
      told: (body) => body.type,
      again: byId("relationships")
    },
    {
      name: "a relationship's value",
      request: (text, at) =>
        post("/relationships", { type: `T${at}`, fromId: objectId, toId: otherId, properties: { text } }),
      told: (body) => body.properties.text,
      again: byId("relationships")
    }
  ]
}

/** Definitions of agents. */
const agentPlaces = ({ path }: Furnished): ReadonlyArray<Place> => {
  const post = postsTo(path)
  const byId = readsFrom(path)
  const agent = (at: number, overrides: Json) =>
    post("/agents", {
      name: `agent-${at}-${Object.keys(overrides)[0]}`,
      prompt: "x",
      triggerType: "manual",
      ...overrides
    })
  return [
    {
      name: "an agent's name",
      request: (text, at) => agent(at, { name: text }),
      told: (body) => body.name,
      again: byId("agents")
    },
    {
      name: "an agent's role",
      request: (text, at) => agent(at, { role: text }),
      told: (body) => body.role ?? "",
      again: byId("agents")
    },
    {
      name: "an agent's prompt",
      request: (text, at) => agent(at, { prompt: text }),
      told: (body) => body.prompt,
      again: byId("agents")
    },
    {
      name: "an agent's cron",
      request: (text, at) => agent(at, { triggerType: "schedule", cronSchedule: text }),
      told: (body) => body.cronSchedule
    },
    {
      name: "a model's name",
      request: (text, at) => agent(at, { model: { provider: "openai", name: text } }),
      told: (body) => body.model.name
    },
    {
      name: "a script",
      request: (text, at) =>
        agent(at, {
          systemPrompt: text,
          model: { provider: "scripted", name: "s", script: { rules: [{ say: text }] } }
        })
    }
  ]
}

/** What is said to agents. */
const spokenPlaces = ({ agentId, path }: Furnished): ReadonlyArray<Place> => {
  const post = postsTo(path)
  const byId = readsFrom(path)
  return [
    {
      name: "a trigger's input",
      beginsRun: true,
      request: (text) => post(`/agents/${agentId}/trigger`, { input: { [text]: text } }),
      told: (body, text) => body.trigger.input[text],
      again: byId("runs")
    },
    {
      name: "a conversation's title",
      request: (text) => post("/conversations", { agentId, title: text }),
      told: (body) => body.title,
      again: byId("conversations")
    },
    {
      name: "a chat message",
      beginsRun: true,
      request: (text) => post("/chat", { agentId, message: text }),
      told: (body, text) => (body.status === "completed" ? text : body.status)
    },
    {
      name: "a context's name",
      request: (text) => post("/contexts", { name: text, agentId }),
      told: (body) => body.name,
      again: (body) => `${path}/contexts/${body.name}`
    },
    {
      name: "a context's message",
      request: (text) =>
        post("/contexts/listener/events", {
          type: "UserMessageEvent",
          content: text,
          triggersAgentTurn: false
        })
    },
    {
      name: "a completion",
      beginsRun: true,
      request: (text) =>
        post("/v1/chat/completions", {
          model: "listener",
          messages: [
            { role: "system", content: text },
            { role: "user", content: text }
          ]
        })
    }
  ]
}

/** Todos, and tools at the MCP door. */
const toolPlaces = ({ path }: Furnished): ReadonlyArray<Place> => {
  const post = postsTo(path)
  const byId = readsFrom(path)
  const mcp = (tool: string, input: Json) => ({
    ...post("/mcp", {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: tool, arguments: input }
    }),
    headers: { accept: "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25" }
  })
  return [
    {
      name: "a todo's title",
      request: (text) => post("/tasks", { title: text }),
      told: (body, text) => (body.title === text.trim() ? text : body.title),
      again: byId("tasks")
    },
    {
      name: "a todo's description",
      request: (text) => post("/tasks", { title: "x", description: text }),
      told: (body) => body.description ?? "",
      again: byId("tasks")
    },
    {
      name: "a todo's title through MCP",
      request: (text) => mcp("add_task", { title: text }),
      told: (body, text) =>
        body.result?.isError === true
          ? text
          : body.result?.structuredContent?.title === text.trim()
            ? text
            : body.result
    },
    {
      name: "an object through MCP",
      request: (text) => mcp("create_object", { type: "Mcp", properties: { [text]: text } }),
      told: (body, text) =>
        body.result?.isError === true || body.error
          ? text
          : body.result?.structuredContent?.properties?.[text]
    },
    { name: "a tool's name through MCP", request: (text) => mcp(text, {}) }
  ]
}

/** Names that people give. */
const peoplePlaces = ({ agentId, path }: Furnished): ReadonlyArray<Place> => {
  const post = postsTo(path)
  return [
    {
      name: "a project's name",
      request: (text) => ({ method: "POST", path: "/api/projects", body: { name: text } }),
      told: (body) => body.name,
      again: (body) => `/api/projects/${body.id}`
    },
    {
      name: "a member's id",
      request: (text) => post("/members", { userId: text, role: "viewer" }),
      told: (body) => body.userId,
      again: (body) => `${path}/members/${encodeURIComponent(body.userId)}`
    },
    { name: "a token's name", request: (text) => post("/tokens", { name: text }), told: (body) => body.name },
    {
      name: "a webhook's name",
      request: (text) => post(`/agents/${agentId}/webhooks`, { name: text }),
      told: (body) => body.name
    }
  ]
}

/** Bodies that are files. */
const filePlaces = ({ path }: Furnished): ReadonlyArray<Place> => {
  const post = postsTo(path)
  return [
    {
      name: "a line of an import",
      request: (text) => ({
        ...post(
          "/import?format=jsonl",
          `${JSON.stringify({ type: "Line", key: text, properties: { text } })}\n`
        ),
        headers: { "content-type": "application/octet-stream" }
      })
    },
    {
      name: "a line that is the text",
      request: (text) => ({
        ...post("/import?format=csv&type=Row", text),
        headers: { "content-type": "application/octet-stream" }
      })
    },
    {
      name: "a file",
      request: (text) => ({
        ...post(`/attachments?fileName=${encodeURIComponent(text)}`, text),
        headers: { "content-type": "text/plain" }
      })
    },
    { name: "a whole body", request: (text) => post("/objects", text) }
  ]
}

/** Headers that say nothing of who sends what. */
const harmless = [
  "accept",
  "if-match",
  "idempotency-key",
  "last-event-id",
  "mcp-session-id",
  "x-request-id",
  "traceparent",
  "x-forwarded-for",
  "forwarded"
]

/** Parameters, steps of an address, and headers. */
const addressPlaces = ({ agentId, objectId, path }: Furnished): ReadonlyArray<Place> => {
  const query = (at: string, name: string) => ({
    name: `the parameter ${name} of ${at}`,
    request: (text: string) => ({ method: "GET", path: `${path}${at}?${name}=${encodeURIComponent(text)}` })
  })
  const segment = (method: string, before: string, after = "") => ({
    name: `the address ${before}`,
    request: (text: string) => ({
      method,
      path: `${path}${before}/${segmentOf(text)}${after}`,
      ...(method === "POST" ? { body: {} } : {})
    })
  })
  return [
    ...["query", "where", "key", "type", "cursor", "limit", "asOf", "sort"].map((name) =>
      query("/objects", name)
    ),
    ...["cursor", "status", "agentId", "from"].map((name) => query("/runs", name)),
    query("/events", "after"),
    query("/tool-calls", "userId"),
    segment("GET", "/objects"),
    segment("PATCH", "/objects"),
    segment("GET", "/contexts"),
    segment("GET", "/members"),
    segment("GET", "/attachments"),
    segment("POST", `/agents`, "/trigger"),
    segment("GET", `/agents/${agentId}/versions`),
    ...[["authorization"], ["content-type"], ["cookie", "origin"], harmless].map((headers) => ({
      name: `the header ${headers[0]}`,
      request: (text: string): Request => ({
        method: "PATCH",
        path: `${path}/objects/${objectId}`,
        body: { properties: { seen: 1 } },
        // A client can send what a header may hold; other bytes go over the wire elsewhere.
        headers: Object.fromEntries(headers.map((header) => [header, text.replace(/[^\t\x20-\x7e]/g, "")]))
      })
    }))
  ]
}

/** A text in a path; a client leaves a dot and two dots out of an address, so they are asked for with something behind them. */
const segmentOf = (text: string): string =>
  /^\.{1,2}$/.test(text) ? `${text}%20` : encodeURIComponent(text) || "%20"
