/**
 * The story of a value, line by line, from what set it back to the root event.
 *
 * Every text in it may have been written by a model, so every text is made
 * printable. What is not known is left out and not invented.
 */
import type { PropertyProvenance, Provenance, ProvenanceHop } from "@tropism/domain/provenance"
import { shortId, valueText } from "./change-text.ts"
import type { Paint } from "./terminal/paint.ts"
import { cutEnd, printable } from "./terminal/text.ts"

const longestReason = 300

/** The lines of one property. */
export const whyLines = (
  provenance: Provenance,
  property: PropertyProvenance,
  paint: Paint
): ReadonlyArray<string> => {
  const name = paint.bold(printable(property.property))
  const value = property.removed ? "was removed" : `is ${valueText(property.value)}`
  const { toolCall, task } = property
  const confidence =
    toolCall === null || toolCall.confidence === null
      ? ""
      : ` (confidence ${Math.round(toolCall.confidence * 100)} %)`
  return [
    `${name} ${value}`,
    `  since version ${property.version}, ${instant(property.createdAt)}, by ${actorText(property)}${approval(property)}`,
    ...(toolCall === null || toolCall.reasoning === null
      ? []
      : [`  because "${cutEnd(printable(toolCall.reasoning), longestReason)}"${confidence}`]),
    ...(toolCall === null
      ? []
      : [`  through ${printable(toolCall.tool)}${toolCall.reasoning === null ? confidence : ""}`]),
    ...(toolCall === null || toolCall.promotionId === null
      ? []
      : [`  without asking, by promotion ${shortId(toolCall.promotionId)}`]),
    ...(task === null
      ? []
      : [
          `  ${task.type === "undo" ? "restored by an undo" : "as task"} ${task.number}: ${printable(task.title)}`
        ]),
    ...property.chain.flatMap((hop, place) => hopLines(hop, place, property.chain.length, provenance, paint))
  ]
}

/** Who deleted the object, where somebody did. */
export const deletionLines = ({ deleted }: Provenance): ReadonlyArray<string> =>
  deleted === null
    ? []
    : [`Deleted ${instant(deleted.createdAt)} by ${actorText(deleted)}${approval(deleted)}; last values:`]

const hopLines = (
  hop: ProvenanceHop,
  place: number,
  count: number,
  { objectId }: Provenance,
  paint: Paint
): ReadonlyArray<string> => {
  const { run } = hop
  const isRoot = place === count - 1 && (run === null || run.trigger !== "reaction")
  const subject =
    hop.entityId === objectId ? "it" : `${hop.objectType} ${printable(hop.key ?? shortId(hop.entityId))}`
  const at = hop.position === null ? "" : `event ${hop.position}: `
  const mark = paint.dim(place === 0 ? "  ●" : "  ↑")
  return [
    `${mark} ${at}${actorText(hop)} ${verbs[hop.type]} ${subject} (v${hop.version})${isRoot && run === null ? paint.dim("  the root") : ""}`,
    ...(run === null
      ? []
      : [
          `${paint.dim("  │")}   in run ${run.id} of ${printable(run.agentName)} v${run.agentVersion}${run.model === null ? "" : `, ${printable(run.model)}`}`,
          ...(isRoot
            ? [
                `${paint.dim("  ↑")} ${triggers[run.trigger] ?? printable(run.trigger)}${run.triggeredBy === null ? "" : ` by user ${printable(run.triggeredBy)}`}${paint.dim("  the root")}`
              ]
            : [])
        ])
  ]
}

const verbs = { created: "created", updated: "changed", deleted: "deleted" } as const

/** What started a run that no event woke. */
const triggers: Readonly<Record<string, string>> = {
  manual: "started by hand",
  schedule: "started by its schedule",
  context: "started by a message",
  webhook: "started by a webhook"
}

const actorText = ({
  actorType,
  actorId,
  agentName
}: Pick<ProvenanceHop, "actorType" | "actorId" | "agentName">): string => {
  if (actorType === "system") return "the system"
  const name = agentName ?? actorId ?? ""
  return `${actorType} ${printable(name)}`
}

const approval = ({ approvedBy }: Pick<PropertyProvenance, "approvedBy">): string =>
  approvedBy === null ? "" : `, approved by ${printable(approvedBy)}`

const instant = (timestamp: string): string => timestamp.replace("T", " ").replace(/\.\d+Z$/, " UTC")
