/**
 * What each graph tool does, once its arguments are read.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Here, and nowhere else, an agent's change becomes an effect: inspected, then
 * done or suggested as mode and intent say, or refused. All of it happens in the
 * caller's transaction; this file opens none and records no call.
 */
import type { Actor, Cause } from "@tropism/domain/actor"
import { choosesToSuggest } from "@tropism/domain/capability"
import type { Change } from "@tropism/domain/change"
import type { GraphObject, Relationship } from "@tropism/domain/graph"
import type { ToolCallId } from "@tropism/domain/ids"
import { canonicalJson, mergePatch } from "@tropism/domain/json"
import type { Evidence } from "@tropism/domain/task"
import { Context, Effect, Layer, type Schema } from "effect"
import type { ProjectTransaction } from "../database/database.ts"
import { Gateway } from "../graph/gateway.ts"
import { Inspector } from "../graph/inspector.ts"
import { Neighborhoods } from "../graph/neighborhoods.ts"
import { Objects } from "../graph/objects.ts"
import { type ChangeRefused, refused } from "../graph/refused.ts"
import { toolLimits } from "../limits.ts"
import { Tasks } from "../task/tasks.ts"
import type * as Args from "./graph-tools.ts"
import type { RunPrincipal } from "./principal.ts"
import { ToolCalls } from "./tool-calls.ts"
import type { GateDecision, ToolEffect } from "./tool-effect.ts"

/** Why and how surely the model wants a change. */
interface Intent {
  readonly reasoning?: string | null | undefined
  readonly confidence?: number | null | undefined
  readonly suggest?: boolean | null | undefined
}

type Answer = Effect.Effect<ToolEffect, ChangeRefused, ProjectTransaction>

export class GraphEffects extends Context.Service<
  GraphEffects,
  {
    readonly searchObjects: (args: typeof Args.SearchObjects.Type) => Answer
    readonly getObject: (args: typeof Args.GetObject.Type) => Answer
    readonly neighbors: (args: typeof Args.Neighbors.Type) => Answer
    /** Does, suggests or refuses a change of the principal's agent. */
    readonly change: (change: Change, intent: Intent, principal: RunPrincipal, callId: ToolCallId) => Answer
  }
