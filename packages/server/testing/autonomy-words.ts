/**
 * The words in which stories let an agent earn trust and lose it.
 */
import { Effect } from "effect"
import { eventually, type Json, promptWithObject, scripted, type Story } from "./platform.ts"
import { isEnded } from "./sub-agent-words.ts"
import { callsOf, type ScriptedCall } from "./story-words.ts"
import { approve, reject } from "./suggestion-words.ts"

/** A call that makes something of a type, without a word of how sure the agent is. */
export const creating = (type: string, extra: Record<string, unknown> = {}): ScriptedCall => ({
  tool: "create_object",
  arguments: { type, properties: { kind: "made", n: "{{ input.input.n }}" }, ...extra }
})

/** After two reviews, one of them good, it need not ask. */
export const lenient = { minReviews: 2, minRate: 0.5 }

/** A hybrid agent that does, when it is told to, what is listed under that word; it never says how sure it is. */
export const earner = (
  deeds: Record<string, ScriptedCall | ReadonlyArray<ScriptedCall>>,
  overrides: Record<string, unknown> = {}
) => ({
  name: "earner",
  prompt: promptWithObject,
  triggerType: "manual",
  executionMode: "hybrid",
  hybridPolicy: { promotion: lenient },
  tools: ["graph.*", "run.*"],
  model: scripted([
    ...Object.entries(deeds).map(([deed, call]) => ({
      when: `step == 0 and input.input.deed == "${deed}"`,
      calls: [call].flat()
    })),
    { say: "{{ results | json }}" }
  ]),
  ...overrides
})

/** The record of the one call that the agent makes when it is told to. */
export const told = Effect.fnUntraced(function* (story: Story, agent: Json, deed: string) {
  const run = yield* story.post(`/agents/${agent.id}/trigger?wait=false`, {
    input: { deed, n: crypto.randomUUID() }
  })
  yield* eventually(story.get(`/runs/${run.id}`), isEnded)
  const [call] = yield* callsOf(story, run)
  return call
})

/** The suggestion that comes of it. */
export const askedBy = (story: Story, agent: Json, deed: string): Effect.Effect<Json> =>
  Effect.flatMap(told(story, agent, deed), (call) => story.get(`/tasks/${call.result.taskId}`))

export type Decision = "accept" | "edit" | "reject"

/** Lets the agent suggest it again and again, and decides each as listed. */
export const decideEach = (story: Story, agent: Json, deed: string, decisions: ReadonlyArray<Decision>) =>
  Effect.forEach(decisions, (decision) =>
    Effect.flatMap(askedBy(story, agent, deed), (task) => decide(story, task, decision))
  )

export const decide = Effect.fnUntraced(function* (story: Story, task: Json, decision: Decision) {
  const answer = yield* decision === "accept"
    ? approve(story, task, { digest: task.digest })
    : decision === "edit"
      ? approve(story, task, { suggestedChanges: { data: { kind: "another" } } })
      : reject(story, task, { reason: "Not so" })
  if (answer.status !== 200)
    return yield* Effect.die(new Error(`It was not decided: ${JSON.stringify(answer.body)}`))
  return answer.body as Json
})

/** What the agent's present version has earned, or another. */
export const earned = (story: Story, agent: Json, version?: number): Effect.Effect<Json> =>
  story.get(`/agents/${agent.id}/autonomy${version === undefined ? "" : `?version=${version}`}`)

/** The promotions of which people were told and that nobody has decided. */
export const toldOf = (story: Story, status = "pending"): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/tasks?type=promotion&status=${status}`), (page) => page.items.toReversed())

/** Takes a promotion back by its own door, and answers whatever it says. */
export const reverse = (story: Story, agent: Json, promotion: Json, body: unknown = {}) =>
  story.ask("POST", `/agents/${agent.id}/promotions/${promotion.id}/reverse`, body)

/** An agent that has earned what it does under a word, and the promotion. */
export const promoted = Effect.fnUntraced(function* (
  story: Story,
  deeds: Record<string, ScriptedCall>,
  deed: string,
  overrides: Record<string, unknown> = {}
) {
  const agent = yield* story.post("/agents", earner(deeds, overrides))
  yield* decideEach(story, agent, deed, ["accept", "accept"])
  const { promotions } = yield* earned(story, agent)
  return { agent, promotion: promotions[0] as Json }
})
