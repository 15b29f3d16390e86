/**
 * The words in which stories speak the MCP extensions: one message of 2026-07-28 at a time, as it goes over the wire.
 */
import { Effect } from "effect"
import { eventually, type Json, type Story } from "./platform.ts"

export const tasksExtension = "io.modelcontextprotocol/tasks"

/** A client that knows tasks and shows forms to a person. */
export const askable = { elicitation: {}, extensions: { [tasksExtension]: {} } }

/** The address of a story's project at the MCP door. */
export const addressOf = ({ projectId }: { readonly projectId: string }): string =>
  `/api/projects/${projectId}/mcp`

/** A message of the revision 2026-07-28, with what its client can do. */
export const modernMessage = (
  method: string,
  params: Json,
  capabilities: Json = askable,
  id: number = 1
) => ({
  jsonrpc: "2.0",
  id,
  method,
  params: {
    ...params,
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "a-story", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": capabilities
    }
  }
})

/** The headers that go with it. */
export const modernHeaders = (story: Story, method: string, params: Json): Record<string, string> => ({
  authorization: `Bearer ${story.token}`,
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": method,
  ...(params.taskId === undefined && params.name === undefined
    ? {}
    : { "mcp-name": params.taskId ?? params.name })
})

/** Sends one message and answers what came back: a result or an error. */
export const rpc = (
  story: Story,
  method: string,
  params: Json = {},
  capabilities: Json = askable
): Effect.Effect<Json> =>
  Effect.promise(() =>
    fetch(story.url + addressOf(story), {
      method: "POST",
      headers: modernHeaders(story, method, params),
      body: JSON.stringify(modernMessage(method, params, capabilities))
    }).then((response) => response.text().then((text) => JSON.parse(text)))
  )

/** The result of a message; dies of an error. */
export const resultOf = (
  story: Story,
  method: string,
  params: Json = {},
  capabilities: Json = askable
): Effect.Effect<Json> =>
  Effect.flatMap(rpc(story, method, params, capabilities), ({ error, result }) =>
    error === undefined ? Effect.succeed(result) : Effect.die(new Error(JSON.stringify(error)))
  )

/** A run as a task. */
export const taskOf = (story: Story, run: Json, capabilities: Json = askable): Effect.Effect<Json> =>
  resultOf(story, "tasks/get", { taskId: run.id }, capabilities)

/** A run as a task, once it is in a state. */
export const taskWhen = (story: Story, run: Json, status: string): Effect.Effect<Json> =>
  eventually(taskOf(story, run), (task) => task.status === status)

/** Answers what a task asks. */
export const answering = (story: Story, run: Json, inputResponses: Json): Effect.Effect<Json> =>
  rpc(story, "tasks/update", { taskId: run.id, inputResponses })

/** What a person fills in. */
export const filled = (content: Json) => ({ action: "accept", content })
