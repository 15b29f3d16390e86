/**
 * A model server that can be taken away while it runs: it refuses, breaks off, falls silent or leaves its port.
 *
 * It speaks OpenAI's chat completions and keeps when it was asked and for which model. A model that no outage names goes on answering.
 */
import { createServer, type ServerResponse } from "node:http"
import { Effect } from "effect"
import { chatChunk, chatEnd, toEvent } from "./fake-model-server.ts"

/** How a request fails: a status, a web page, after a first request without an answer or not, an answer that breaks off or stops coming in the middle, or no connection at all. */
export type ProviderFault =
  | { readonly type: "status"; readonly status: number; readonly headers?: Record<string, string> }
  | { readonly type: "page"; readonly status: number }
  | { readonly type: "silentFirst"; readonly status: number }
  | { readonly type: "cut" }
  | { readonly type: "halfOpen" }
  | { readonly type: "closed" }

export interface AskedModelAt {
  readonly model: string
  readonly atMs: number
  readonly failed: boolean
  /** The text of the last message of the user. */
  readonly input: string
}

/** Starts one until the scope ends. */
export const failingProvider = Effect.gen(function* () {
  const requests: Array<AskedModelAt> = []
  const hanging = new Set<ServerResponse>()
  let outage: { readonly fault: ProviderFault; readonly isOf: (model: string) => boolean } | undefined

  const server = createServer((request, response) => {
    const body: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => body.push(chunk))
    request.on("end", () => {
      const asked = JSON.parse(Buffer.concat(body).toString("utf8")) as {
        readonly model: string
        readonly messages: ReadonlyArray<{ readonly role: string; readonly content: unknown }>
      }
      const fault = outage?.isOf(asked.model) === true ? outage.fault : undefined
      const input = JSON.stringify(asked.messages.findLast(({ role }) => role === "user")?.content ?? "")
      requests.push({ model: asked.model, atMs: performance.now(), failed: fault !== undefined, input })
      if (fault === undefined) answer(response)
      else if (fault.type === "silentFirst") {
        outage = { fault: { type: "status", status: fault.status }, isOf: () => true }
      } else fail(response, fault, hanging)
    })
  })
  const listenOn = (port: number) =>
    Effect.callback<void>((resume) => void server.listen(port, "127.0.0.1", () => resume(Effect.void)))
  const close = Effect.callback<void>((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })
  yield* Effect.acquireRelease(listenOn(0), () => (server.listening ? close : Effect.void))
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0

  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    /** From now on requests fail; only those for one model, where one is named. */
    goAway: (fault: ProviderFault, model?: string) =>
      Effect.suspend(() => {
        outage = { fault, isOf: (asked) => model === undefined || asked === model }
        return fault.type === "closed" ? close : Effect.void
      }),
    /** Ends the connections of streams that are half open, as a network does that has forgotten them. */
    tear: Effect.sync(() => {
      for (const response of hanging) response.destroy()
      hanging.clear()
    }),
    comeBack: Effect.suspend(() => {
      outage = undefined
      return server.listening ? Effect.void : listenOn(port)
    })
  }
})

const answer = (response: ServerResponse): void => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.end([chatChunk({ content: "Done." }), ...chatEnd("stop")].map(toEvent).join(""))
}

const fail = (
  response: ServerResponse,
  fault: Exclude<ProviderFault, { readonly type: "silentFirst" }>,
  hanging: Set<ServerResponse>
): void => {
  if (fault.type === "status") {
    const error = { message: `Refused with ${fault.status}`, type: "server_error" }
    response
      .writeHead(fault.status, { "content-type": "application/json", ...fault.headers })
      .end(JSON.stringify({ error }))
    return
  }
  if (fault.type === "page") {
    response
      .writeHead(fault.status, { "content-type": "text/html" })
      .end("<!doctype html><title>Welcome to nginx!</title>")
    return
  }
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.write(toEvent(chatChunk({ content: "Half of" })), () => {
    if (fault.type === "cut") response.destroy()
    else hanging.add(response)
  })
}
