/**
 * Checks whom events woke: each agent that was meant has its entry, each that was refused its reason.
 *
 * An agent may change while events wait, and nobody can say afterwards which came
 * first; so what was done must be right for one of the definitions that it had.
 */
import type { AgentId } from "@tropism/domain/ids"
import { findRefusal, isOfNoConcern } from "@tropism/domain/refusal"
import type { AgentRow, EntryRow, EventRow, Rows } from "./rows.ts"
import { askedFor, type Checker, keyOf, unless } from "./remains.ts"

/** What should have become of an event and an agent. */
type Due = "nothing" | "entry" | { readonly refusal: string }

const dueUnder = (
  agentId: AgentId,
  { enabled, reactionConfig, triggerType }: AgentRow["definitions"][number],
  event: EventRow,
  chainLimits: Rows["chainLimits"]
): Due => {
  if (!enabled || triggerType !== "reaction" || reactionConfig === null) return "nothing"
  const refusal = findRefusal(agentId, reactionConfig, event, chainLimits)
  if (refusal === undefined) return "entry"
  return isOfNoConcern(refusal.rule) ? "nothing" : { refusal: refusal.reason }
}

/** Rules that refuse an agent which an event was meant for. */
const capRules: ReadonlyArray<string | undefined> = ["chainRuns", "chainTokens", "chainCost", "oscillation"]

/** What became of an event and an agent. */
interface Become {
  /** But for what a person asked for. */
  readonly tries: ReadonlyArray<EntryRow>
  readonly refusals: EventRow["refusals"]
  /** What a person asked for all the same: what then waited for its run may have come too late for its chain, and is refused once more. */
  readonly asked: ReadonlyArray<EntryRow>
}

/** A try that waited for its run when the chain came to its end was skipped for that reason. */
const skippedFor = (tries: ReadonlyArray<EntryRow>, refusals: EventRow["refusals"]) =>
  tries.filter(
    (entry) => entry.status === "skipped" && refusals.some(({ reason }) => reason === entry.reason)
  )

const isDone = (due: Due, { asked, refusals, tries }: Become): boolean => {
  if (due === "nothing") return tries.length === 0 && refusals.length === 0
  if (due !== "entry") {
    const others = refusals.filter(({ reason }) => reason !== due.refusal)
    const isAlone =
      others.length === 0 || (asked.length > 0 && others.every(({ rule }) => capRules.includes(rule)))
    return tries.length === 0 && refusals.length - others.length === 1 && isAlone
  }
  const hasEntry = tries.filter((entry) => entry.attempt === 1).length === 1
  if (refusals.length === 0) return hasEntry
  if (!refusals.every(({ rule }) => capRules.includes(rule))) return false
  const ended = skippedFor(tries, refusals).length
  const endedOfAsked = skippedFor(asked, refusals).length
  if (tries.length > 0) return hasEntry && refusals.length === ended + endedOfAsked
  // A person may have named the object of the very try that was refused first.
  return refusals.length === endedOfAsked || refusals.length === endedOfAsked + 1
}

/** Every event that an agent listens to has its entry, or a reason why not. */
const everyEventAnswered: Checker = (remains) => {
  const { agents, chainLimits, entries, events } = remains
  const isAsked = askedFor(remains)
  const own = entries.filter((entry) => !isAsked(entry))
  const askedOf = Map.groupBy(entries.filter(isAsked), (entry) => keyOf(entry.agentId, entry.eventId))
  const triesOf = Map.groupBy(own, (entry) => keyOf(entry.agentId, entry.eventId))
  return agents.flatMap((agent) =>
    events.flatMap((event) => {
      const tries = triesOf.get(keyOf(agent.id, event.id)) ?? []
      const refusals = event.refusals.filter((refusal) => refusal.agentId === agent.id)
      const become = { tries, refusals, asked: askedOf.get(keyOf(agent.id, event.id)) ?? [] }
      const dues = agent.definitions.map((definition) =>
        dueUnder(agent.id as AgentId, definition, event, chainLimits)
      )
      return unless(
        [...dues, ...(agent.isDeleted ? ["nothing" as const] : [])].some((due) => isDone(due, become)),
        `event ${event.id} (${event.type} ${event.objectType}) and agent ${agent.id}: entries ${JSON.stringify(tries.map(({ attempt, reason, status }) => [attempt, status, reason]))} and refusals ${JSON.stringify(refusals.map(({ reason }) => reason))}, due was ${JSON.stringify(dues)}`
      )
    })
  )
}

/** No agent that ignores itself is woken by what it did, unless a person asks for it. */
const notWokenByItself: Checker = (remains) => {
  const { agents, entries, events } = remains
  const isAsked = askedFor(remains)
  const eventById = new Map(events.map((event) => [event.id, event]))
  const ignoring = new Set(
    agents
      .filter(({ definitions }) =>
        definitions.every(({ reactionConfig }) => reactionConfig?.ignoreSelfTriggered === true)
      )
      .map(({ id }) => id)
  )
  return entries.flatMap((entry) =>
    unless(
      !ignoring.has(entry.agentId) ||
        isAsked(entry) ||
        eventById.get(entry.eventId)?.actorId !== entry.agentId,
      `entry ${entry.id}: the agent was woken by its own change`
    )
  )
}

export const checkWaking = { everyEventAnswered, notWokenByItself }