>()("@tropism/server/tool/GraphEffects") {
  static readonly layer = Layer.effect(
    GraphEffects,
    Effect.gen(function* () {
      const objects = yield* Objects
      const neighborhoods = yield* Neighborhoods
      const inspector = yield* Inspector
      const gateway = yield* Gateway
      const tasks = yield* Tasks
      const toolCalls = yield* ToolCalls

      const searchObjects = Effect.fn("GraphEffects.searchObjects")(function* ({
        query,
        type,
        where,
        limit
      }: typeof Args.SearchObjects.Type) {
        const text = query?.trim() ? query : undefined
        const filter = { text, type: type ?? undefined, where: where ?? undefined }
        const count = Math.min(limit ?? 20, toolLimits.searchMaxItems)
        const found = yield* objects.list(filter, text ? "relevance" : "createdAt", undefined, count)
        const items = found.map(({ object }) => object)
        const total = yield* objects.count(filter)
        return answer({ items: items.map(shownObject), total }, items)
      })

      const getObject = Effect.fn("GraphEffects.getObject")(function* ({
        objectId
      }: typeof Args.GetObject.Type) {
        const object = yield* objects.get(objectId)
        if (!object) return yield* refused("notFound", `There is no object ${objectId}`, "/objectId")
        return answer(shownObject(object), [object])
      })

      const neighbors = Effect.fn("GraphEffects.neighbors")(function* ({
        objectId,
        depth,
        direction,
        type
      }: typeof Args.Neighbors.Type) {
        const object = yield* objects.get(objectId)
        if (!object) return yield* refused("notFound", `There is no object ${objectId}`, "/objectId")
        const around = yield* neighborhoods.around(objectId, {
          depth: depth ?? 1,
          direction: direction ?? "both",
          type: type ?? undefined,
          limit: toolLimits.neighborsMaxItems
        })
        return answer(
          {
            objects: around.objects.map((one) => ({ ...shownObject(one), distance: one.distance })),
            relationships: around.relationships.map(shownRelationship),
            truncated: around.truncated
          },
          [object, ...around.objects]
        )
      })

      const suggest = Effect.fnUntraced(function* (
        wanted: Change,
        intent: Intent,
        principal: RunPrincipal,
        toolCallId: ToolCallId,
        target: GraphObject | null
      ) {
        const task = yield* tasks.suggest({
          change: wanted,
          agentId: principal.agentId,
          agentName: principal.agentName,
          runId: principal.runId,
          toolCallId,
          confidence: intent.confidence ?? null,
          reasoning: intent.reasoning ?? null,
          target,
          evidence: distinct([...principal.evidence, ...(yield* toolCalls.evidence(principal.runId))]),
          rootEventId: principal.rootEventId,
          depth: principal.depth + 1
        })
        return decided("suggest", { status: "suggested", taskId: task.id, taskNumber: task.number })
      })

      const change = Effect.fn("GraphEffects.change")(function* (
        wanted: Change,
        intent: Intent,
        principal: RunPrincipal,
        toolCallId: ToolCallId
      ) {
        const { authority, target, relationship } = yield* inspector.inspect(
          wanted,
          principal.agentId,
          principal.runId
        )
        if (wanted.type === "update" && target && changesNothing(target, wanted.data)) {
          return decided(null, { status: "unchanged", object: shownObject(target) })
        }
        if (
          wanted.type === "updateRelationship" &&
          relationship &&
          changesNothing(relationship, wanted.data)
        ) {
          return decided(null, { status: "unchanged", relationship: shownRelationship(relationship) })
        }
        const said = { confidence: intent.confidence ?? null, suggest: intent.suggest ?? false }
        if (choosesToSuggest(authority.executionMode, authority.hybridPolicy, wanted.type, said)) {
          return yield* suggest(atVersion(wanted, relationship), intent, principal, toolCallId, target)
        }
        const actor: Actor = { actorType: "agent", actorId: principal.agentId }
        const cause: Cause = {
          runId: principal.runId,
          toolCallId,
          taskId: null,
          approvedBy: null,
          rootEventId: principal.rootEventId,
          depth: principal.depth + 1
        }
        const { entity, change } = yield* gateway.apply(wanted, { actor, cause })
        const status = change === "unchanged" ? "unchanged" : "applied"
        return entity.kind === "object"
          ? decided("execute", { status, object: shownObject(entity.object) })
          : decided("execute", { status, relationship: shownRelationship(entity.relationship) })
      })

      return GraphEffects.of({ searchObjects, getObject, neighbors, change })
    })
  )
}

const answer = (result: Schema.Json, seen: ReadonlyArray<GraphObject>): ToolEffect => ({
  result,
  decision: null,
  reads: seen.map(({ id, type, version }) => ({ objectId: id, type, version }))
})

const decided = (decision: GateDecision | null, result: Schema.Json): ToolEffect => ({
  result,
  decision,
  reads: []
})

/** A suggested update of a relationship is of what the agent saw: approved later, it is refused if that has changed. */
const atVersion = (change: Change, relationship: Relationship | null): Change =>
  change.type === "updateRelationship" && relationship
    ? { ...change, expectedVersion: relationship.version }
    : change

const changesNothing = (target: GraphObject | Relationship, patch: Schema.Json): boolean =>
  canonicalJson(mergePatch(target.properties, patch)) === canonicalJson(target.properties)

/** An object as a model sees it. */
const shownObject = ({ id, type, key, version, properties }: GraphObject) => ({
  id,
  type,
  key,
  version,
  properties
})

const shownRelationship = ({ id, type, fromId, toId, properties }: Relationship) => ({
  id,
  type,
  fromId,
  toId,
  properties
})

const distinct = (evidence: ReadonlyArray<Evidence>): ReadonlyArray<Evidence> => [
  ...new Map(evidence.map((read) => [`${read.objectId}@${read.version}`, read])).values()
]
