/**
 * Checks what people had taken back: all of a plan was done, by a person, and every value is the one from before.
 */
import { canonicalJson } from "@tropism/domain/json"
import { type Checker, keyOf, unless } from "./remains.ts"

/** An approved undo has a change of its own for each item that was ready, and leaves what the item says. */
const undoneWhole: Checker = ({ events, relationshipVersions, tasks, undoItems, versions }) => {
  const all = [...versions, ...relationshipVersions]
  const stateOf = new Map(all.map((version) => [keyOf(version.objectId, String(version.version)), version]))
  const changesOf = Map.groupBy(events, (event) => keyOf(event.taskId ?? "", event.entityId))
  const done = new Set(
    tasks.filter(({ status, type }) => type === "undo" && status === "completed").map(({ id }) => id)
  )
  return undoItems.flatMap(({ action, entityId, leftOut, properties, status, taskId }) => {
    const changes = changesOf.get(keyOf(taskId, entityId)) ?? []
    const at = `undo ${taskId} of ${entityId}`
    if (!done.has(taskId) || status !== "ready" || leftOut)
      return unless(changes.length === 0, `${at} changed what it was not to change`)
    const last = Math.max(...changes.map(({ version }) => version))
    const now = stateOf.get(keyOf(entityId, String(last)))
    // A purge leaves nothing to look at.
    if (changes.length > 0 && !now) return []
    const wrong = properties.filter(
      (one) =>
        one.status === "ready" &&
        canonicalJson(now?.properties[one.property] ?? null) !==
          canonicalJson(
            stateOf.get(keyOf(entityId, String(one.backVersion)))?.properties[one.property] ?? null
          )
    )
    return [
      ...unless(
        changes.length > 0 && changes.every(({ actorType }) => actorType === "user"),
        `${at} made ${changes.length} changes`
      ),
      ...unless((now?.type === "deleted") === (action === "delete"), `${at} did not ${action} it`),
      ...wrong.map(({ property }) => `${at} left ${property} as it was`)
    ]
  })
}

/** What an undo deleted had no work of a person's in it since it was made. */
const workKept: Checker = ({ events }) => {
  const ofEntity = Map.groupBy(events, ({ entityId }) => entityId)
  return events
    .filter(({ type, undoes }) => type === "deleted" && undoes.length > 0)
    .flatMap(({ entityId, id, version }) => {
      const before = (ofEntity.get(entityId) ?? []).filter((event) => event.version < version)
      const made = Math.max(...before.flatMap((event) => (event.type === "created" ? [event.version] : [])))
      return before
        .filter((event) => event.version > made && event.actorType === "user" && event.undoes.length === 0)
        .map((event) => `event ${id} of an undo deleted what a person had changed by event ${event.id}`)
    })
}

export const checkUndos = { undoneWhole, workKept }
