/**
 * The doors through which the cells of the gate's matrix are tried.
 *
 * A door takes trials and answers what came of each cell. Another door is another
 * function of this kind.
 */
import { Effect } from "effect"
import { addEvent, newContext } from "./context-words.ts"
import { type Cell, callOf, type Ids, type Rights, type Sentence, type Trial } from "./gate-cells.ts"
import { atTheDoor } from "./person-words.ts"
import { type Json, scripted, type Story } from "./platform.ts"
import { callsOf, endedRuns, make, type ScriptedCall } from "./story-words.ts"
import { boss, childrenOf, runThrough, spawning, worker } from "./sub-agent-words.ts"

/** What came of a cell. */
export type Told = readonly [cell: Cell, sentence: Sentence]

export type Door = (
  story: Story,
  trials: ReadonlyArray<Trial>,
  ids: Ids
) => Effect.Effect<ReadonlyArray<Told>>

/** Runs an agent with these rights that makes these calls, and answers the run in which it did. */
type Through = (
  story: Story,
  name: string,
  rights: Rights,
  calls: ReadonlyArray<ScriptedCall>
) => Effect.Effect<Json>

/** Calls of one answer of a scripted model. */
const callsAtOnce = 20

/** A model that makes all of these calls, as many in each step as it can. */
const trying = (calls: ReadonlyArray<ScriptedCall>) =>
  scripted([
    ...Array.from({ length: Math.ceil(calls.length / callsAtOnce) }, (_, step) => ({
      when: `step == ${step}`,
      calls: calls.slice(step * callsAtOnce, (step + 1) * callsAtOnce)
    })),
    { say: "Done." }
  ])

/** So many trials at once; a server works on as many runs of a project. */
const together = { concurrency: 8 }

const sentences: Readonly<Record<string, Sentence>> = { execute: "done", suggest: "asked", refuse: "denied" }

const throughRuns =
  (through: Through): Door =>
  (story, trials, ids) =>
    Effect.forEach(
      trials,
      ({ cells, rights }) =>
        Effect.gen(function* () {
          const name = `agent-${cells[0]?.name}`
          const run = yield* through(
            story,
            name,
            rights,
            cells.map((cell) => callOf(cell, ids))
          )
          const calls = yield* callsOf(story, run)
          return cells.map((cell, index): Told => {
            const { decision, result } = calls[index] ?? {}
            const sentence = sentences[decision]
            if (sentence === undefined)
              throw new Error(`${cell.name}: no decision about ${JSON.stringify(result)}`)
            return [cell, sentence]
          })
        }),
      together
    ).pipe(Effect.map((told) => told.flat()))

/** A run that a person begins. */
const byHand = throughRuns((story, name, rights, calls) =>
  Effect.flatMap(story.post("/agents", worker(name, trying(calls), { ...rights })), (agent) =>
    runThrough(story, agent)
  )
)

/** A run that an event wakes. */
const byReaction = throughRuns(
  Effect.fnUntraced(function* (story, name, rights, calls) {
    const type = `Start-${name}`
    const reaction = {
      triggerType: "reaction",
      reactionConfig: { objectTypes: [type], events: ["created"] }
    }
    const agent = yield* story.post("/agents", worker(name, trying(calls), { ...rights, ...reaction }))
    yield* make(story, type)
    const [run] = yield* endedRuns(story, agent, 1)
    return run
  })
)

/** A message in a conversation. */
const byChat = throughRuns(
  Effect.fnUntraced(function* (story, name, rights, calls) {
    const agent = yield* newContext(story, name, trying(calls), { ...rights })
    yield* addEvent(story, name, "Do it.")
    const [run] = yield* endedRuns(story, agent, 1)
    return run
  })
)

