/**
 * Whole answers of other providers' APIs, as server-sent events: text, and why it ends.
 *
 * The reasons are those of the providers' references: Anthropic's `stop_reason`, Gemini's `finishReason`, and
 * `incomplete_details.reason` of OpenAI's Responses.
 */
import type { Json } from "./platform.ts"

/** Claude says a text, perhaps calls a tool, and stops for a reason. */
export const claudeSays = (
  text: string,
  stop_reason: string,
  call?: { readonly id: string; readonly name: string; readonly input: Json },
  cache: Json = {}
): ReadonlyArray<Json> => {
  const usage = { input_tokens: 10, output_tokens: 5, ...cache }
  const block = (index: number, content_block: Json, delta: Json) => [
    { type: "content_block_start", index, content_block },
    { type: "content_block_delta", index, delta },
    { type: "content_block_stop", index }
  ]
  return [
    {
      type: "message_start",
      message: {
        id: "m",
        type: "message",
        role: "assistant",
        content: [],
        model: "claude",
        stop_reason: null,
        usage
      }
    },
    ...(text === "" ? [] : block(0, { type: "text", text: "" }, { type: "text_delta", text })),
    ...(call === undefined
      ? []
      : block(
          1,
          { type: "tool_use", id: call.id, name: call.name, input: {} },
          { type: "input_json_delta", partial_json: JSON.stringify(call.input) }
        )),
    { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage },
    { type: "message_stop" }
  ]
}

/** Gemini says a text and stops for a reason. */
export const geminiSays = (text: string, finishReason: string): ReadonlyArray<Json> => [
  {
    candidates: [{ content: { role: "model", parts: text === "" ? [] : [{ text }] }, finishReason }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 3, totalTokenCount: 13 }
  }
]

/** OpenAI's Responses say a text and stop; with a reason the response is incomplete. */
export const responseSays = (text: string, reason?: string): ReadonlyArray<Json> => {
  const message = { type: "message", id: "msg_1", role: "assistant", content: [] }
  const end = reason === undefined ? "completed" : "incomplete"
  return [
    { type: "response.created", response: { id: "r", created_at: 1, model: "m" } },
    { type: "response.output_item.added", output_index: 0, item: message },
    {
      type: "response.output_text.delta",
      item_id: "msg_1",
      output_index: 0,
      content_index: 0,
      delta: text
    },
    { type: "response.output_item.done", output_index: 0, item: message },
    {
      type: `response.${end}`,
      response: {
        usage: { input_tokens: 10, output_tokens: 3 },
        ...(reason === undefined ? {} : { incomplete_details: { reason } })
      }
    }
  ]
}
