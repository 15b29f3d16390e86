/**
 * The project that lives while its servers die, and the foreign tool whose effects are counted outside.
 */
import { createMcpHandler } from "@modelcontextprotocol/server"
import { makeStoryServer } from "../packages/server/testing/mcp-tools.ts"
import { deedOf } from "../packages/server/simulation/shop.ts"
import type { Json } from "../bench/doors.ts"

export type Send = (method: string, path: string, body: Json, key?: string) => Promise<Json>

/** Between what the shop does and its answer: faults come in between. */
const answerLateMs = 500

/** A foreign server that says what it did. */
export const startShop = () => {
  const deeds: Array<string> = []
  const handler = createMcpHandler(
    () =>
      makeStoryServer({
        note: ({ arguments: given, tool }) => {
          deeds.push(deedOf(`shop__${tool}`, given))
        },
        overlay: undefined,
        gate: undefined,
        secret: "nothing"
      }),
    {}
  )
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: async (request) => {
      const response = await handler.fetch(request)
      await Bun.sleep(answerLateMs)
      return response
    }
  })
  return { url: `http://127.0.0.1:${server.port}/mcp`, deeds, close: () => server.stop(true) }
}

const agent = (name: string, type: string, rules: ReadonlyArray<Json>, overrides: Json = {}): Json => ({
  name,
  prompt: '```json\n{"objectId": {{ event.objectId | json }}, "n": {{ object.properties.n | json }}}\n```',
  triggerType: "reaction",
  executionMode: "execute",
  tools: ["graph.*"],
  reactionConfig: { objectTypes: [type], events: ["created"] },
  // Where servers die often enough, ten runs in a row use up their attempts, and the agent would be stopped.
  disableAfterFailures: 1_000_000,
  model: { provider: "scripted", name: "chaos", script: { rules } },
  ...overrides
})

const call = (tool: string, given: Json): Json => ({
  when: "step == 0",
  latencyMs: 300,
  calls: [{ tool, arguments: given }]
})

const mark = (name: string): Json =>
  call("update_object", {
    objectId: "{{ input.objectId }}",
    properties: { [name]: true },
    reasoning: "It was not marked yet."
  })

const done: Json = { say: "Done.", latencyMs: 300 }

/** The types that writers create: one for each way in which an agent answers. */
export const types = ["Order", "Wish", "Bill"] as const

/** The type whose agent works longer than a server stands still: who goes on finds another attempt at its work. */
export const voyage = "Voyage"

const legMs = 2_000

/** The legs of a voyage that is not over when a frozen server goes on and its runs have been taken over. */
const legsOf = (freezeMs: number): number => Math.ceil((freezeMs + 10_000) / legMs)

/** How long a voyage takes that nobody disturbs. */
export const voyageMsOf = (freezeMs: number): number => legsOf(freezeMs) * legMs

/** A step for each leg, each with a mark of its own. */
const legs = (count: number): Json => ({
  ...call("update_object", {
    objectId: "{{ input.objectId }}",
    properties: { leg: "{{ step }}" },
    reasoning: "One leg further."
  }),
  when: `step < ${count}`,
  latencyMs: legMs
})

/** What the agent that people chat with answers. */
export const answer = "I heard you."

/** Makes the project and its agents; answers its id, the agent that a schedule wakes and the one that people chat with. */
export const furnish = async (send: Send, shopUrl: string, freezeMs: number) => {
  const { id } = await send("POST", "/api/projects", { name: "Chaos" })
  const path = `/api/projects/${id}`
  await send("POST", `${path}/mcp-servers`, {
    name: "shop",
    transport: { type: "http", url: shopUrl },
    allowedTools: ["*"]
  })
  await send("POST", `${path}/agents`, agent("marks", "Order", [mark("seen"), done]))
  await send(
    "POST",
    `${path}/agents`,
    agent("checks", "Order", [mark("checked"), done], {
      reactionConfig: { objectTypes: ["Order"], events: ["updated"], ignoreSelfTriggered: true }
    })
  )
  await send(
    "POST",
    `${path}/agents`,
    agent("asks", "Wish", [mark("granted"), done], { executionMode: "suggest" })
  )
  await send(
    "POST",
    `${path}/agents`,
    agent("charges", "Bill", [call("shop__charge", { amount: "{{ input.n }}" }), done], { tools: ["shop.*"] })
  )
  await send("POST", `${path}/agents`, agent("sails", voyage, [legs(legsOf(freezeMs)), done]))
  const clerk = await send("POST", `${path}/agents`, {
    name: "clerk",
    prompt: "It is time.",
    triggerType: "schedule",
    cronSchedule: "* * * * *",
    executionMode: "execute",
    model: { provider: "scripted", name: "chaos", script: { rules: [{ say: "So it is." }] } }
  })
  const { id: hostId } = await send("POST", `${path}/agents`, {
    name: "hosts",
    prompt: "Answer.",
    triggerType: "manual",
    executionMode: "execute",
    model: { provider: "scripted", name: "chaos", script: { rules: [{ say: answer, latencyMs: 300 }] } }
  })
  return { id: id as string, path, clerkId: clerk.id as string, hostId: hostId as string }
}
