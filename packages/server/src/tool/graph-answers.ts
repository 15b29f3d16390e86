/**
 * What the graph tools answer: objects and relationships as whoever called is shown them.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * With each answer stands which versions it shows and what of it is untrusted.
 */
import type { GraphObject, Relationship } from "@tropism/domain/graph"
import { taintOf, type TaintSource } from "@tropism/domain/taint"
import { markedPart } from "@tropism/domain/untrusted"
import type { Schema } from "effect"
import type { Applied } from "../graph/recording.ts"
import type { GateDecision, Read, ToolEffect } from "./tool-effect.ts"

/** A change that was made: whoever made it is shown what is written, so it is known as it is now. */
export const applied = ({ change, entity }: Applied): ToolEffect => {
  const status = change === "unchanged" ? "unchanged" : "applied"
  if (entity.kind === "object") {
    const { object } = entity
    const result = { status, object: shownObject(object) }
    return { ...decided("execute", result, taintOf([object])), reads: readsOf([object]) }
  }
  const { relationship } = entity
  const result = { status, relationship: shownRelationship(relationship) }
  return { ...decided("execute", result, taintOf([], [relationship])), reads: readsOf([], [relationship]) }
}

/** What a read shows, and which versions. */
export const answer = (
  result: Schema.Json,
  seen: ReadonlyArray<GraphObject>,
  related: ReadonlyArray<Relationship> = []
): ToolEffect => ({
  result,
  decision: null,
  reads: readsOf(seen, related),
  taint: taintOf(seen, related)
})

const readsOf = (
  seen: ReadonlyArray<GraphObject>,
  related: ReadonlyArray<Relationship> = []
): ReadonlyArray<Read> => [
  ...seen.map(({ id, type, version }) => ({ objectId: id, type, version })),
  ...related.map(({ id, type, version }) => ({ relationshipId: id, type, version }))
]

/** What the gate decided for a change. */
export const decided = (
  decision: GateDecision | null,
  result: Schema.Json,
  taint: ReadonlyArray<TaintSource> = []
): ToolEffect => ({
  result,
  decision,
  reads: [],
  taint
})

/** An object as a model sees it. */
export const shownObject = ({ id, type, key, version, properties, untrusted }: GraphObject) => ({
  id,
  type,
  key,
  version,
  properties,
  ...markedPart(untrusted)
})

export const shownRelationship = ({ id, type, fromId, toId, properties, untrusted }: Relationship) => ({
  id,
  type,
  fromId,
  toId,
  properties,
  ...markedPart(untrusted)
})
