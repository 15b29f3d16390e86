/**
 * What the contract would refuse of a definition, before it is sent: all of it at once.
 *
 * Pure. The server judges by the same schema, and of what fits it some more.
 */
import { AgentInput } from "@tropism/domain/agent"
import { canonicalJson, type JsonFault } from "@tropism/domain/json"
import { schemaFaults } from "@tropism/domain/schema-faults"
import { Result, Schema } from "effect"
import type { Sent } from "./draft-texts.ts"

const decode = Schema.decodeUnknownResult(AgentInput)

/** **Details** `before` is what was saved: what nobody touched is not held against whoever changes something else. */
export const definitionFaults = (sent: Sent, before: Sent | undefined): ReadonlyArray<JsonFault> =>
  Result.match(decode(sent, { errors: "all" }), {
    onSuccess: () => [],
    onFailure: ({ issue }) => schemaFaults(issue).filter(({ pointer }) => isChanged(pointer, sent, before))
  })

const isChanged = (pointer: string, sent: Sent, before: Sent | undefined): boolean => {
  const [, field = ""] = pointer.split("/")
  return before === undefined || canonicalJson(before[field]) !== canonicalJson(sent[field])
}
