/**
 * Those who look after the agents of a simulation: one changes them while they
 * work, one lets them try again what failed.
 *
 * Whoever takes a right away notes what the agent had written by then: nothing
 * may come after it.
 */
import type { Agent, AgentPatch } from "@tropism/domain/agent"
import type { ProjectId, UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Agents } from "../src/agents/agents.ts"
import { BatchTriggers, Triggers } from "../src/reactions/manual-triggers.ts"
import { Retries } from "../src/reactions/manual-retries.ts"
import { Objects } from "../src/graph/objects.ts"
import { KillSwitches } from "../src/runs/kill-switches.ts"
import { ProcessingLog } from "../src/runs/processing-log.ts"
import { Autonomy } from "../src/review/autonomy.ts"
import type { Acknowledged, Person, Told } from "./people.ts"

const by = "ada" as UserId

/** Events of what agents did by themselves, with no person's yes. */
const ownWrites = Effect.fnUntraced(function* (agents: ReadonlyArray<Agent>) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string }>`
    select id from kb.graph_events
    where actor_id = any(${agents.map(({ id }) => id)}::text[]) and task_id is null order by id`
  return rows.map(({ id }) => id)
}, Effect.orDie)

/** Changes agents, and takes rights away for good. */
export const manage = Effect.fnUntraced(function* (
  { chance, ask, acknowledged }: Person,
  agents: ReadonlyArray<Agent>
) {
  const free = [...agents]
  const change = (agent: Agent, patch: AgentPatch) =>
    ask(Effect.flatMap(Agents, (all) => all.update(agent.id, patch, by)))
  const restrain = Effect.fnUntraced(function* (agent: Agent, deed: Effect.Effect<Told<unknown>>) {
    free.splice(free.indexOf(agent), 1)
    const told = yield* deed
    if (told.type === "done")
      acknowledged.restrained.push({ agentId: agent.id, written: yield* ownWrites([agent]) })
  })
  for (let n = chance.between(1, 3); n > 0; n--) {
    yield* Effect.sleep(chance.between(1, 900))
    const [first, ...rest] = free
    if (first === undefined) return
    const agent = chance.pick([first, ...rest])
    switch (chance.below(6)) {
      case 0:
        yield* restrain(agent, change(agent, { enabled: false }))
        break
      case 1:
        yield* restrain(agent, ask(Effect.flatMap(Agents, (all) => all.delete(agent.id))))
        break
      case 2:
        yield* restrain(agent, change(agent, { executionMode: "suggest" }))
        break
      case 3:
        yield* change(agent, { enabled: false })
        yield* Effect.sleep(chance.between(1, 900))
        yield* change(agent, { enabled: true })
        break
      case 4:
        yield* change(agent, { maxSteps: chance.between(1, 3) })
        break
      default: {
        const config = agent.reactionConfig
        if (config !== null)
          yield* change(agent, {
            reactionConfig: { ...config, events: chance.pick([["created"], ["updated"]]) }
          })
      }
    }
  }
})

/** Takes trust back that agents have earned, and notes what was done by it until then. */
export const distrust = Effect.fnUntraced(function* (
  { chance, ask, acknowledged }: Person,
  agents: ReadonlyArray<Agent>
) {
  const sql = yield* SqlClient.SqlClient
  for (let n = chance.between(1, 3); n > 0; n--) {
    yield* Effect.sleep(chance.between(300, 1_500))
    for (const { id } of agents) {
      const earned = yield* ask(Effect.flatMap(Autonomy, (autonomy) => autonomy.of(id, undefined)))
      const promotions = earned.type === "done" ? (earned.value?.promotions ?? []) : []
      for (const promotion of promotions.filter(({ endedAt }) => endedAt === null)) {
        const told = yield* ask(
          Effect.flatMap(Autonomy, (autonomy) => autonomy.reverse(id, promotion.id, by, "Not now"))
        )
        if (told.type !== "done" || !told.value) continue
        const calls = yield* Effect.orDie(
          sql<{ id: string }>`select id from kb.tool_calls where promotion_id = ${promotion.id}`
        )
        acknowledged.distrusted.push({ promotionId: promotion.id, calls: calls.map((call) => call.id) })
      }
    }
  }
})

/** Stops all agents for a while. */
export const halt = Effect.fnUntraced(function* (
  { chance, request, acknowledged }: Person,
  projectId: ProjectId,
  agents: ReadonlyArray<Agent>
) {
  yield* Effect.sleep(chance.between(1, 1_200))
  const stopped = yield* request(
    Effect.flatMap(KillSwitches, (switches) => switches.stop(projectId, "Something is wrong", by))
  )
  const before = yield* ownWrites(agents)
  yield* Effect.sleep(chance.between(1, 1_500))
  const after = yield* ownWrites(agents)
  if (stopped.type === "done") acknowledged.halted.push({ before, after })
  while (true) {
    const released = yield* request(Effect.flatMap(KillSwitches, (switches) => switches.release(projectId)))
    if (released.type === "done") return
  }
})

/** Lets agents handle again what failed, or what they have not handled. */
export const retry = Effect.fnUntraced(function* (
  { acknowledged, chance, ask }: Person,
  agents: ReadonlyArray<Agent>
) {
  for (let n = chance.between(1, 3); n > 0; n--) {
    yield* Effect.sleep(chance.between(100, 1_200))
    for (const { id } of agents) {
      const kind = chance.below(3)
      const status = chance.pick(["failed", "abandoned"] as const)
      yield* ask(
        Effect.gen(function* () {
          const agent = yield* (yield* Agents).get(id)
          if (agent === undefined) return
          if (kind === 0) yield* retryOne(agent, status)
          else if (kind === 1) yield* (yield* Retries).redrive(agent, undefined, by)
          else yield* askFor(agent, acknowledged)
        })
      )
    }
  }
})

const retryOne = Effect.fnUntraced(function* (agent: Agent, status: "failed" | "abandoned") {
  const [entry] = yield* (yield* ProcessingLog).list(agent.id, status, undefined, 1)
  if (entry !== undefined) yield* (yield* Retries).retry(agent, entry, by)
})

const askFor = Effect.fnUntraced(function* (agent: Agent, { named }: Acknowledged) {
  const objects = yield* (yield* Objects).list({}, "createdAt", undefined, 2)
  const wanted = { type: "objects" as const, ids: objects.map(({ object }) => object.id) }
  for (const objectId of wanted.ids) named.push({ agentId: agent.id, objectId })
  yield* (yield* BatchTriggers).trigger(agent, wanted, by)
})

/** Starts agents by hand. */
export const start = Effect.fnUntraced(function* ({ chance, ask }: Person, agents: ReadonlyArray<Agent>) {
  const [first, ...rest] = agents
  for (let n = first === undefined ? 0 : chance.between(1, 2); n > 0; n--) {
    yield* Effect.sleep(chance.between(1, 900))
    const { id } = chance.pick([first as Agent, ...rest])
    yield* ask(
      Effect.gen(function* () {
        const agent = yield* (yield* Agents).get(id)
        if (agent !== undefined) yield* (yield* Triggers).byHand(agent, { n }, by)
      })
    )
  }
})
