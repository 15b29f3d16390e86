/**
 * Checks earned autonomy: every decision is counted, a promotion was earned, and an agent that is not sure acts by one or asks.
 */
import { isJsonObject } from "@tropism/domain/json"
import type { Change } from "@tropism/domain/change"
import type { CallRow, RunRow } from "./rows.ts"
import { type Checker, keyOf, type Remains, unless } from "./remains.ts"

const operations: Readonly<Record<string, Change["type"]>> = {
  create_object: "create",
  update_object: "update",
  delete_object: "delete",
  create_relationship: "createRelationship",
  update_relationship: "updateRelationship",
  delete_relationship: "deleteRelationship"
}

/** For what trust is earned, as one text. */
const kindOf = (
  { agentId, agentVersion }: { readonly agentId: string; readonly agentVersion: number },
  operation: string,
  objectType: string
): string => keyOf(agentId, agentVersion, operation, objectType)

/** Whether an agent was sure enough by the threshold that nobody changed. */
const isSure = ({ arguments: said }: CallRow): boolean =>
  isJsonObject(said) && typeof said["confidence"] === "number" && said["confidence"] >= 0.8

/** The run, and those above it. */
const lineOf = (runs: ReadonlyMap<string, RunRow>, run: RunRow): ReadonlyArray<RunRow> =>
  [run.id, ...run.ancestors].flatMap((id) => runs.get(id) ?? [])

/** What a hybrid agent did without being sure was done by a promotion of just that, and by no other. */
const trustUsed: Checker = ({ agents, calls, events, promotions, runs }) => {
  const hybrids = new Set(
    agents.flatMap(({ definitions, id }) =>
      definitions.every(
        ({ executionMode, hybridPolicy }) =>
          executionMode === "hybrid" && (hybridPolicy?.confidenceThreshold ?? null) === null
      )
        ? [id]
        : []
    )
  )
  const runById = new Map(runs.map((run) => [run.id, run]))
  const promotionById = new Map(promotions.map((promotion) => [promotion.id, promotion]))
  const eventOf = new Map(events.map((event) => [event.toolCallId, event]))
  return calls.flatMap((call) => {
    const run = runById.get(call.runId)
    const operation = operations[call.tool]
    if (!run || operation === undefined) return []
    if (call.promotionId === null)
      return unless(
        call.decision !== "execute" || !hybrids.has(run.agentId) || isSure(call),
        `call ${call.id} was made by an agent that was not sure, and by no promotion`
      )
    const promotion = promotionById.get(call.promotionId)
    const event = eventOf.get(call.id)
    const kinds = lineOf(runById, run).map((one) =>
      kindOf(one, operation, event?.objectType ?? promotion?.objectType ?? "")
    )
    return unless(
      promotion !== undefined &&
        call.decision === "execute" &&
        kinds.includes(kindOf(promotion, promotion.operation, promotion.objectType)),
      `call ${call.id} was made by a promotion for something else`
    )
  })
}

/** A promotion had the reviews that its agent's policy asks for, one stands at a time, and its task says how it is. */
const trustEarned: Checker = ({ agents, promotions, tasks }) => {
  const agentById = new Map(agents.map((agent) => [agent.id, agent]))
  const taskById = new Map(tasks.map((task) => [task.id, task]))
  const standing = promotions.filter(({ endedAt }) => endedAt === null)
  const kinds = standing.map((one) => kindOf(one, one.operation, one.objectType))
  return [
    ...unless(new Set(kinds).size === kinds.length, "two promotions stand for the same"),
    ...promotions.flatMap((promotion) => {
      const definition = agentById.get(promotion.agentId)?.definitions[promotion.agentVersion - 1]
      const policy = definition?.hybridPolicy?.promotion
      const status = taskById.get(promotion.taskId)?.status
      const fits =
        promotion.endedAt === null
          ? status === "pending" || status === "completed"
          : status === "completed" || status === "rejected" || status === "expired"
      return [
        ...unless(
          policy !== undefined &&
            policy !== null &&
            definition?.executionMode === "hybrid" &&
            promotion.reviews >= policy.minReviews &&
            promotion.acceptanceRate >= policy.minRate,
          `promotion ${promotion.id} was not earned`
        ),
        ...unless(
          fits && (status !== "rejected" || promotion.endReason === "reversed"),
          `the task of promotion ${promotion.id} is ${status}, and it ${promotion.endedAt === null ? "stands" : "has ended"}`
        )
      ]
    })
  ]
}

