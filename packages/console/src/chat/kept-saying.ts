/**
 * What is being said, kept by the tab until its answer is there: a reload goes on with it.
 *
 * `place` is where the tab keeps it for whoever says it (`server/whose.ts`).
 */
import { Option, Schema } from "effect"
import { Saying } from "./say.ts"

const nameOf = (place: string): string => `${place}/saying`

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Saying))

/** What this tab said last and has no answer to. */
export const keptSaying = (place: string): Saying | undefined =>
  Option.getOrUndefined(decode(sessionStorage.getItem(nameOf(place))))

export const keepSaying = (place: string, saying: Saying): void =>
  sessionStorage.setItem(nameOf(place), JSON.stringify(saying))

export const dropSaying = (place: string): void => sessionStorage.removeItem(nameOf(place))
