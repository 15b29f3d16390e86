/**
 * What each graph tool does, once its arguments are read.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Here, and nowhere else, an agent's change becomes an effect: inspected, then
 * done or suggested as mode and intent say, or refused; and here it is said what
 * of an answer is untrusted. All of it happens in the
 * caller's transaction; this file opens none and records no call.
 */
import type { Actor, Cause } from "@tropism/domain/actor"
import { choosesToSuggest, waitsForTrust } from "@tropism/domain/capability"
import type { Change } from "@tropism/domain/change"
import type { GraphObject, Relationship } from "@tropism/domain/graph"
import type { ObjectId, RelationshipId, ToolCallId } from "@tropism/domain/ids"
import { canonicalJson, mergePatch } from "@tropism/domain/json"
import { Context, Effect, Layer, type Schema } from "effect"
import type { ProjectTransaction } from "../database/database.ts"
import { Gateway } from "../graph/gateway.ts"
import { explainTaint } from "../graph/authority.ts"
import { type Inspected, Inspector } from "../graph/inspector.ts"
import { Neighborhoods } from "../graph/neighborhoods.ts"
import { Objects } from "../graph/objects.ts"
import { type ChangeRefused, refused } from "../graph/refused.ts"
import { toolLimits } from "../limits.ts"
import { Autonomy } from "../task/autonomy.ts"
import { Tasks } from "../task/tasks.ts"
import type * as Args from "./graph-tools.ts"
import { answer, applied, decided, shownObject, shownRelationship } from "./graph-answers.ts"
import type { Backtested, RunPrincipal, Sight } from "./principal.ts"
import { ToolCalls } from "./tool-calls.ts"
import type { ToolEffect } from "./tool-effect.ts"
import type { Intent } from "./wanted-change.ts"
import { makeWouldBe } from "./would-be.ts"

type Answer = Effect.Effect<ToolEffect, ChangeRefused, ProjectTransaction>

