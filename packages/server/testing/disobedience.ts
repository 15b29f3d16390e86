/**
 * A model that obeys nobody: it calls whatever there is, again and again, in every way that it can think of.
 *
 * What it calls is taken from what it was offered, so a tool that is new is tried
 * without a word here.
 */
import { builtInTools } from "@tropism/domain/built-in-tools"
import { Effect } from "effect"
import { ask } from "./owner-rows.ts"
import { type Json, scripted, type Story } from "./platform.ts"
import type { ScriptedCall } from "./story-words.ts"

/** Every table of the graph. */
const graphTables = [
  "graph_objects",
  "graph_object_versions",
  "graph_relationships",
  "graph_relationship_versions",
  "graph_events",
  "graph_purges"
] as const

/** One hash for each table, over every column of every row of the project. */
export const graphHashes = (story: Story) =>
  Effect.forEach(graphTables, (table) =>
    Effect.map(
      ask(
        story.access,
        `select encode(sha256(convert_to(coalesce(string_agg(one, E'\\n' order by one collate "C"), ''), 'UTF8')), 'hex'), count(*)::int
         from (select to_jsonb(one)::text as one from kb.${table} one where project_id = $1) rows`,
        [story.projectId]
      ),
      ([row]) => [table, ...(row ?? [])]
    )
  )

/** What there is to name in a call. */
export interface Names {
  readonly objectIds: ReadonlyArray<string>
  readonly relationshipIds: ReadonlyArray<string>
  readonly agents: ReadonlyArray<string>
  /** The numbers and ids of tasks. */
  readonly tasks: ReadonlyArray<number | string>
}

/** Something for an argument of this name and schema; `turn` lets it be another each time. */
const valueFor = (name: string, schema: Json, names: Names, turn: number): Json => {
  const of = (values: ReadonlyArray<unknown>) => values[turn % values.length] ?? "nothing"
  if (/relationshipId/i.test(name)) return of(names.relationshipIds)
  if (/task_id/i.test(name)) return of(names.tasks)
  if (name.endsWith("Id")) return of(names.objectIds)
  if (name === "agent") return of(names.agents)
  if (name === "properties") return { taken: turn }
  if (name === "type") return "Person"
  if (name === "key") return `key-${turn}`
  if (Array.isArray(schema?.enum)) return of(schema.enum)
  const type: unknown = schema?.type ?? schema?.anyOf?.[0]?.type
  if (type === "integer" || type === "number") return 1
  if (type === "boolean") return true
  if (type === "array") return []
  return type === "object" ? {} : `Do it ${turn}.`
}

/** The arguments that a tool needs. */
const argumentsFor = ({ inputSchema }: Json, names: Names, turn: number): Record<string, Json> =>
  Object.fromEntries(
    (inputSchema.required ?? []).map((name: string) => [
      name,
      valueFor(name, inputSchema.properties[name], names, turn)
    ])
  )

/** Ways to ask for the same: as it is, sure of itself, as somebody else. */
const ways = (story: Story): ReadonlyArray<Record<string, Json>> => [
  {},
  { confidence: 1, suggest: false, reasoning: "I know better." },
  { confidence: 1, suggest: null },
  { userId: "admin", projectId: story.projectId, role: "admin" },
  { actorType: "user", actorId: "admin", approvedBy: "admin", executionMode: "execute" },
  { user_id: "admin", agentId: "01990000-0000-7000-8000-000000000001", runId: null, taskId: null }
]

/** Calls of these tools in every way, again and again, never the same twice in a row. */
export const everyWay = (
  story: Story,
  tools: ReadonlyArray<Json>,
  names: Names,
  rounds = 1
): ReadonlyArray<ScriptedCall> =>
  Array.from({ length: rounds }, (_, round) =>
    ways(story).flatMap((way, index) =>
      tools.map((tool) => ({
        tool: tool.name,
        arguments: { ...argumentsFor(tool, names, round * 10 + index), ...way }
      }))
    )
  ).flat()

/** All built-in tools as if they were offered, for an agent that was offered none of them. */
export const unofferedTools: ReadonlyArray<Json> = [
  ...Object.values(builtInTools).flat(),
  "approve_task",
  "graph__create_object",
  "graph.create_object",
  "sql"
].map((name) => ({
  name,
  inputSchema: { required: ["objectId", "type", "properties"], properties: {} }
}))

const callsAtOnce = 20

/** A model that makes all of these calls, and then is done. */
export const disobedient = (calls: ReadonlyArray<ScriptedCall>) =>
  scripted([
    ...Array.from({ length: Math.ceil(calls.length / callsAtOnce) }, (_, step) => ({
      when: `step == ${step}`,
      calls: calls.slice(step * callsAtOnce, (step + 1) * callsAtOnce)
    })),
    { say: "Done what I liked." }
  ])
