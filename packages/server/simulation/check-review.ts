/**
 * Checks people's decisions: an approved task made one change, every other task none.
 */
import { reviewDefaults } from "@tropism/domain/agent"
import { canonicalJson, isJsonObject, type Properties } from "@tropism/domain/json"
import { patchedBy } from "@tropism/domain/suggestion"
import { editMark } from "./people.ts"
import { type Checker, countsUp, keyOf, unless } from "./remains.ts"

const decisionsApplied: Checker = ({ tasks, events }) => {
  const changesOf = Map.groupBy(events, (event) => event.taskId)
  return tasks.flatMap((task) => {
    // What an approved undo did is looked at item by item.
    if (task.type === "undo" && task.status === "completed")
      return unless(changesOf.has(task.id), `undo ${task.ordinal} took nothing back`)
    if (task.payload.suggestedChanges === undefined)
      return unless(!changesOf.has(task.id), `the decision of ${task.type} ${task.ordinal} changed something`)
    const at = `task ${task.ordinal} (${task.status})`
    const changes = changesOf.get(task.id) ?? []
    if (task.status !== "completed")
      return [
        ...unless(changes.length === 0 && task.outcome === null, `${at} changed something`),
        ...unless((task.status === "rejected") === (task.resolvedBy !== null), `${at} has the wrong decider`)
      ]
    const { outcome } = task
    if (outcome === null || task.resolvedBy === null)
      return [`${at} has no outcome or nobody who approved it`]
    const ofTarget = changes.filter(
      (event) => event.entityId === outcome.entityId && event.version === outcome.version
    )
    return unless(
      outcome.change === "unchanged" ? changes.length === 0 : ofTarget.length === 1 && changes.length === 1,
      `${at} made ${changes.length} changes`
    )
  })
}

/** What a reviewer was told was decided is decided so, and was decided by nobody else. */
const decisionsKept: Checker = ({ acknowledged, tasks }) => {
  const statusOf = new Map<string, string>(tasks.map((task) => [task.id, task.status]))
  const told = [...acknowledged.approved, ...acknowledged.rejected]
  return [
    ...acknowledged.approved.flatMap((id) =>
      unless(statusOf.get(id) === "completed", `the approval of task ${id} is lost`)
    ),
    ...acknowledged.rejected.flatMap((id) =>
      unless(statusOf.get(id) === "rejected", `the rejection of task ${id} is lost`)
    ),
    ...unless(new Set(told).size === told.length, "two people were told that they decided one task")
  ]
}

/** What somebody approved with a text of his own is what was done. */
const editsKept: Checker = ({ acknowledged, events }) => {
  const eventOf = new Map(events.map((event) => [event.taskId, event]))
  return acknowledged.edited.flatMap((id) =>
    unless(
      eventOf.get(id)?.snapshot.properties[editMark] === id,
      `task ${id} was approved with other properties than it set`
    )
  )
}

/** An approval wrote over nothing that had moved since the agent saw it; a deletion took nothing away that had. */
const othersKept: Checker = ({ relationshipVersions, tasks, versions }) => {
  const stateOf = new Map(
    [...versions, ...relationshipVersions].map((one) => [
      keyOf(one.objectId, one.version),
      one.type === "deleted" ? {} : one.properties
    ])
  )
  return tasks.flatMap(({ baseVersion, ordinal, outcome, payload: { suggestedChanges: change } }) => {
    if (!change || !outcome || outcome.change === "unchanged" || baseVersion === null) return []
    const at = (version: number): Properties | undefined => stateOf.get(keyOf(outcome.entityId, version))
    const [seen, before, after] = [at(baseVersion), at(outcome.version - 1), at(outcome.version)]
    // A purge leaves nothing to look at.
    if (!seen || !before || !after) return []
    const written = patchedBy(change) ?? Object.keys({ ...seen, ...before })
    const same = (one: Properties, other: Properties, name: string) =>
      canonicalJson(one[name] ?? null) === canonicalJson(other[name] ?? null)
    return written
      .filter((name) => !(isJsonObject(before[name]) && isJsonObject(after[name])))
      .filter((name) => !same(seen, before, name) && !same(before, after, name))
      .map(
        (name) => `task ${ordinal} was approved over a ${name} that had moved since version ${baseVersion}`
      )
  })
}

const tasksNumbered: Checker = ({ tasks, lastTaskNumber }) =>
  unless(
    countsUp(tasks.map((task) => task.ordinal)) && lastTaskNumber === tasks.length,
    `the tasks are numbered ${tasks.map((task) => task.ordinal).join(", ")}, the last ${lastTaskNumber}`
  )

/** No agent has two suggestions open about the same: patches of one thing name different properties. */
const openOnce: Checker = ({ tasks }) => {
  const open = tasks.filter(({ status, subject }) => status === "pending" && subject !== null)
  const bySubject = Map.groupBy(open, ({ agentId, subject }) => keyOf(agentId, subject ?? ""))
  return [...bySubject].flatMap(([about, all]) => {
    // What nobody may decide any more is not open, though nobody has swept it yet.
    const newest = Math.max(...all.map(({ createdAt, refinedAt }) => (refinedAt ?? createdAt).getTime()))
    const same = all.filter(({ expiresAt }) => expiresAt === null || expiresAt.getTime() > newest)
    const written = same.flatMap(({ payload: { suggestedChanges: change } }) =>
      change ? (patchedBy(change) ?? [""]) : []
    )
    return unless(
      new Set(written).size === written.length,
      `tasks ${same.map(({ ordinal }) => ordinal).join(", ")} are open about the same: ${about}`
    )
  })
}

/** No agent has more suggestions open than it was ever allowed; what has a time may be over and not swept. */
const waitsBounded: Checker = ({ agents, tasks }) =>
  agents.flatMap(({ definitions, id }) => {
    const max = Math.max(
      ...definitions.map(({ reviewPolicy }) => reviewPolicy?.maxPending ?? reviewDefaults.maxPending)
    )
    const open = tasks.filter(
      (task) =>
        task.agentId === id && task.status === "pending" && task.subject !== null && task.expiresAt === null
    )
    return unless(open.length <= max, `agent ${id} has ${open.length} suggestions open, more than ${max}`)
  })

/** What a refined suggestion said before is there, from the first time to the last but one. */
const revisionsKept: Checker = ({ revisions, tasks }) => {
  const revisionsOf = Map.groupBy(revisions, ({ taskId }) => taskId)
  // What an undo would do is planned anew with items of its own for each revision.
  return tasks.flatMap(({ id, ordinal, revision, type }) => {
    if (type === "undo") return []
    const said = (revisionsOf.get(id) ?? []).map((one) => one.revision)
    return unless(
      countsUp([...said, revision]),
      `task ${ordinal} is at revision ${revision} and was said as ${said.join(", ") || "none"} before`
    )
  })
}

export const checkReview = {
  decisionsApplied,
  decisionsKept,
  editsKept,
  othersKept,
  tasksNumbered,
  openOnce,
  waitsBounded,
  revisionsKept
}
