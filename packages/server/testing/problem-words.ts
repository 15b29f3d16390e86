/**
 * What every refusal must be: a problem document with one sentence for a person.
 */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { ask } from "./owner-rows.ts"
import type { Answer, Json, Story } from "./platform.ts"

/** Expects RFC 9457 problem details whose detail is one line that says what is wrong, and no more of the inside. */
export const expectProblem = (answer: Answer, status: number, pointer?: string): void => {
  const { body } = answer
  expect([answer.status, body]).toEqual([
    status,
    expect.objectContaining({
      type: expect.stringMatching(/^\/problems\/[a-z]+(-[a-z]+)*$/),
      status,
      title: expect.stringMatching(/^[A-Z][^\n]{5,100}$/),
      detail: expect.stringMatching(/^[^\n]{8,600}$/)
    })
  ])
  expect(answer.headers.get("content-type")).toMatch(/^application\/problem\+json/)
  expect(JSON.stringify(body)).not.toMatch(/\.[tj]s:\d|\bat \S+ \(|TypeError|SqlError|readonly \\?"/)
  for (const error of body.errors ?? []) expect(error.message).toMatch(/^[^\n]{8,}$/)
  if (pointer !== undefined) expect(body.errors[0]).toMatchObject({ pointer })
}

/** The problem that a door answers, when it is one as every refusal must be. */
export const problemOf = (
  asked: Effect.Effect<Answer>,
  status: number,
  pointer?: string
): Effect.Effect<Json> =>
  Effect.map(asked, (answer) => {
    expectProblem(answer, status, pointer)
    return answer.body
  })

/** Every table in which a refused request could leave something. */
const tables = [
  "graph_objects",
  "graph_object_versions",
  "graph_relationships",
  "graph_events",
  "agents",
  "agent_versions",
  "agent_reactions",
  "agent_schedules",
  "agent_runs",
  "agent_processing_log",
  "contexts",
  "context_events",
  "tool_calls",
  "tasks"
]

const countRowsOfProject = `select ${tables.map((table) => `(select count(*)::int from kb.${table} where project_id = $1)`).join(", ")}`

/** How many rows a project has in each table: the same before and after a refusal, for nothing is half-written. */
export const countRows = (story: Story): Effect.Effect<Record<string, unknown>> =>
  Effect.map(ask(story.access, countRowsOfProject, [story.projectId]), ([counts = []]) =>
    Object.fromEntries(tables.map((table, index) => [table, counts[index]]))
  )
