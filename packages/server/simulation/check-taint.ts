/**
 * Checks that whoever was shown something untrusted has written nothing since that no person approved.
 *
 * What was shown is read from the logs and events themselves and not from what
 * the server noted of it.
 */
import type { CallRow, ContextEventRow, EventRow, Rows } from "./rows.ts"
import { type Checker, unless } from "./remains.ts"

/** Whether a value says of something in it that it is untrusted. */
const isDoubted = (value: unknown): boolean => /"untrusted":\["/.test(JSON.stringify(value) ?? "")

/** Answers whether a call was begun when its run had been shown something untrusted, also by the run that spawned it. */
const shownBefore = ({ calls, contextEvents, events, runs }: Rows): ((call: CallRow) => boolean) => {
  const logs = Map.groupBy(contextEvents, ({ contextName }) => contextName)
  const runById = new Map(runs.map((run) => [run.id, run]))
  const callById = new Map(calls.map((call) => [call.id, call]))
  const eventById = new Map<string, EventRow>(events.map((event) => [event.id, event]))
  const isWoken = (call: CallRow): boolean =>
    runById.get(call.runId)?.trigger.type === "mcpEvent" ||
    (runById.get(call.runId)?.trigger.events ?? []).some(({ id }) => isDoubted(eventById.get(id)?.snapshot))
  const isShown = ({ event }: ContextEventRow): boolean =>
    (event.type === "ToolCallCompletedEvent" || event.type === "ToolCallFailedEvent") && isDoubted(event)
  const before = (call: CallRow): boolean => {
    const log = logs.get(call.contextName) ?? []
    const place = log.findIndex(
      ({ event }) =>
        event.type === "ToolCallStartedEvent" && "callId" in event && event.callId === call.callId
    )
    if (log.slice(0, Math.max(0, place)).some(isShown) || isWoken(call)) return true
    const spawned = callById.get(runById.get(call.runId)?.spawnedBy ?? "")
    return spawned !== undefined && before(spawned)
  }
  return before
}

/** What agents wrote by themselves, they wrote before they were shown anything untrusted. */
const untrustedSuggested: Checker = (remains) => {
  const isTainted = shownBefore(remains)
  const callById = new Map(remains.calls.map((call) => [call.id, call]))
  return remains.events
    .filter((event) => event.actorType === "agent" && event.taskId === null)
    .flatMap((event) => {
      const call = callById.get(event.toolCallId ?? "")
      return unless(
        call === undefined || !isTainted(call),
        `event ${event.id}: an agent that had read something untrusted wrote without an approved task`
      )
    })
}

/** What an entity says of its marks is what its history says, and a mark is of a property that is there. */
const marksFold: Checker = ({ objects, relationships, relationshipVersions, versions }) => {
  const lastOf = new Map([...versions, ...relationshipVersions].map((version) => [version.objectId, version]))
  return [...objects, ...relationships].flatMap(({ id, properties, untrusted }) => [
    ...unless(
      String(lastOf.get(id)?.untrusted) === String(untrusted),
      `the marks of ${id} are ${untrusted.join(", ") || "none"}, and its history says otherwise`
    ),
    ...unless(
      untrusted.every((name) => Object.hasOwn(properties, name)),
      `${id} marks what it does not have: ${untrusted.join(", ")}`
    )
  ])
}

export const checkTaint = { untrustedSuggested, marksFold }
