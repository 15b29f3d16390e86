/**
 * A context that defines a client tool, the person who talks there, and the clients that answer its calls: sometimes both of them,
 * sometimes neither.
 */
import type { Agent } from "@tropism/domain/agent"
import { ContextName } from "@tropism/domain/context-event"
import type { UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { Contexts } from "../src/contexts/contexts.ts"
import { Triggers } from "../src/reactions/manual-triggers.ts"
import { ClientResults } from "../src/runs/client-results.ts"
import { ToolCalls } from "../src/tools/tool-calls.ts"
import { Runs } from "../src/runs/run-store.ts"
import { clientTool } from "./agents.ts"
import type { Person } from "./people.ts"

const by = "pia" as UserId
export const easel = ContextName.make("easel")

/** Defines the tool and talks; a call without an answer times out after some seconds. */
export const paint = Effect.fnUntraced(function* (agent: Agent, { acknowledged, ask, chance }: Person) {
  const timeoutMs = chance.pick([1_000, 3_000, 20_000])
  const made = yield* ask(
    Effect.gen(function* () {
      const contexts = yield* Contexts
      const head = yield* contexts.create(easel, agent.id)
      const inputSchema = { type: "object", properties: { prompt: { type: "string" } }, required: ["prompt"] }
      yield* contexts.append(head.name, [
        { type: "DefineToolEvent", name: clientTool, inputSchema, timeoutMs }
      ])
      return head
    })
  )
  if (made.type !== "done") return
  for (let n = chance.between(1, 3); n > 0; n--) {
    const content = chance.pick([`paint ${n}`, `paint both ${n}`, `hello ${n}`])
    const event = { type: "UserMessageEvent" as const, content, triggersAgentTurn: true }
    const told = yield* ask(Effect.flatMap(Triggers, (triggers) => triggers.byEvent(made.value, event, by)))
    if (told.type === "done") acknowledged.said.push({ context: easel, content })
    yield* Effect.sleep(chance.between(1, 2_000))
  }
})

/** A client that looks now and then and answers what waits, as long as the simulation lasts; acknowledged answers are noted. */
export const answerCalls = Effect.fnUntraced(function* (
  client: string,
  { acknowledged, ask, chance }: Person
) {
  while (true) {
    yield* Effect.sleep(chance.between(200, 2_500))
    const seen = yield* ask(
      Effect.gen(function* () {
        const run = yield* (yield* Runs).newestOn(easel)
        return run === undefined ? [] : yield* (yield* ToolCalls).awaited(run.id)
      })
    )
    for (const { callId } of seen.type === "done" ? seen.value : []) {
      if (chance.oneIn(4)) continue
      const isUntrusted = chance.oneIn(8)
      const outcome = chance.oneIn(5)
        ? { error: `${client} is closed`, isUntrusted }
        : { result: { by: client }, isUntrusted }
      const told = yield* ask(
        Effect.flatMap(ClientResults, (results) => results.give(easel, callId, outcome, client as UserId))
      )
      if (told.type === "done") acknowledged.answeredCalls.push({ callId, client })
    }
  }
})
