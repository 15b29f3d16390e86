/**
 * The clients of others that know tasks: the extension's own, and the official one of 2025-11-25.
 */
import { Client, type ElicitResult, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { createTaskSessionFromClient } from "@modelcontextprotocol/ext-tasks/client"
import { Effect } from "effect"
import type { Revision } from "./mcp-clients.ts"
import { addressOf, askable, modernHeaders } from "./mcp-extension-words.ts"
import type { Json, Story } from "./platform.ts"

/** What a person fills in, by what they are asked. */
export type Answers = (params: Json) => ElicitResult

const clientInfo = { name: "a-story", version: "1" }

/** Answers as they are, but for how long to wait before the next look: clients keep to that, and stories would wait with them. */
const hurrying: typeof fetch = Object.assign(
  (...request: Parameters<typeof fetch>) =>
    fetch(...request).then(
      (response) =>
        new Response(
          response.body
            ?.pipeThrough(new TextDecoderStream() as never)
            .pipeThrough(
              new TransformStream<string, string>({
                transform: (text, out) =>
                  out.enqueue(text.replaceAll(/"(pollInterval(?:Ms)?)":\d+/g, '"$1":50'))
              })
            )
            .pipeThrough(new TextEncoderStream() as never) ?? null,
          response
        )
    ),
  { preconnect: fetch.preconnect }
)

/** The official client at a story's project, which lets a person answer, until the scope ends. */
export const taskClient = (story: Story, revision: Revision, answers: Answers) =>
  Effect.acquireRelease(
    Effect.promise(() => {
      const client = new Client(clientInfo, {
        capabilities: { elicitation: { form: {} } },
        ...(revision === "2026-07-28" ? { versionNegotiation: { mode: { pin: revision } } } : {})
      })
      client.setRequestHandler("elicitation/create", ({ params }) => answers(params))
      const transport = new StreamableHTTPClientTransport(new URL(addressOf(story), story.url), {
        requestInit: { headers: { authorization: `Bearer ${story.token}` } },
        fetch: hurrying
      })
      return client.connect(transport).then(() => client)
    }),
    (client) => Effect.promise(() => client.close())
  )

/** The extension's own client, which polls, answers what is asked, and brings the result. */
export const taskSession = Effect.fnUntraced(function* (
  story: Story,
  revision: Revision,
  answers: Answers = () => ({ action: "cancel" })
) {
  const client = yield* taskClient(story, revision, answers)
  const common = { endpointId: "a-story", onInputRequest: askedBy(answers) }
  return createTaskSessionFromClient(
    client,
    revision === "2025-11-25"
      ? common
      : {
          ...common,
          rawDispatch: dispatchTo(story),
          v2RequestFraming: {
            protocolVersion: revision,
            clientInfo,
            clientCapabilities: askable
          }
        }
  )
})

const askedBy =
  (answers: Answers) =>
  ({ params }: { readonly params?: unknown }): Promise<Json> =>
    Promise.resolve(answers(params))

/** Sends a message as it is, since the official client knows no such answers. */
const dispatchTo = (story: Story) => (request: Json) => {
  const message = { jsonrpc: "2.0", id: crypto.randomUUID(), ...request }
  return hurrying(new URL(addressOf(story), story.url), {
    method: "POST",
    headers: modernHeaders(story, message.method, message.params),
    body: JSON.stringify(message)
  })
    .then((response) => response.json())
    .then(({ error, result }: Json) =>
      error === undefined ? ({ kind: "result", result } as const) : ({ kind: "error", error } as const)
    )
}