/** An agent with these rights, for one that may do everything; or the other way round. */
const bySpawning = (whose: "child" | "parent") =>
  throughRuns(
    Effect.fnUntraced(function* (story, name, rights, calls) {
      const [childRights, parentRights] = whose === "child" ? [rights, {}] : [{}, rights]
      yield* story.post("/agents", worker(name, trying(calls), { ...childRights }))
      const above = yield* boss(story, [spawning(name)], { name: `boss-of-${name}`, ...parentRights })
      const [run] = yield* childrenOf(story, yield* runThrough(story, above))
      return run
    })
  )

/** Suggested when the agent could do all, decided by a person when it has these rights. */
const byApprovalOf =
  (person: Story): Door =>
  (story, trials, ids) =>
    Effect.forEach(
      trials,
      ({ cells, rights }) =>
        Effect.gen(function* () {
          const calls = cells.map((cell) => callOf(cell, ids))
          const suggesting = { executionMode: "suggest", capabilities: null }
          const agent = yield* story.post(
            "/agents",
            worker(`agent-${cells[0]?.name}`, trying(calls), suggesting)
          )
          const recorded = yield* callsOf(story, yield* runThrough(story, agent))
          yield* story.patch(`/agents/${agent.id}`, rights)
          return yield* Effect.forEach(cells, (cell, index) =>
            Effect.map(
              person.ask("POST", `/tasks/${recorded[index]?.result.taskId}/approve`, {}),
              ({ body, status }): Told => {
                if (status === 200) return [cell, "done"]
                if (status === 403) return [cell, "denied"]
                if (status === 409 && body.reason === "notPermitted") return [cell, "denied"]
                throw new Error(`${cell.name}: ${status} ${JSON.stringify(body)}`)
              }
            )
          )
        }),
      together
    ).pipe(Effect.map((told) => told.flat()))

const byApproval: Door = (story, trials, ids) => byApprovalOf(story)(story, trials, ids)

/** A person, whom no agent's rights hold. */
const byPerson: Door = (story, trials, ids) =>
  Effect.forEach(
    trials.flatMap(({ cells }) => cells),
    (cell) =>
      Effect.map(asRequest(story, callOf(cell, ids)), ({ body, status }): Told => {
        if (status < 300) return [cell, "done"]
        if (status === 403) return [cell, "denied"]
        throw new Error(`${cell.name}: ${status} ${JSON.stringify(body)}`)
      }),
    together
  )

const asRequest = (story: Story, { arguments: args, tool }: ScriptedCall) => {
  const { fromId, key, objectId, properties, relationshipId, toId, type } = args
  switch (tool) {
    case "create_object":
      return story.ask("POST", "/objects", { type, key, properties })
    case "update_object":
      return story.ask("PATCH", `/objects/${objectId}`, { properties })
    case "delete_object":
      return story.ask("DELETE", `/objects/${objectId}`)
    case "create_relationship":
      return story.ask("POST", "/relationships", { type, fromId, toId, properties })
    case "update_relationship":
      return story.ask("PATCH", `/relationships/${relationshipId}`, { properties })
    default:
      return story.ask("DELETE", `/relationships/${relationshipId}`)
  }
}

/** The same person at the MCP door, where nobody says how sure they are. */
const byMcp: Door = (story, trials, ids) =>
  Effect.scoped(
    Effect.flatMap(atTheDoor(story), ({ call }) =>
      Effect.forEach(
        trials.flatMap(({ cells }) => cells),
        (cell) => {
          const { arguments: args, tool } = callOf({ ...cell, said: {} }, ids)
          return Effect.map(call(tool, args), ({ isError, result }): Told => {
            if (!isError && result.status === "applied") return [cell, "done"]
            if (isError && result.reason === "forbidden") return [cell, "denied"]
            throw new Error(`${cell.name}: ${JSON.stringify(result)}`)
          })
        },
        together
      )
    )
  )

export const doors = {
  byHand,
  byReaction,
  byChat,
  byChild: bySpawning("child"),
  byParent: bySpawning("parent"),
  byApproval,
  byApprovalOf,
  byPerson,
  byMcp
} as const
