/**
 * Who is there in a simulation: drawn from the seed.
 *
 * A simulation is small and there are many: each has a few of the agents, so
 * that every two of them meet somewhere.
 */
import type { Agent, AgentInput } from "@tropism/domain/agent"
import type { McpServerId, UserId, WebhookId } from "@tropism/domain/ids"
import { defineMcpServer } from "@tropism/domain/mcp-server"
import type { ProjectSettingsPatch } from "@tropism/domain/project-settings"
import { Effect } from "effect"
import { Agents } from "../src/agents/agents.ts"
import { Database } from "../src/database/database.ts"
import { Projects } from "../src/tenancy/projects.ts"
import { Webhooks } from "../src/reactions/webhooks.ts"
import { McpServers } from "../src/tools/external-mcp/servers.ts"
import { pinTools } from "../src/tools/external-mcp/tool-listing.ts"
import * as agents from "./agents.ts"
import type { Chance } from "./chance.ts"
import { drawGame } from "./looping-agents.ts"
import type { Part } from "./places.ts"
import { radioName } from "./radio.ts"
import { shopName, shopTools } from "./shop.ts"
import { subscribe } from "./subscriber.ts"
import type { WholeServer } from "./server-life.ts"
import type { Servers } from "./servers.ts"
import { drawWorkers } from "./working-agents.ts"

export interface Cast {
  /** All that react, rise or play. */
  readonly agents: ReadonlyArray<Agent>
  readonly talker: Agent | undefined
  /** Where another system delivers, if one does. */
  readonly webhookId: WebhookId | undefined
  /** Whether a schedule wakes one of them. */
  readonly rises: boolean
  /** Whether agents hear a foreign server. */
  readonly dances: boolean
  /** The type of object that starts a loop, if there is one. */
  readonly throws: string | undefined
}

/** Caps that a loop reaches soon, and caps that nothing else does. */
const drawSettings = (chance: Chance): ProjectSettingsPatch => ({
  chainLimits: {
    maxDepth: chance.between(1, 6),
    maxRuns: chance.between(3, 14),
    ...(chance.oneIn(8) ? { maxTokens: chance.between(100, 2_000) } : {})
  }
})

/** Lets what wakes an agent wait a little, where nothing of it waits anyway. */
const waiting = (input: AgentInput): AgentInput =>
  input.reactionConfig
    ? {
        ...input,
        reactionConfig: { ...input.reactionConfig, debounceMs: input.reactionConfig.debounceMs ?? 300 }
      }
    : input

/** Makes the project and its agents, before anything goes wrong; `part` is there at any rate. */
export const setUp = Effect.fnUntraced(function* (servers: Servers, chance: Chance, part?: Part) {
  const done = <A, E>(effect: Effect.Effect<A, E, WholeServer>): Effect.Effect<A, E> =>
    Effect.flatMap(servers.ask(effect), (exit) =>
      exit === "lost" ? Effect.die(new Error("The server died while it was set up")) : exit
    )
  const project = yield* done(
    Effect.flatMap(Projects, (projects) => projects.create("Simulation", "ada" as UserId, Effect.void))
  )
  yield* done(
    Effect.gen(function* () {
      const database = yield* Database
      const projects = yield* Projects
      yield* database.inProject(project.id, projects.changeSettings(drawSettings(chance.fork("settings"))))
    })
  )
  const make = (input: AgentInput) =>
    done(
      Effect.gen(function* () {
        const database = yield* Database
        return yield* database.inProject(project.id, (yield* Agents).create(input, "ada" as UserId))
      })
    )
  /** An agent that another system wakes, with its webhook. */
  const openWebhook = Effect.gen(function* () {
    const agent = yield* make(agents.porter())
    const { id } = yield* done(
      Effect.gen(function* () {
        const database = yield* Database
        return yield* database.inProject(project.id, (yield* Webhooks).create(agent, {}, "ada" as UserId))
      })
    )
    return { agent, id }
  })
  /** One or two agents that hear the radio. They are changed by nobody, so that what they had to hear is known. */
  const tuneIn = Effect.fnUntraced(function* (luck: Chance) {
    yield* done(
      Effect.gen(function* () {
        const database = yield* Database
        const config = defineMcpServer({
          name: radioName,
          transport: { type: "http", url: "https://radio.example/mcp" },
          allowedEvents: ["*"]
        })
        // There is one, so the project's own id is as good as any.
        const id = project.id as string as McpServerId
        const add = (yield* McpServers).create(id, config, undefined, "ada" as UserId)
        yield* database.inProject(project.id, add)
      })
    )
    yield* make(agents.dancer(luck.fork("one")))
    if (luck.oneIn(2)) yield* make({ ...agents.dancer(luck.fork("other")), name: "second-dancer" })
  })
  const shopping = chance.fork("shopping")
  /** The shop, as somebody has looked at it. */
  const openShop = done(
    Effect.gen(function* () {
      const database = yield* Database
      const config = defineMcpServer({
        name: shopName,
        transport: { type: "http", url: "https://shop.example/mcp" },
        allowedTools: ["*"],
        allowUntrusted: shopping.oneIn(2),
        // Some calls end by the clock of their run long before their own.
        callTimeoutMs: shopping.fork("patience").pick([2_500, 600_000])
      })
      // Another one than that of the radio.
      const id = project.id.replace(/.$/, (last) => (last === "0" ? "1" : "0")) as McpServerId
      const look = { tools: pinTools(shopName, shopTools).tools, error: null }
      const add = (yield* McpServers).create(id, config, look, "ada" as UserId)
      yield* database.inProject(project.id, add)
    })
  )
  /** Whether somebody is there who is in one of so many worlds, and in each that is for his sake. */
  const has = (who: Part, luck: Chance, n: number): boolean => luck.oneIn(n) || part === who
  const game = chance.oneIn(3) ? drawGame(chance.fork("game")) : undefined
  const rises = has("riser", chance, 4)
  const training = chance.fork("training")
  const warding = chance.fork("warding")
  const buys = has("shop", shopping, 4)
  if (buys) yield* openShop
  const inputs = [
    ...(warding.oneIn(5) ? [agents.ward(warding)] : []),
    ...(buys ? [agents.buyer(shopping)] : []),
    ...(game === undefined || chance.oneIn(3) || part === "suggester" ? [agents.suggester(chance)] : []),
    ...(chance.oneIn(3) && part !== "waiter" ? [agents.executor(chance)] : []),
    ...(training.oneIn(3) ? [agents.apprentice(training)] : []),
    ...(rises ? [agents.riser(chance)] : []),
    ...(game?.agents ?? []),
    ...(part === "waiter" ? [waiting(agents.executor(chance.fork("waiter")))] : []),
    ...drawWorkers(chance.fork("workers"), part)
  ]
  const radio = chance.fork("radio")
  const dances = has("radio", radio, 5)
  if (dances) yield* tuneIn(radio)
  if (has("subscriber", chance.fork("subscriber"), 8)) yield* done(subscribe(project.id))
  const webhook = chance.oneIn(5) ? yield* openWebhook : undefined
  const cast: Cast = {
    agents: [...(yield* Effect.forEach(inputs, make)), ...(webhook === undefined ? [] : [webhook.agent])],
    webhookId: webhook?.id,
    talker: has("talker", chance, 6) || part === "diary" ? yield* make(agents.talker()) : undefined,
    rises,
    dances,
    throws: game?.objectType
  }
  return { projectId: project.id, cast }
})
