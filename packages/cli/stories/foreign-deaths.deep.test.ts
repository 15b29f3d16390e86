/**
 * The real server, killed while a foreign tool is at work.
 */
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { quickDataFolder } from "../../server/testing/quick-folder.ts"
import { isThere, newDiary, program } from "../../server/testing/mcp-words.ts"
import { kill, start } from "../testing/real-server.ts"

type Life = Effect.Success<ReturnType<typeof start>>

const once = Schedule.spaced("20 millis")

/** Posts to a project of a server. */
const post = (life: Life, path: string, body: unknown) =>
  Effect.promise(() =>
    fetch(life.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${life.token}`, "content-type": "application/json" },
      body: JSON.stringify(body)
    }).then((answer) => answer.json())
  )

/** Kills the server in the middle of a call, and answers the run as it ended afterwards, with its calls. */
const killedDuring = (tool: string, args: Record<string, unknown>) =>
  Effect.gen(function* () {
    const folder = yield* quickDataFolder
    const diary = yield* newDiary
    const data = join(folder, "data")
    const first = yield* start(data)
    const project = yield* post(first, "/api/projects", { name: "Shop" })
    const root = `/api/projects/${project.id}`
    yield* post(first, `${root}/mcp-servers`, {
      name: "shop",
      transport: program(diary),
      allowedTools: ["*"]
    })
    const agent = yield* post(first, `${root}/agents`, {
      name: "buyer",
      prompt: "Go.",
      triggerType: "manual",
      executionMode: "execute",
      tools: ["shop.*"],
      model: {
        provider: "scripted",
        name: "story",
        script: {
          rules: [
            { when: "step == 0", calls: [{ tool: `shop__${tool}`, arguments: args }] },
            { say: "Done." }
          ]
        }
      }
    })
    const run = yield* post(first, `${root}/agents/${agent.id}/trigger?wait=false`, {})
    yield* Effect.repeat(diary.called, { until: (called) => called.length === 1, schedule: once })
    yield* kill(first.server)
    const programs = yield* diary.started
    yield* Effect.repeat(Effect.forEach(programs, isThere), {
      until: (there) => there.every((one) => !one),
      schedule: once
    })
    yield* diary.open
    const second = yield* start(data)
    const ended = yield* Effect.repeat(second.get(`${root}/runs/${run.id}`), {
      until: (now) => now.completedAt !== null,
      schedule: once
    })
    const { items: calls } = yield* second.get(`${root}/runs/${run.id}/tool-calls`)
    const { items: log } = yield* second.get(`${root}/runs/${run.id}/events?limit=200`)
    return { ended, calls, log, called: yield* diary.called }
  })

describe("kill -9 while a foreign tool is at work", () => {
  it.live(
    "leaves a call whose outcome is unknown, and it is never made a second time",
    () =>
      Effect.gen(function* () {
        const { called, calls, ended, log } = yield* killedDuring("charge", { amount: 3, wait: true })
        expect(called).toEqual([{ tool: "charge", arguments: { amount: 3, wait: true } }])
        expect(ended).toMatchObject({ status: "completed", summary: "Done.", attempt: 2 })
        expect(calls).toMatchObject([{ tool: "shop__charge", status: "unknown" }])
        const outcomes = log.filter((event: { readonly type: string }) => /^ToolCall(?:C|F)/.test(event.type))
        expect(outcomes).toMatchObject([{ type: "ToolCallFailedEvent", error: { reason: "unknownOutcome" } }])
      }),
    300_000
  )

  it.live(
    "lets a call of an idempotent tool be made again",
    () =>
      Effect.gen(function* () {
        const { called, calls, ended } = yield* killedDuring("put", { key: "a", wait: true })
        expect(called.map(({ tool }) => tool)).toEqual(["put", "put"])
        expect(ended).toMatchObject({ status: "completed", attempt: 2 })
        expect(calls).toMatchObject([{ tool: "shop__put", status: "completed", result: "Put a." }])
      }),
    300_000
  )
})
