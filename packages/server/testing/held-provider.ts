/**
 * A model server whose answers a story holds back: requests for a model that is held stay open until the story answers them.
 *
 * It speaks OpenAI's chat completions. A request for any other model is answered at once.
 */
import { createServer, type ServerResponse } from "node:http"
import { Effect } from "effect"
import { chatChunk, chatEnd, toEvent } from "./fake-model-server.ts"

/** Starts one until the scope ends; `isHeld` says of which models it holds the answers, and `came` learns of each such request. */
export const heldProvider = (isHeld: (model: string) => boolean, came: () => void = () => undefined) =>
  Effect.gen(function* () {
    /** Texts of the last messages, in the order in which they came. */
    const asked: Array<string> = []
    const open = new Map<ServerResponse, string>()
    let mostOpen = 0
    const server = createServer((request, response) => {
      const body: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => body.push(chunk))
      request.on("end", () => {
        const { messages, model } = JSON.parse(Buffer.concat(body).toString("utf8")) as {
          readonly model: string
          readonly messages: ReadonlyArray<{ readonly content: unknown }>
        }
        if (!isHeld(model)) return answer(response)
        asked.push(JSON.stringify(messages.at(-1)?.content))
        open.set(response, model)
        mostOpen = Math.max(mostOpen, open.size)
        response.on("close", () => open.delete(response))
        came()
      })
    })
    const close = Effect.callback<void>((resume) => {
      server.close(() => resume(Effect.void))
      server.closeAllConnections()
    })
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () => close
    )
    const address = server.address()
    return {
      url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}/v1`,
      asked: () => asked,
      open: () => open.size,
      mostOpen: () => mostOpen,
      /** Answers those that have been open for the longest. */
      answer: (count: number) =>
        Effect.sync(() => {
          for (const response of [...open.keys()].slice(0, count)) {
            open.delete(response)
            answer(response)
          }
        }),
      /** Refuses all that are open as too many. */
      refuse: Effect.sync(() => {
        for (const response of open.keys()) {
          open.delete(response)
          response
            .writeHead(429, { "content-type": "application/json" })
            .end(JSON.stringify({ error: { message: "Slow down", type: "rate_limit" } }))
        }
      })
    }
  })

const answer = (response: ServerResponse): void => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.end([chatChunk({ content: "Done." }), ...chatEnd("stop")].map(toEvent).join(""))
}
