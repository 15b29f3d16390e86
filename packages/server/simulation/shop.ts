/**
 * A foreign server of a simulation whose tools have effects: what it truly did is counted here, outside of the database.
 *
 * While things go wrong it cannot be reached, answers late, with an error or not
 * at all, before it has done something or after it. What it answers with an error
 * it has not done. One of its tools never answers, whether things go wrong or not.
 */
import type { Tool } from "@modelcontextprotocol/client"
import { canonicalJson } from "@tropism/domain/json"
import { Effect } from "effect"
import type { ExternalClient } from "../src/tools/external-mcp/client.ts"
import { answered, ExternalFault, unmade } from "../src/tools/external-mcp/faults.ts"
import type { Chance } from "./chance.ts"

export interface Shop {
  /** Connects to it. */
  readonly connect: Effect.Effect<ExternalClient, ExternalFault>
  /** What it has done, each deed as often as it did it. */
  readonly deeds: ReadonlyArray<string>
  /** From now on it behaves. */
  readonly calmDown: () => void
}

/** The name under which agents know it. */
export const shopName = "shop"

const inputSchema: Tool["inputSchema"] = {
  type: "object",
  properties: { key: { type: "string" } },
  required: ["key"]
}

export const shopTools: ReadonlyArray<Tool> = [
  { name: "order", description: "Orders.", inputSchema },
  { name: "put", description: "Puts.", inputSchema, annotations: { idempotentHint: true } },
  { name: "look", description: "Looks.", inputSchema, annotations: { readOnlyHint: true } },
  { name: "hang", description: "Never answers.", inputSchema }
]

/** What may be done twice when nobody knows whether it was done. */
export const repeatables: ReadonlyArray<string> = [`${shopName}__put`, `${shopName}__look`]

/** A deed as an agent asks for it. */
export const deedOf = (tool: string, args: unknown): string => `${tool} ${canonicalJson(args)}`

export const makeShop = (chance: Chance): Shop => {
  const deeds: Array<string> = []
  let isWild = true
  const wild = (n: number): boolean => isWild && chance.oneIn(n)
  const pause = Effect.suspend(() => (wild(3) ? Effect.sleep(chance.between(1, 3_000)) : Effect.void))

  const call: ExternalClient["call"] = Effect.fnUntraced(function* ({ name }, args) {
    yield* pause
    if (wild(12)) return yield* unmade("The shop is closed")
    if (wild(12)) return yield* answered("The shop does not want to")
    deeds.push(deedOf(`${shopName}__${name}`, args))
    if (name === "hang") return yield* Effect.never
    yield* pause
    if (wild(12))
      return yield* new ExternalFault({ outcome: "unknown", message: "The shop hung up", isBroken: true })
    return { content: [{ type: "text", text: "It is done" }] }
  })

  const connect = Effect.gen(function* () {
    yield* pause
    if (wild(8)) return yield* unmade("The shop is not there")
    const client: ExternalClient = {
      listTools: Effect.suspend(() =>
        wild(12) ? unmade("The shop lists nothing") : Effect.succeed(shopTools)
      ),
      unfit: () => [],
      call,
      pollEvents: () => answered("The shop tells nothing"),
      isAlive: Effect.sync(() => !wild(4)),
      isClosed: () => false,
      closed: Effect.never,
      hasNews: () => wild(4),
      scrub: (text) => text
    }
    return client
  })

  return {
    connect,
    deeds,
    calmDown: () => {
      isWild = false
    }
  }
}