export class GraphEffects extends Context.Service<
  GraphEffects,
  {
    /** Reads are of the graph as it is, or as of the instant that whoever asks sees. */
    readonly searchObjects: (args: typeof Args.SearchObjects.Type, sight: Sight) => Answer
    readonly getObject: (args: typeof Args.GetObject.Type, sight: Sight) => Answer
    readonly neighbors: (args: typeof Args.Neighbors.Type, sight: Sight) => Answer
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
      const autonomy = yield* Autonomy
      const toolCalls = yield* ToolCalls
      const { keepWouldBe } = yield* makeWouldBe

      /** An object as the principal sees it. */
      const seen = (id: ObjectId, { backtest }: Sight) =>
        backtest === null ? objects.get(id) : objects.asOf(id, backtest.asOf)

      const searchObjects = Effect.fn("GraphEffects.searchObjects")(function* (
        { query, type, where, limit }: typeof Args.SearchObjects.Type,
        { backtest }: Sight
      ) {
        const text = query?.trim() ? query : undefined
        const filter = { text, type: type ?? undefined, where: where ?? undefined, asOf: backtest?.asOf }
        const count = Math.min(limit ?? 20, toolLimits.searchMaxItems)
        const found = yield* objects.list(filter, text ? "relevance" : "createdAt", undefined, count)
        const items = found.map(({ object }) => object)
        // Where not all that were wanted were found, these are all that there are.
        const total = items.length < count ? items.length : yield* objects.count(filter)
        return answer({ items: items.map(shownObject), total }, items)
      })

      const getObject = Effect.fn("GraphEffects.getObject")(function* (
        { objectId }: typeof Args.GetObject.Type,
        sight: Sight
      ) {
        const object = yield* seen(objectId, sight)
        if (!object) return yield* refused("notFound", `There is no object ${objectId}`, "/objectId")
        return answer(shownObject(object), [object])
      })

      const neighbors = Effect.fn("GraphEffects.neighbors")(function* (
        { objectId, depth, direction, type }: typeof Args.Neighbors.Type,
        sight: Sight
      ) {
        const object = yield* seen(objectId, sight)
        if (!object) return yield* refused("notFound", `There is no object ${objectId}`, "/objectId")
        const around = yield* neighborhoods.around(objectId, {
          depth: depth ?? 1,
          direction: direction ?? "both",
          type: type ?? undefined,
          asOf: sight.backtest?.asOf,
          limit: toolLimits.neighborsMaxItems
        })
        return answer(
          {
            objects: around.objects.map((one) => ({ ...shownObject(one), distance: one.distance })),
            relationships: around.relationships.map(shownRelationship),
            truncated: around.truncated
          },
          [object, ...around.objects],
          around.relationships
        )
      })

      /** The newest version of what a change is about that the run was shown; null when it was shown none. */
      const lastReadOf = Effect.fnUntraced(function* (
        { runId, wokenBy }: RunPrincipal,
        id: ObjectId | RelationshipId
      ) {
        const inCalls = yield* toolCalls.lastRead(runId, id)
        const shown = wokenBy.flatMap((woke) => (woke.id === id ? woke.version : []))
        const versions = inCalls === undefined ? shown : [...shown, inCalls]
        return versions.length === 0 ? null : Math.max(...versions)
      })

      const suggest = Effect.fnUntraced(function* (
        wanted: Change,
        intent: Intent,
        principal: RunPrincipal,
        toolCallId: ToolCallId,
        { authority, relationship, target }: Inspected
      ) {
        const about = target ?? relationship
        const task = yield* tasks.suggest({
          change: wanted,
          agentId: principal.agentId,
          agentVersion: principal.agentVersion,
          runId: principal.runId,
          toolCallId,
          confidence: intent.confidence ?? null,
          reasoning: intent.reasoning ?? null,
          target,
          relationship,
          lastRead: about && (yield* lastReadOf(principal, about.id)),
          wokenBy: principal.evidence.map(({ objectId }) => objectId),
          untrusted: authority.taintedBy,
          evidence: yield* toolCalls.evidence(principal.runId, principal.evidence),
          rootEventId: principal.rootEventId,
          depth: principal.depth + 1
        })
        const why = explainTaint(authority)
        return decided("suggest", {
          status: "suggested",
          taskId: task.id,
          taskNumber: task.number,
          ...(task.isRefined ? { refined: true } : {}),
          ...(why === undefined ? {} : { reason: "untrusted", note: why })
        })
      })

      /** What a backtest's run asks for reaches nobody: it is kept beside its backtest. */
      const wouldBe = Effect.fnUntraced(function* (
        backtest: Backtested,
        wanted: Change,
        intent: Intent,
        { runId }: RunPrincipal,
        toolCallId: ToolCallId
      ) {
        const { confidence = null, reasoning = null } = intent
        yield* keepWouldBe({
          backtestId: backtest.id,
          runId,
          toolCallId,
          change: wanted,
          confidence,
          reasoning
        })
        return decided("suggest", { status: "suggested" })
      })

      const change = Effect.fn("GraphEffects.change")(function* (
        wanted: Change,
        intent: Intent,
        principal: RunPrincipal,
        toolCallId: ToolCallId
      ) {
        const inspected = yield* inspector.inspect(
          wanted,
          principal.agentId,
          principal.runId,
          principal.backtest?.asOf
        )
        const { authority, target, relationship } = inspected
        if (wanted.type === "update" && target && changesNothing(target, wanted.data)) {
          return answer({ status: "unchanged", object: shownObject(target) }, [target])
        }
        if (
          wanted.type === "updateRelationship" &&
          relationship &&
          changesNothing(relationship, wanted.data)
        ) {
          return answer(
            { status: "unchanged", relationship: shownRelationship(relationship) },
            [],
            [relationship]
          )
        }
        const said = { confidence: intent.confidence ?? null, suggest: intent.suggest ?? false }
        const gate = [authority.executionMode, authority.hybridPolicy, wanted.type, said] as const
        const isSuggested = choosesToSuggest(...gate)
        const lacksReasoning = isSuggested && !intent.reasoning?.trim()
        if (principal.backtest) {
          if (lacksReasoning) return yield* withoutReasoning
          return yield* wouldBe(principal.backtest, wanted, intent, principal, toolCallId)
        }
        const promotionId = waitsForTrust(...gate)
          ? yield* autonomy.trusted(principal.runId, wanted.type, typeOf(wanted, target ?? relationship))
          : undefined
        if (promotionId === undefined && isSuggested) {
          if (lacksReasoning) return yield* withoutReasoning
          return yield* suggest(wanted, intent, principal, toolCallId, inspected)
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
        const done = applied(yield* gateway.apply(wanted, { actor, cause }))
        return { ...done, ...(promotionId === undefined ? {} : { promotionId }) }
      })

      return GraphEffects.of({ searchObjects, getObject, neighbors, change })
    })
  )
}

/** A person who decides needs a reason (S000-R23). */
const withoutReasoning = refused(
  "invalid",
  "People decide on this change and need a reason: call again with your reasoning",
  "/reasoning"
)

/** The type of what a change is about: of the object, or of the relationship. */
const typeOf = (change: Change, entity: GraphObject | Relationship | null): string => {
  if (change.type === "create") return change.objectType
  return change.type === "createRelationship" ? change.relationship.type : (entity?.type ?? "")
}

const changesNothing = (target: GraphObject | Relationship, patch: Schema.Json): boolean =>
  canonicalJson(mergePatch(target.properties, patch)) === canonicalJson(target.properties)
