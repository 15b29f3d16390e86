/**
 * What is being said, kept by the tab until its answer is there: a reload goes on with it.
 */
import { Option, Schema } from "effect"
import { Saying } from "./say.ts"

const nameOf = (projectId: string): string => `tropism.saying.${projectId}`

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Saying))

/** What this tab said last and has no answer to. */
export const keptSaying = (projectId: string): Saying | undefined =>
  Option.getOrUndefined(decode(sessionStorage.getItem(nameOf(projectId))))

export const keepSaying = (projectId: string, saying: Saying): void =>
  sessionStorage.setItem(nameOf(projectId), JSON.stringify(saying))

export const dropSaying = (projectId: string): void => sessionStorage.removeItem(nameOf(projectId))
