/**
 * Suggestions as values, for the table tests of what is pure: groups, words and marks.
 *
 * It is no server and answers nothing: what a page makes of a server is shown
 * against the whole program.
 */
import type { Change } from "@tropism/domain/change"
import type { GraphObject, ObjectVersion, Relationship } from "@tropism/domain/graph"
import type { AgentId, GraphEventId, ObjectId, RelationshipId, RunId, TaskId } from "@tropism/domain/ids"
import type { Properties } from "@tropism/domain/json"
import { type Staleness, toldStaleness } from "@tropism/domain/staleness"
import { type SuggestionTask, type Task, taskTypeOf } from "@tropism/domain/task"

/** A UUID that a reader can tell apart: its last digits are the number. */
export const fixtureId = <Id extends string>(kind: number, number: number): Id =>
  `0190a000-000${kind}-7000-8000-${String(number).padStart(12, "0")}` as Id

export const agentIds = {
  install: fixtureId<AgentId>(1, 1),
  licence: fixtureId<AgentId>(1, 2),
  tidy: fixtureId<AgentId>(1, 3)
}

const agentNames: Readonly<Record<string, string>> = {
  [agentIds.install]: "install-script-watch",
  [agentIds.licence]: "licence-review",
  [agentIds.tidy]: "tidy-up"
}

export interface World {
  readonly objects: Map<string, GraphObject>
  readonly versions: Map<string, Array<ObjectVersion>>
  readonly relationships: Map<string, Relationship>
  readonly tasks: Array<Task>
}

/** Instants are counted back from when the world is made, so that ages are the same in every picture. */
const minutesAgo = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString()

export const emptyWorld = (): World => ({
  objects: new Map(),
  versions: new Map(),
  relationships: new Map(),
  tasks: []
})

/** Puts an object with its whole history into the world; the last state is the present one. */
export const addObject = (
  world: World,
  number: number,
  type: string,
  key: string | null,
  states: ReadonlyArray<Properties>
): GraphObject => {
  const id = fixtureId<ObjectId>(2, number)
  const versions = states.map((properties, index): ObjectVersion => ({
    version: index + 1,
    type: index === 0 ? "created" : "updated",
    properties,
    untrusted: [],
    actorType: "user",
    actorId: "admin",
    approvedBy: null,
    runId: null,
    toolCallId: null,
    taskId: null,
    eventId: fixtureId<GraphEventId>(6, number * 100 + index),
    createdAt: minutesAgo(60 - index)
  }))
  const object: GraphObject = {
    id,
    type,
    key,
    properties: states.at(-1) ?? {},
    untrusted: [],
    version: states.length,
    actorType: "user",
    actorId: "admin",
    createdAt: minutesAgo(60),
    updatedAt: minutesAgo(30)
  }
  world.objects.set(id, object)
  world.versions.set(id, versions)
  return object
}

export interface SuggestionFixture {
  readonly agentId: AgentId
  readonly title: string
  readonly change: Change
  readonly target?: GraphObject | null
  readonly baseVersion?: number | null
  readonly reasoning?: string
  readonly confidence?: number
  readonly evidence?: SuggestionTask["evidence"]
  readonly minutesAgo?: number
}

/** Adds a pending suggestion; its number is its place. */
export const addSuggestion = (world: World, fixture: SuggestionFixture): SuggestionTask => {
  const number = world.tasks.length + 1
  const runId = fixtureId<RunId>(4, number)
  const { reasoning, confidence } = fixture
  const task: SuggestionTask = {
    id: fixtureId<TaskId>(3, number),
    number,
    type: taskTypeOf[fixture.change.type],
    status: "pending",
    title: fixture.title,
    description: null,
    payload: {
      agentId: fixture.agentId,
      agentRunId: runId,
      suggestedChanges: fixture.change,
      ...(reasoning !== undefined && { reasoning }),
      ...(confidence !== undefined && { confidence })
    },
    digest: `digest-of-${number}`,
    agentId: fixture.agentId,
    agentName: agentNames[fixture.agentId] ?? "agent",
    agentState: "enabled",
    agentVersion: 1,
    revision: 1,
    refinedAt: null,
    expiresAt: null,
    runId,
    assignee: null,
    baseVersion: fixture.baseVersion === undefined ? (fixture.target?.version ?? null) : fixture.baseVersion,
    evidence: fixture.evidence ?? [],
    untrusted: [],
    target: fixture.target ?? null,
    relationship: null,
    staleness: stalenessOf(world, fixture),
    denial: null,
    rerun: null,
    resolvedBy: null,
    resolutionNote: null,
    outcome: null,
    createdAt: minutesAgo(fixture.minutesAgo ?? number),
    resolvedAt: null
  }
  world.tasks.push(task)
  return task
}

/** How a suggestion stands in the world as it is. */
const stalenessOf = (
  world: World,
  { baseVersion, change, evidence, target }: SuggestionFixture
): Staleness => {
  const current = target ?? null
  const isNew = change.type === "create" || change.type === "createRelationship"
  const isOfObject = change.type === "update" || change.type === "delete"
  const base = current && world.versions.get(current.id)?.find(({ version }) => version === baseVersion)
  const changed = (evidence ?? []).flatMap((each) => {
    const version = world.objects.get(each.objectId)?.version ?? null
    return version === each.version ? [] : [{ ...each, currentVersion: version }]
  })
  const standing = {
    current,
    base: isNew ? null : (base ?? current),
    isGone: isOfObject && current === null,
    added: [],
    takenBy: null
  }
  return toldStaleness(change, standing, changed)
}

/** What an agent read, as evidence. */
export const read = (object: GraphObject, version = object.version): SuggestionTask["evidence"][number] => ({
  objectId: object.id,
  type: object.type,
  version
})

export const addRelationship = (
  world: World,
  number: number,
  type: string,
  from: GraphObject,
  to: GraphObject
): Relationship => {
  const relationship: Relationship = {
    id: fixtureId<RelationshipId>(5, number),
    type,
    fromId: from.id,
    toId: to.id,
    properties: {},
    untrusted: [],
    version: 1,
    actorType: "user",
    actorId: "admin",
    createdAt: minutesAgo(60),
    updatedAt: minutesAgo(60)
  }
  world.relationships.set(relationship.id, relationship)
  return relationship
}
