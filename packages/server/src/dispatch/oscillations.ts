/**
 * Finds changes by which agents only take back what other agents did.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * One query for a batch, and a bounded number of versions for each event: the
 * cost does not follow the history of an object. Only changes of agents that no
 * person approved are asked about; what a person said begins the count anew.
 */
import type { GraphEventId } from "@tropism/domain/ids"
import { findOscillation, oscillationBounds, type PropertyTurns } from "@tropism/domain/oscillation"
import type { Told } from "@tropism/domain/refusal"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import type { ClaimedEvent } from "../outbox/outbox.ts"

/** The events by which a property goes back and forth, with the sentence that says so. */
export const findOscillations = Effect.fn("findOscillations")(function* (
  events: ReadonlyArray<ClaimedEvent>
): Effect.fn.Return<ReadonlyMap<GraphEventId, Told>, never, SqlClient.SqlClient | ProjectTransaction> {
  const asked = events.filter(isByAgentAlone)
  if (asked.length === 0) return new Map()
  const turns = Map.groupBy(yield* readTurns(asked.map(({ id }) => id)), ({ eventId }) => eventId)
  const found = new Map<GraphEventId, Told>()
  for (const [eventId, ofEvent] of turns) {
    const reason = findOscillation(ofEvent)
    if (reason !== undefined) found.set(eventId, { rule: "oscillation", reason })
  }
  return found
})

/** Before so many versions nothing can have come back often enough. */
const isByAgentAlone = ({ actorType, approvedBy, type, version }: ClaimedEvent): boolean =>
  type === "updated" && actorType === "agent" && approvedBy === null && version > oscillationBounds.returns

/** The values of each property that an event changed, as agents alone have set it lately. */
const readTurns = Effect.fnUntraced(function* (eventIds: ReadonlyArray<GraphEventId>) {
  const sql = yield* SqlClient.SqlClient
  const { projectId } = yield* ProjectTransaction
  const { properties, versions, withinMs } = oscillationBounds
  return yield* sql<PropertyTurns & { readonly eventId: GraphEventId }>`
    select event.id as event_id, changed.property,
      array_agg(md5(coalesce((past.properties -> changed.property)::text, '')) order by past.version) as values
    from kb.graph_events event
    join lateral (
      select version, changed_properties, snapshot -> 'properties' as properties,
        bool_or(actor_type <> 'agent' or approved_by is not null) over (order by version desc) as is_before_person
      from kb.graph_events
      where entity_id = event.entity_id and version between event.version - ${versions - 1} and event.version
        and created_at > event.created_at - make_interval(secs => ${withinMs / 1_000}::float8)
      offset 0
    ) past on not past.is_before_person
    cross join lateral unnest(event.changed_properties[1:${properties}]) as changed(property)
    where event.project_id = ${projectId} and event.id = any(${eventIds}::uuid[]) and changed.property = any(past.changed_properties)
    group by event.id, changed.property`
}, orDie)
