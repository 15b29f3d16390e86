/**
 * A run that kills every server which works on it, among many that do not: it alone fails.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { runLimits } from "../src/limits.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { heldProvider } from "../testing/held-provider.ts"
import { type MortalServer, prepareMortal } from "../testing/mortal-servers.ts"
import { eventually, type Json, promptWithObject, scripted, storyIn } from "../testing/platform.ts"

const innocents = 40

/** Twice with all, once in each larger group, and then alone as often as any run may. */
const mostDeaths = runLimits.suspectDeaths + runLimits.suspectGroups.length - 1 + runLimits.maxAttempts

/** Long enough that many runs are at work together. */
const latencyMs = 3_000

describe("A run that kills its servers", () => {
  it.live(
    "is found among those that die with it: it fails, and each of the others completes",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = yield* freshDatabase
          let kills = false
          const { url } = yield* heldProvider(
            () => true,
            () => {
              if (kills) Effect.runSync(server.kill)
            }
          )
          const prepare = prepareMortal(access, undefined, { OPENAI_COMPATIBLE_BASE_URL: url })
          let server: MortalServer = yield* Effect.flatten(prepare)
          const { body: project } = yield* server.send("POST", "/api/projects", { name: "Mortal" })
          const here = () => storyIn(server, access, project.id)
          const agentOf = (name: string, model: Json) =>
            here().post("/agents", {
              name,
              prompt: promptWithObject,
              triggerType: "manual",
              executionMode: "execute",
              tools: [],
              model
            })
          const plain = yield* agentOf("plain", scripted([{ say: "Done.", latencyMs }]))
          const poisonous = yield* agentOf("poisonous", { provider: "openai-compatible", name: "m" })
          const trigger = (agent: Json) => here().post(`/agents/${agent.id}/trigger?wait=false`)
          const runs = (): Effect.Effect<ReadonlyArray<Json>> =>
            Effect.map(here().get("/runs?limit=100"), ({ items }) => items)
          const half = Array.from({ length: innocents / 2 }, () => trigger(plain))
          yield* Effect.all(half, { concurrency: 8 })
          const poison = yield* trigger(poisonous)
          yield* Effect.all(half, { concurrency: 8 })
          let next = yield* prepare
          kills = true
          yield* server.kill

          let deaths = 0
          const isOver = (found: ReadonlyArray<Json>) =>
            found.length === innocents + 1 && found.every(({ completedAt }) => completedAt !== null)
          while (deaths <= mostDeaths) {
            const life = yield* Effect.raceFirst(
              Effect.as(server.died, "died" as const),
              Effect.as(
                eventually(
                  Effect.catchCause(runs(), () => Effect.succeed([])),
                  isOver,
                  90_000
                ),
                "over" as const
              )
            )
            if (life === "over") break
            deaths += 1
            server = yield* next
            next = yield* prepare
          }
          const found = yield* eventually(runs(), isOver, 60_000)
          expect(found.filter(({ status }) => status === "completed")).toHaveLength(innocents)
          expect(found.find(({ id }) => id === poison.id)).toMatchObject({
            status: "failed",
            failureReason: "noWorker"
          })
          expect(deaths).toBeLessThanOrEqual(mostDeaths)
        })
      ),
    300_000
  )
})
