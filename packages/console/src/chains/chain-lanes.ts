/**
 * A chain as swim lanes: who did what, in the order in which it came to be, and what led to what.
 *
 * Pure. A lane is an actor: a person, the server, an agent, and one for what
 * people are asked. A link stands in the lane of whoever made it; an arrow goes
 * from what led to it, where that is among the links.
 */
import type { ChainLink } from "@tropism/api/chains-api"
import type { GraphEvent } from "@tropism/domain/graph"

export interface Lane {
  readonly key: string
  readonly name: string
  readonly type: "person" | "agent" | "system" | "tasks"
}

/** An arrow between two links, by their places. */
export interface LaneArrow {
  readonly from: number
  readonly to: number
}

export interface ChainLanes {
  /** In the order in which they come up. */
  readonly lanes: ReadonlyArray<Lane>
  /** The place of each link's lane. */
  readonly laneOf: ReadonlyArray<number>
  readonly arrows: ReadonlyArray<LaneArrow>
}

export const chainLanes = (links: ReadonlyArray<ChainLink>): ChainLanes => {
  const names = agentNames(links)
  const lanes = new Map<string, Lane & { readonly place: number }>()
  const laneOf = links.map((link) => {
    const lane = actorLane(link, names)
    const known = lanes.get(lane.key) ?? { ...lane, place: lanes.size }
    lanes.set(lane.key, known)
    return known.place
  })
  return {
    lanes: [...lanes.values()].map(({ key, name, type }) => ({ key, name, type })),
    laneOf,
    arrows: arrowsOf(links)
  }
}

/** The names of the agents that ran, by their ids. */
const agentNames = (links: ReadonlyArray<ChainLink>): ReadonlyMap<string, string> =>
  new Map(links.flatMap((link) => (link.type === "run" ? [[link.run.agentId, link.run.agentName]] : [])))

const actorLane = (link: ChainLink, names: ReadonlyMap<string, string>): Lane => {
  switch (link.type) {
    case "event":
      return eventLane(link.event, names)
    case "run":
      return agentLane(link.run.agentId, link.run.agentName)
    case "task":
      return { key: "tasks", name: "Tasks", type: "tasks" }
  }
}

const eventLane = (
  { actorId, actorType }: Pick<GraphEvent, "actorId" | "actorType">,
  names: ReadonlyMap<string, string>
): Lane => {
  if (actorType === "agent") return agentLane(actorId ?? "", names.get(actorId ?? "") ?? "An agent")
  if (actorType === "user") return { key: `user ${actorId}`, name: actorId ?? "A person", type: "person" }
  return { key: "system", name: "The server", type: "system" }
}

const agentLane = (id: string, name: string): Lane => ({ key: `agent ${id}`, name, type: "agent" })

const arrowsOf = (links: ReadonlyArray<ChainLink>): ReadonlyArray<LaneArrow> => {
  const placeOf = new Map(links.map(({ id }, place) => [id, place]))
  return links.flatMap((link, to) =>
    causesOf(link).flatMap((cause) => {
      const from = placeOf.get(cause)
      return from === undefined || from === to ? [] : [{ from, to }]
    })
  )
}

/** What led to a link; of an approved change that is the task, and no longer the run that suggested it. */
const causesOf = (link: ChainLink): ReadonlyArray<string> => {
  switch (link.type) {
    case "event":
      return given(link.event.taskId ?? link.event.runId)
    case "run":
      return [...given(link.run.parentRunId), ...(link.run.trigger.events ?? []).map(({ id }) => id)]
    case "task":
      return given(link.task.runId)
  }
}

const given = (id: string | null): ReadonlyArray<string> => (id === null ? [] : [id])
