/**
 * Applies graph tools once their arguments are decoded.
 *
 * **Invariant** Only here does an agent's change take effect: it is inspected, then applied, suggested or refused by
 * mode and intent, and the untrusted parts of the answer are named. Everything runs in the caller's transaction; this
 * file opens none and records no call.
 */
import type { Actor, Cause } from "@tropism/domain/actor"
import { choosesToSuggest, waitsForTrust } from "@tropism/domain/capability"
import type { Change } from "@tropism/domain/change"
import type { GraphObject, Relationship } from "@tropism/domain/graph"
import type { ObjectId, RelationshipId, ToolCallId, BacktestId, RunId } from "@tropism/domain/ids"
import { canonicalJson, mergePatch } from "@tropism/domain/json"
import { taintOf, type TaintSource } from "@tropism/domain/taint"
import { markedPart } from "@tropism/domain/untrusted"
import { Context, Effect, Layer, type Schema } from "effect"
import { SqlClient } from "effect/sql"
import { ProjectTransaction, orDie } from "../database/database.ts"
import { explainTaint } from "../graph/authority.ts"
import { type ChangeRefused, refused } from "../graph/change-refused.ts"
import { Gateway } from "../graph/gateway.ts"
import { type Inspected, Inspector } from "../graph/inspector.ts"
import { Objects } from "../graph/objects.ts"
import type { Applied } from "../graph/recording.ts"
import { Neighborhoods } from "../graph/relationships.ts"
import { toolLimits } from "../limits.ts"
import { Autonomy } from "../review/autonomy.ts"
import { Tasks } from "../review/tasks.ts"
import { readArguments } from "./arguments.ts"
import * as Args from "./graph-tools.ts"
import type { Backtested, RunPrincipal, Sight } from "./principal.ts"
import { ToolCalls, type ToolEffect, type GateDecision, type Read } from "./tool-calls.ts"

type Answer = Effect.Effect<ToolEffect, ChangeRefused, ProjectTransaction>

