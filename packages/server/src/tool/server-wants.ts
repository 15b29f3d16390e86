/**
 * What a server wants to know in the middle of a call, told to the model that made it.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Nobody sits beside a run who could fill a form in, and no foreign server is lent
 * our model or shown our folders. So it is refused at once, and the model is told
 * what was asked: it may know, or ask a person itself.
 */
import { isJsonObject } from "@tropism/domain/json"
import { beginningOf } from "@tropism/domain/text-beginning"
import { foreignLimits } from "./foreign-limits.ts"
import { lineOf } from "./foreign-fault.ts"

/** One thing that a server asks for, as it was sent. */
export interface Wanted {
  readonly method: string
  readonly params: unknown
}

/** The requests of an answer that asks for input. */
export const wantedIn = (inputRequests: unknown): ReadonlyArray<Wanted> =>
  isJsonObject(inputRequests)
    ? Object.values(inputRequests).flatMap((request) =>
        isJsonObject(request) && typeof request["method"] === "string"
          ? [{ method: request["method"], params: request["params"] }]
          : []
      )
    : []

/** What is told of it, and what a model can do about it. */
export const wantsWords = (wanted: ReadonlyArray<Wanted>): string => {
  const all = wanted.slice(0, foreignLimits.wantedTold).map(wordsOf)
  return `The server asks in the middle of the call ${all.length === 0 ? "for something" : `for ${all.join(", and for ")}`}. Nobody answers that during a run: call again with arguments that say it, or ask a person first`
}

const wordsOf = ({ method, params }: Wanted): string => {
  if (method === "sampling/createMessage") return "an answer of a model (sampling)"
  if (method === "roots/list") return "folders (roots)"
  if (method !== "elicitation/create") return cut(method)
  const said = isJsonObject(params) ? params : {}
  const message = typeof said["message"] === "string" ? `: "${cut(said["message"])}"` : ""
  const schema = isJsonObject(said["requestedSchema"]) ? said["requestedSchema"] : {}
  const fields = isJsonObject(schema["properties"]) ? Object.keys(schema["properties"]) : []
  return `a person's input${message}${fields.length === 0 ? "" : ` (${cut(fields.join(", "))})`}`
}

const cut = (text: string): string => beginningOf(lineOf(text), foreignLimits.wantedMaxChars)
