/**
 * What of untrusted sources a context has been shown, and what its agent may do since.
 *
 * What a model has read it may act on, whoever wrote it. So a context that was
 * shown something untrusted is tainted from that event on, for good, and a run on
 * it may only suggest, whatever its agent may do otherwise. Nothing here reads or writes.
 */
import { Schema } from "effect"
import type { Powers } from "./capability.ts"
import type { GraphEvent, GraphObject, Relationship } from "./graph.ts"
import { isJsonObject } from "./json.ts"
import { Untrusted } from "./untrusted.ts"

/** Where something untrusted was read. */
export const TaintKind = Schema.Literals([
  "object",
  "relationship",
  "attachment",
  "mcpServer",
  "webhook",
  "todo",
  /** A result that a client sent for a tool call and called untrusted. */
  "clientTool",
  /** Another context that was tainted before: of a run that handed over the task, of one that reported, or one that was recalled. */
  "context"
])
export type TaintKind = typeof TaintKind.Type

const fields = {
  kind: TaintKind,
  /** The id of the object, relationship, webhook or todo, the digest of the attachment, or the name of the server, tool or context. */
  id: Schema.String,
  /** The first of the properties that were untrusted. */
  properties: Schema.optionalKey(Untrusted)
}

export const TaintSource = Schema.Struct(fields)
export type TaintSource = typeof TaintSource.Type

/** A source, and the event of the context's log with which it came; 0 where the context began with it. */
export const Taint = Schema.Struct({ ...fields, at: Schema.Int }).annotate({ identifier: "Taint" })
export type Taint = typeof Taint.Type

export const taintBounds = {
  /** Sources that a context remembers: the first ones. `kb.with_taint` says the same. */
  sources: 8,
  /** Properties that a source names. */
  properties: 8
} as const

const sourceOf = (kind: TaintKind, id: string, untrusted: Untrusted): ReadonlyArray<TaintSource> =>
  untrusted.length === 0 ? [] : [{ kind, id, properties: untrusted.slice(0, taintBounds.properties) }]

/** What of these is untrusted. */
export const taintOf = (
  objects: ReadonlyArray<Pick<GraphObject, "id" | "untrusted">>,
  relationships: ReadonlyArray<Pick<Relationship, "id" | "untrusted">> = []
): ReadonlyArray<TaintSource> =>
  [
    ...objects.flatMap(({ id, untrusted }) => sourceOf("object", id, untrusted)),
    ...relationships.flatMap(({ id, untrusted }) => sourceOf("relationship", id, untrusted))
  ].slice(0, taintBounds.sources)

/** What of the events that woke a run is untrusted; an event that was purged says nothing any more. */
export const taintOfEvents = (
  events: ReadonlyArray<Pick<GraphEvent, "entityId" | "entityType" | "snapshot">>
): ReadonlyArray<TaintSource> =>
  events
    .flatMap(({ entityId, entityType, snapshot }) => {
      const untrusted = isJsonObject(snapshot) ? snapshot["untrusted"] : undefined
      const names = Array.isArray(untrusted) ? untrusted.filter((name) => typeof name === "string") : []
      return sourceOf(entityType === "graphObject" ? "object" : "relationship", entityId, names)
    })
    .slice(0, taintBounds.sources)

/** The first of these sources, each once, wherever it came in. */
export const distinctTaints = (taints: ReadonlyArray<Taint>): ReadonlyArray<Taint> =>
  taints
    .filter(({ id, kind }, place) => taints.findIndex((one) => one.id === id && one.kind === kind) === place)
    .slice(0, taintBounds.sources)

/** What an agent may do in a run on a context: suggest at most, where that is tainted. */
export const narrowTainted = <P extends Powers>(powers: P, taintedBy: ReadonlyArray<TaintSource>): P =>
  taintedBy.length === 0 ? powers : { ...powers, executionMode: "suggest" }

const words: Readonly<Record<TaintKind, string>> = {
  object: "the object",
  relationship: "the relationship",
  attachment: "the file",
  mcpServer: "the MCP server",
  webhook: "the webhook",
  todo: "the todo",
  clientTool: "the client tool",
  context: "the tainted context"
}

/** Names a source in a sentence. */
export const sourceText = ({ id, kind, properties }: TaintSource): string =>
  `${properties === undefined ? "" : `${properties.join(", ")} of `}${words[kind]} ${id}`

/** Why a run may only suggest, in a sentence; undefined where it has read nothing untrusted. */
export const taintSentence = (taintedBy: ReadonlyArray<TaintSource>): string | undefined => {
  const [first] = taintedBy
  if (first === undefined) return undefined
  const more = taintedBy.length === 1 ? "" : ", among others"
  return `This run has read what comes from an untrusted source (${sourceText(first)}${more}) and may only suggest`
}
