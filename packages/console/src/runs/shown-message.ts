/**
 * What a model was shown, message by message, as a person reads it.
 *
 * Pure. The texts are foreign; whoever shows them shows them through `Visible`.
 */

/** A part of a message: words, a tool call, what came of one, or anything else as it is. */
export type ShownPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "call"; readonly name: string; readonly value: unknown }
  | { readonly type: "result"; readonly name: string; readonly hasFailed: boolean; readonly value: unknown }
  | { readonly type: "other"; readonly name: string; readonly value: unknown }

export interface ShownMessage {
  /** Who speaks: `system`, `user`, `assistant`, `tool`. */
  readonly role: string
  readonly parts: ReadonlyArray<ShownPart>
}

/** **Details** What has another shape than a message is shown as it is: nothing that the model read is left out. */
export const shownMessage = (message: unknown): ShownMessage => {
  const { role, content } = isRecord(message) ? message : {}
  if (typeof role !== "string")
    return { role: "message", parts: [{ type: "other", name: "JSON", value: message }] }
  if (typeof content === "string") return { role, parts: [{ type: "text", text: content }] }
  return { role, parts: (Array.isArray(content) ? content : [content]).map(shownPart) }
}

const shownPart = (part: unknown): ShownPart => {
  const { type, text, name, params, result, isFailure } = isRecord(part) ? part : {}
  if (type === "text" && typeof text === "string") return { type, text }
  if (type === "tool-call" && typeof name === "string") return { type: "call", name, value: params }
  if (type === "tool-result" && typeof name === "string")
    return { type: "result", name, hasFailed: isFailure === true, value: result }
  return { type: "other", name: typeof type === "string" ? type : "JSON", value: part }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