/** The type of what a change is about. */
const typeOf = (change: Change, { objects, relationships }: Remains): string => {
  const idOf = (rows: Remains["relationships"], id: string) => rows.find((row) => row.id === id)?.type ?? ""
  switch (change.type) {
    case "create":
      return change.objectType
    case "createRelationship":
      return change.relationship.type
    case "update":
    case "delete":
      return idOf(objects, change.objectId)
    default:
      return idOf(relationships, change.relationshipId)
  }
}

/** What people decided is counted, each decision once. */
const reviewsCounted: Checker = (remains) => {
  const decided = remains.tasks.flatMap(({ agentId, agentVersion, payload, status }) => {
    const change = payload.suggestedChanges
    if (change === undefined || agentVersion === null || (status !== "completed" && status !== "rejected"))
      return []
    return [`${kindOf({ agentId, agentVersion }, change.type, typeOf(change, remains))} ${status}`]
  })
  const counted = remains.reviews.flatMap((record) => {
    const kind = kindOf(record, record.operation, record.objectType)
    return [
      ...Array.from({ length: record.accepted + record.edited }, () => `${kind} completed`),
      ...Array.from({ length: record.rejected }, () => `${kind} rejected`)
    ]
  })
  const [there, here] = [decided.toSorted(), counted.toSorted()]
  return unless(
    there.length === here.length && there.every((one, index) => one === here[index]),
    `${there.length} suggestions were decided and ${here.length} are counted, or not as what they were`
  )
}

/** By a promotion that somebody was told is taken back, nothing was done afterwards. */
const trustWithdrawn: Checker = ({ acknowledged, calls }) =>
  acknowledged.distrusted.flatMap(({ promotionId, calls: known }) =>
    calls
      .filter((call) => call.promotionId === promotionId && !known.includes(call.id))
      .map((call) => `call ${call.id} was made by promotion ${promotionId} after it was taken back`)
  )

/** What a person takes back by an undo, of an object, is what its agent did: where all of that is of one version, its trust has ended. */
const trustLost: Checker = ({ events, promotions, runs }) => {
  const versionOf = new Map(runs.map((run) => [run.id, run.agentVersion]))
  const made = Map.groupBy(
    events.filter(({ actorType }) => actorType === "agent"),
    ({ actorId, entityId, type }) => keyOf(actorId ?? "", entityId, type)
  )
  const standing = promotions.filter(({ endedAt }) => endedAt === null)
  return events
    .filter(({ entityType, type }) => entityType === "graphObject" && type !== "created")
    .flatMap((event) =>
      event.undoes.flatMap((agentId) => {
        const [operation, type] =
          event.type === "deleted" ? (["create", "created"] as const) : (["update", "updated"] as const)
        const work = made.get(keyOf(agentId, event.entityId, type)) ?? []
        const [version, ...others] = new Set(work.map(({ runId }) => versionOf.get(runId ?? "")))
        if (version === undefined || others.length > 0) return []
        return standing
          .filter(
            (one) =>
              kindOf(one, one.operation, one.objectType) ===
                kindOf({ agentId, agentVersion: version }, operation, event.objectType) &&
              one.promotedAt < event.createdAt
          )
          .map(({ id }) => `promotion ${id} stands although event ${event.id} took back what it is for`)
      })
    )
}

export const checkTrust = { trustUsed, trustEarned, reviewsCounted, trustWithdrawn, trustLost }
