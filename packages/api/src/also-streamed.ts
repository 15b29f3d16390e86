/**
 * Says in the OpenAPI document that an answer may also come as a stream of events.
 *
 * Who asks for JSON gets JSON; the stream is for `Accept: text/event-stream`, or at
 * OpenAI's door for a body that says `stream`.
 */
import { OpenApi } from "effect/http-api"

/** Annotates an endpoint whose 200 is streamed to whoever asks for a stream. */
export const alsoStreamed = OpenApi.annotations({
  transform: (operation) => {
    const answered = operation["responses"]["200"]
    const content = {
      ...answered.content,
      "text/event-stream": { schema: { type: "string", description: "Server-sent events" } }
    }
    return { ...operation, responses: { ...operation["responses"], 200: { ...answered, content } } }
  }
})
