/**
 * Checks that nothing is heard which a guard has not let pass.
 */
import { type Checker, unless } from "./remains.ts"
import type { AgentRow, ContextEventRow } from "./rows.ts"

const isGuarded = ({ definitions }: AgentRow): boolean =>
  definitions.every(({ model }) => (model?.guard ?? null) !== null)

/** What a model reads that is not its own. */
const isNew = ({ event }: ContextEventRow): boolean =>
  event.type === "UserMessageEvent" ||
  event.type === "ToolCallCompletedEvent" ||
  event.type === "ToolCallFailedEvent"

const isSafe = ({ event }: ContextEventRow): boolean =>
  event.type === "GuardVerdictEvent" && "isFlagged" in event && !event.isFlagged

const isFlagged = ({ event }: ContextEventRow): boolean =>
  event.type === "GuardVerdictEvent" && "isFlagged" in event && event.isFlagged

/** Each answer of a guarded agent has behind what it answers a verdict that lets it be heard. */
const guardHeardFirst: Checker = ({ agents, contextEvents, runs }) => {
  const guarded = new Set(agents.filter(isGuarded).map(({ id }) => id))
  const names = new Set(
    runs.flatMap(({ agentId, contextName }) => (guarded.has(agentId) ? [contextName] : []))
  )
  const logs = Map.groupBy(contextEvents, ({ contextName }) => contextName)
  return [...names].flatMap((name) => {
    const log = logs.get(name) ?? []
    return log.flatMap((row, index) => {
      if (row.event.type !== "AssistantMessageEvent") return []
      const before = log.slice(0, index)
      return unless(
        before.findLastIndex(isSafe) > before.findLastIndex(isNew),
        `answer ${row.number} of ${name} was heard before a guard had let it pass`
      )
    })
  })
}

/** Behind what a guard has flagged its turn says and does nothing more, and has failed. */
const guardObeyed: Checker = ({ contextEvents }) =>
  [...Map.groupBy(contextEvents, ({ contextName }) => contextName)].flatMap(([name, log]) =>
    log.flatMap((row, index) => {
      if (!isFlagged(row)) return []
      const after = log.slice(index + 1)
      const end = after.findIndex(({ event }) => event.type === "AgentTurnStartedEvent")
      const turn = (end < 0 ? after : after.slice(0, end)).map(({ event }) => event.type)
      return unless(
        turn.includes("AgentTurnFailedEvent") &&
          !turn.includes("AssistantMessageEvent") &&
          !turn.includes("ToolCallStartedEvent"),
        `behind the verdict ${row.number} of ${name}, which flagged it, stand ${turn.join(", ") || "no events"}`
      )
    })
  )

export const checkGuards = { guardHeardFirst, guardObeyed }