export class GraphEffects extends Context.Service<
  GraphEffects,
  {
    /** Reads see the graph as it is, or as of the caller's instant. */
    readonly searchObjects: (args: typeof Args.SearchObjects.Type, sight: Sight) => Answer
    readonly getObject: (args: typeof Args.GetObject.Type, sight: Sight) => Answer
    readonly neighbors: (args: typeof Args.Neighbors.Type, sight: Sight) => Answer
    /** Applies, suggests or refuses a change of the principal's agent. */
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

      /** Returns an object as the principal sees it. */
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
        // Fewer results than the limit are all there are.
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

      /** Returns the newest version of the target that the run was shown; null when it was shown none. */
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

      /** Stores a backtest's change with the backtest only. */
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

/** Returns the type of the changed object or relationship. */
const typeOf = (change: Change, entity: GraphObject | Relationship | null): string => {
  if (change.type === "create") return change.objectType
  return change.type === "createRelationship" ? change.relationship.type : (entity?.type ?? "")
}

const changesNothing = (target: GraphObject | Relationship, patch: Schema.Json): boolean =>
  canonicalJson(mergePatch(target.properties, patch)) === canonicalJson(target.properties)

// Answers of the graph tools: objects and relationships as the caller sees them.
//
// Each answer carries the versions it shows and what of it is untrusted.

/** Answers a change that was made; its caller has then seen the new version. */
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

/** Answers a read, with the versions it shows. */
const answer = (
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

/** The gate's decision on a change. */
const decided = (
  decision: GateDecision | null,
  result: Schema.Json,
  taint: ReadonlyArray<TaintSource> = []
): ToolEffect => ({
  result,
  decision,
  reads: [],
  taint
})

/** An object in the form for a model. */
export const shownObject = ({ id, type, key, version, properties, untrusted }: GraphObject) => ({
  id,
  type,
  key,
  version,
  properties,
  ...markedPart(untrusted)
})

const shownRelationship = ({ id, type, fromId, toId, properties, untrusted }: Relationship) => ({
  id,
  type,
  fromId,
  toId,
  properties,
  ...markedPart(untrusted)
})

// Stores the suggestions that a backtest's run would have made.
//
// They belong to the backtest only: no task, no number, no evidence. The call's record is in the same transaction, so a
// repeated call stores one.

export interface WouldBe {
  readonly backtestId: BacktestId
  readonly runId: RunId
  readonly toolCallId: ToolCallId
  readonly change: Change
  readonly confidence: number | null
  readonly reasoning: string | null
}

const makeWouldBe = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const keepWouldBe = Effect.fn("WouldBe.keep")(function* (suggestion: WouldBe) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      insert into kb.backtest_suggestions (tool_call_id, project_id, backtest_id, run_id, change, confidence, reasoning)
      values (${suggestion.toolCallId}, ${projectId}, ${suggestion.backtestId}, ${suggestion.runId},
        ${JSON.stringify(suggestion.change)}::text::jsonb, ${suggestion.confidence}, ${suggestion.reasoning})`
  }, orDie)

  return { keepWouldBe }
})

/** Refuses a tool that a backtest may not use because it affects others. */
export const inBacktest = (tool: string): ChangeRefused =>
  refused(
    "backtest",
    `${tool} reaches others, and this is a backtest: nothing that you do here may. Go on without it.`
  )

// Decodes the graph change that a call requests.

/** The model's reason for a change and its confidence. */
export interface Intent {
  readonly reasoning?: string | null | undefined
  readonly confidence?: number | null | undefined
  readonly suggest?: boolean | null | undefined
}

export interface Wanted {
  readonly change: Change
  readonly intent: Intent
}

/** Decodes the arguments of one tool to a change. */
const asking =
  <S extends Schema.ConstraintDecoder<Intent>>(schema: S, changeOf: (args: S["Type"]) => Change) =>
  (args: Schema.Json): Effect.Effect<Wanted, ChangeRefused> =>
    Effect.map(readArguments(schema, args), (intent) => ({ change: changeOf(intent), intent }))

const readers = {
  create_object: asking(Args.CreateObjectArguments, ({ key, properties, type }) => ({
    type: "create",
    objectType: type,
    key: key ?? null,
    data: properties
  })),
  update_object: asking(Args.UpdateObjectArguments, ({ objectId, properties }) => ({
    type: "update",
    objectId,
    data: properties
  })),
  delete_object: asking(Args.DeleteObjectArguments, ({ objectId }) => ({ type: "delete", objectId })),
  create_relationship: asking(Args.CreateRelationshipArguments, ({ fromId, properties, toId, type }) => ({
    type: "createRelationship",
    relationship: { fromId, toId, type },
    data: properties ?? {}
  })),
  update_relationship: asking(Args.UpdateRelationshipArguments, ({ properties, relationshipId }) => ({
    type: "updateRelationship",
    relationshipId,
    data: properties
  })),
  delete_relationship: asking(Args.DeleteRelationshipArguments, ({ relationshipId }) => ({
    type: "deleteRelationship",
    relationshipId
  }))
}

/** A tool that changes the graph. */
export type ChangingTool = keyof typeof readers

const isChanging = (tool: string): tool is ChangingTool => Object.hasOwn(readers, tool)

/** Returns the change that a call requests. */
export const wantedChange = (tool: ChangingTool, args: Schema.Json): Effect.Effect<Wanted, ChangeRefused> =>
  readers[tool](args)

/** Returns the change that a call would have made; null when there is none or the call cannot be decoded. */
export const changeAskedFor = (tool: string, args: Schema.Json): Effect.Effect<Change | null> =>
  isChanging(tool)
    ? Effect.match(wantedChange(tool, args), { onFailure: () => null, onSuccess: ({ change }) => change })
    : Effect.succeed(null)
