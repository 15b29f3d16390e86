/**
 * The words in which stories let a guard judge, and look at what it was shown.
 */
import type { Json } from "./platform.ts"

/** What a guard says that has found nothing. */
export const safe = { say: "SAFE" }

/** What a guard was asked to judge, one JSON value for each quoted piece. */
export const judgedIn = (request: Json): ReadonlyArray<Json> =>
  textOf(request.messages.at(-1).content)
    .split("\n")
    .slice(1)
    .map((line) => JSON.parse(line))

/** The words of a message, in whichever form. */
export const textOf = (content: Json): string =>
  typeof content === "string" ? content : content.map((part: Json) => part.text).join("")
