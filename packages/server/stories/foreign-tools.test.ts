/**
 * Tools of foreign MCP servers, over both transports, called by real runs.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { beginRun, callEventsOf, newCaller, outcomesOf, runOf, shownTo } from "../testing/mcp-runs.ts"
import { addServer, httpServer, newDiary, program } from "../testing/mcp-words.ts"
import { typesOf } from "../testing/context-words.ts"
import { eventually, type Json, scripted } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf } from "../testing/story-words.ts"
import { between, runLog, stopRule } from "../testing/time-words.ts"
import { naming } from "../testing/naming.ts"
import { ask } from "../testing/owner-rows.ts"

/** A project with the story server, and the server's diary. */
const newShop = (overrides: Record<string, unknown> = {}) =>
  Effect.gen(function* () {
    const story = yield* newStoryHere
    const diary = yield* newDiary
    const server = yield* addServer(story, program(diary), overrides)
    return { story, diary, server }
  })

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Agent Pipeline Construction", () => {
    it.effect(
      "S002-R02 An agent is offered the tools that both its patterns and the server's allow-list name, and no others",
      () =>
        Effect.gen(function* () {
          const { story } = yield* newShop({ allowedTools: ["lookup", "p*", "odd.*"] })
          const shown = (tools: ReadonlyArray<string>, name: string) =>
            Effect.gen(function* () {
              const run = yield* runOf(story, [], { tools, name })
              return (yield* shownTo(story, run)).map((tool: Json) => tool.name)
            })
          expect(yield* shown(["shop.*"], "all")).toEqual(["shop__lookup", "shop__put", "shop__odd_name_x"])
          expect(yield* shown(["shop.l*", "shop.charge"], "one")).toEqual(["shop__lookup"])
          expect(yield* shown(["other.*"], "another")).toEqual([])
          expect(yield* shown([], "none")).toEqual([])
        })
    )
  })

  describe("A foreign tool", () => {
    it.effect("over stdio is called once, and recorded as begun and as answered", () =>
      Effect.gen(function* () {
        const { diary, story } = yield* newShop()
        const run = yield* runOf(story, [{ tool: "shop__charge", arguments: { amount: 3 } }])
        expect(run.status).toBe("completed")
        expect(yield* callsOf(story, run)).toMatchObject([
          { tool: "shop__charge", status: "completed", decision: "execute", result: "Charged 3." }
        ])
        expect(yield* diary.called).toEqual([{ tool: "charge", arguments: { amount: 3 } }])
        expect(yield* callEventsOf(story, run)).toMatchObject([
          { type: "ToolCallStartedEvent", tool: "shop__charge", arguments: { amount: 3 } },
          { type: "ToolCallCompletedEvent", tool: "shop__charge", result: "Charged 3." }
        ])
      })
    )

    it.effect("over Streamable HTTP is called once, with the headers of its definition", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        const { heard, url } = yield* httpServer(diary)
        yield* addServer(story, { type: "http", url, headers: { "X-Team": "fruit" } })
        const [call] = yield* outcomesOf(story, [{ tool: "shop__lookup", arguments: { word: "fig" } }])
        expect(call).toMatchObject({ status: "completed", decision: null, result: "fig is a word." })
        const asked = heard.filter(({ body }) => body?.method === "tools/call")
        expect(asked.map(({ headers }) => headers["x-team"])).toEqual(["fruit"])
      })
    )

    it.effect("answers a structure, a failure, or more than a model should read", () =>
      Effect.gen(function* () {
        const { story } = yield* newShop()
        const [table, failure, big] = yield* outcomesOf(story, [
          { tool: "shop__table", arguments: {} },
          { tool: "shop__fail", arguments: {} },
          { tool: "shop__big", arguments: { length: 150_000 } }
        ])
        expect(table).toMatchObject({ status: "completed", result: { rows: [1, 2] } })
        expect(failure).toMatchObject({
          status: "failed",
          result: { error: "It broke.", reason: "toolFailed" }
        })
        expect(big.status).toBe("completed")
        expect(big.result).toMatch(/^x{100000}….*\b100000\b.*\b150000\b/)
      })
    )

    it.effect("is told by its name on the server, however the model has to spell it", () =>
      Effect.gen(function* () {
        const { diary, story } = yield* newShop()
        const [call] = yield* outcomesOf(story, [{ tool: "shop__odd_name_x", arguments: {} }])
        expect(call).toMatchObject({ status: "completed", tool: "shop__odd_name_x" })
        expect((yield* diary.called).map(({ tool }) => tool)).toEqual(["odd.name/x"])
      })
    )
  })

  describe("Arguments that do not fit", () => {
    it.effect("the pinned schema, or that say who is calling, never reach the server", () =>
      Effect.gen(function* () {
        const { diary, story } = yield* newShop()
        const calls = yield* outcomesOf(story, [
          { tool: "shop__charge", arguments: { amount: "much" } },
          { tool: "shop__charge", arguments: {} },
          { tool: "shop__charge", arguments: { amount: 1, user_id: "ada" } },
          { tool: "shop__charge", arguments: { amount: 2, projectId: "p" } }
        ])
        expect(calls).toMatchObject([
          { status: "failed", result: { reason: "invalid", pointer: "/amount" } },
          { status: "failed", result: { reason: "invalid", pointer: "/amount" } },
          { status: "failed", result: { reason: "invalid", pointer: "/user_id" } },
          { status: "failed", result: { reason: "invalid", pointer: "/projectId" } }
        ])
        expect(yield* diary.called).toEqual([])
      })
    )

    it.effect(
      "are answered as those of built-in tools are: each place, what belongs there, and the shape",
      () =>
        Effect.gen(function* () {
          const { diary, story } = yield* newShop()
          const calls = yield* outcomesOf(story, [
            { tool: "shop__charge", arguments: { amount: "much", wait: 1 } },
            { tool: "shop__charge", arguments: { wait: true } },
            { tool: "shop__charge", arguments: { amount: 0 } },
            { tool: "shop__charge", arguments: { amount: 3 } }
          ])
          /** Names these places and no other, and then the shape. */
          const told = (...places: ReadonlyArray<string>) =>
            expect.stringMatching(
              new RegExp(
                `^[^/]*${places.map((place) => ` ${place}: [^/]*`).join("")}\\{wait\\?: boolean, amount: integer\\}`
              )
            )
          expect(calls.map(({ result }) => result.error)).toEqual([
            told("/wait", "/amount"),
            told("/amount"),
            told("/amount"),
            undefined
          ])
          expect((yield* diary.called).map((call) => call.arguments)).toEqual([{ amount: 3 }])
        })
    )
  })

  describe("A call that is not permitted", () => {
    it.effect("because the agent may only suggest is refused; one that only reads is made", () =>
      Effect.gen(function* () {
        const { diary, story } = yield* newShop()
        const calls = yield* outcomesOf(
          story,
          [
            { tool: "shop__charge", arguments: { amount: 3 } },
            { tool: "shop__put", arguments: { key: "a" } },
            { tool: "shop__lookup", arguments: { word: "fig" } }
          ],
          { executionMode: "suggest" }
        )
        expect(calls).toMatchObject([
          {
            status: "refused",
            decision: "refuse",
            result: { error: expect.any(String) }
          },
          { status: "refused", decision: "refuse" },
          { status: "completed", result: "fig is a word." }
        ])
        expect((yield* diary.called).map(({ tool }) => tool)).toEqual(["lookup"])
        // What it may not do is on record beside what it may not do to the graph.
        expect((yield* story.get("/denials")).items).toMatchObject([
          { tool: "shop__put", toolCallId: calls[1].id, change: null, reason: "notPermitted" },
          { tool: "shop__charge", toolCallId: calls[0].id, change: null, reason: "notPermitted" }
        ])
      })
    )

    it.effect("because it is on no list is refused, and the model is told what it has", () =>
      Effect.gen(function* () {
        const { diary, story } = yield* newShop({ allowedTools: ["lookup"] })
        const calls = yield* outcomesOf(story, [
          { tool: "shop__charge", arguments: { amount: 3 } },
          { tool: "nowhere__charge", arguments: {} }
        ])
        expect(calls).toMatchObject([
          { status: "refused", result: { error: expect.stringContaining("shop__lookup") } },
          {
            status: "refused",
            result: { error: naming("nowhere__charge", "shop__lookup") }
          }
        ])
        expect(yield* diary.called).toEqual([])
      })
    )

    it.effect("because the server was disabled while the run was at work is refused", () =>
      Effect.gen(function* () {
        const { diary, server, story } = yield* newShop()
        const agent = yield* newCaller(story, [
          { tool: "shop__put", arguments: { key: "a", wait: true } },
          { tool: "shop__lookup", arguments: { word: "fig" } }
        ])
        const run = yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
        yield* eventually(diary.called, (called) => called.length === 1)
        yield* story.patch(`/mcp-servers/${server.id}`, { enabled: false })
        yield* diary.open
        yield* eventually(story.get(`/runs/${run.id}`), (now) => now.completedAt !== null)
        expect(yield* callsOf(story, run)).toMatchObject([
          { status: "completed" },
          { status: "refused", result: { error: expect.any(String) } }
        ])
      })
    )
  })

  describe("A call without an answer", () => {
    it.effect(
      "because the server died has an unknown outcome, and the next call starts the server again",
      () =>
        Effect.gen(function* () {
          const { diary, story } = yield* newShop()
          const calls = yield* outcomesOf(story, [
            { tool: "shop__die", arguments: {} },
            { tool: "shop__lookup", arguments: { word: "fig" } }
          ])
          expect(calls).toMatchObject([
            { status: "unknown", result: { reason: "unknownOutcome" } },
            { status: "completed", result: "fig is a word." }
          ])
          expect(yield* diary.started).toHaveLength(2)
        })
    )

    it.effect("when the run is cancelled is recorded as unknown, and made no second time", () =>
      Effect.gen(function* () {
        const { diary, story } = yield* newShop()
        const agent = yield* newCaller(story, [
          { tool: "shop__charge", arguments: { amount: 3, wait: true } }
        ])
        const run = yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
        yield* eventually(diary.called, (called) => called.length === 1)
        const cancelled = yield* story.post(`/runs/${run.id}/cancel`)
        expect(cancelled.status).toBe("cancelled")
        yield* diary.open
        expect(yield* callsOf(story, run)).toMatchObject([
          { status: "unknown", result: { reason: "unknownOutcome" } }
        ])
        // The same worker makes another run's call afterwards.
        yield* runOf(story, [{ tool: "shop__lookup", arguments: { word: "fig" } }], { name: "later" })
        expect(yield* callsOf(story, run)).toMatchObject([{ status: "unknown" }])
        expect((yield* diary.called).map(({ tool }) => tool)).toEqual(["charge", "lookup"])
        expect(yield* callEventsOf(story, run)).toMatchObject([
          { type: "ToolCallStartedEvent" },
          { type: "ToolCallFailedEvent", error: { reason: "unknownOutcome" } }
        ])
      })
    )
  })
})

layer(SharedServer.layer)((it) => {
  describe("Requirement: Timeout Enforcement", () => {
    for (const { args, outcome, tool } of [
      { tool: "shop__charge", args: { amount: 3 }, outcome: { status: "unknown", reason: "unknownOutcome" } },
      { tool: "shop__put", args: { key: "a" }, outcome: { status: "abandoned", reason: "aborted" } }
    ])
      it.effect(
        `S002-R26, R28 a call of ${tool} that hangs is aborted at the deadline: the run is told that its time is up, and pauses`,
        () =>
          Effect.gen(function* () {
            const { diary, story } = yield* newShop({ callTimeoutMs: 600_000 })
            const calls = [{ tool, arguments: { ...args, wait: true } }]
            const agent = yield* newCaller(story, [], {
              defaultTimeoutMs: 3_000,
              model: scripted([stopRule({ say: "I had begun." }), { when: "step == 0", calls }])
            })
            const run = yield* story.post(`/agents/${agent.id}/trigger?wait=false`, {})
            yield* eventually(diary.called, ({ length }) => length === 1)
            const paused = yield* asTimePasses(
              250,
              story.get(`/runs/${run.id}`),
              ({ pauseReason }) => pauseReason !== null
            )
            expect(paused).toMatchObject({ pauseReason: "timeout", summary: "I had begun.", stepCount: 2 })
            expect(yield* callsOf(story, run)).toMatchObject([
              { status: outcome.status, result: { reason: outcome.reason } }
            ])
            const log = yield* runLog(story, run)
            expect(between(log, "AgentTurnStartedEvent", "SoftStopEvent")).toBeLessThanOrEqual(4_000)
            expect(typesOf(log).slice(-5)).toEqual([
              "ToolCallFailedEvent",
              "SoftStopEvent",
              "AssistantMessageEvent",
              "AgentTurnInterruptedEvent",
              "SessionEndedEvent"
            ])
            expect((yield* story.get(`/contexts/${run.contextName}/replay`)).isEqual).toBe(true)
            expect(yield* diary.called).toHaveLength(1)
          })
      )

    it.effect(
      "S002-R26 a server that does not answer when it is connected to holds nobody beyond the deadline",
      () =>
        Effect.gen(function* () {
          const { diary, server, story } = yield* newShop()
          const agent = yield* newCaller(story, [], {
            defaultTimeoutMs: 3_000,
            model: scripted([
              stopRule({ say: "Nobody was there." }),
              { when: "step == 0", calls: [{ tool: "shop__charge", arguments: { amount: 3 } }] }
            ])
          })
          // Nobody looks at the tools again, as nobody does when a server falls silent by itself.
          yield* ask(
            story.access,
            `update kb.mcp_servers set config = jsonb_set(config, '{transport,env,MODE}', '"silent"') where id = $1`,
            [server.id]
          )
          const run = yield* story.post(`/agents/${agent.id}/trigger?wait=false`, {})
          yield* eventually(diary.started, ({ length }) => length === 2)
          const paused = yield* asTimePasses(
            250,
            story.get(`/runs/${run.id}`),
            ({ pauseReason }) => pauseReason !== null
          )
          expect(paused).toMatchObject({ pauseReason: "timeout", summary: "Nobody was there." })
          expect(
            between(yield* runLog(story, run), "AgentTurnStartedEvent", "SoftStopEvent")
          ).toBeLessThanOrEqual(4_000)
          expect(yield* callsOf(story, run)).toMatchObject([
            { status: "refused", result: { reason: "softStop" } }
          ])
        })
    )
  })

  describe("A call without an answer", () => {
    it.effect("within its time has an unknown outcome, and the run goes on", () =>
      Effect.gen(function* () {
        const { diary, story } = yield* newShop({ callTimeoutMs: 300 })
        const run = yield* beginRun(story, [
          { tool: "shop__charge", arguments: { amount: 3, wait: true } },
          { tool: "shop__lookup", arguments: { word: "fig" } }
        ])
        yield* eventually(diary.called, ({ length }) => length === 1)
        // The time of the first call passes, and none for the second.
        yield* asTimePasses(100, callsOf(story, run), ([first]) => first.status !== "started")
        const ended = yield* eventually(story.get(`/runs/${run.id}`), (now) => now.completedAt !== null)
        expect(ended.status).toBe("completed")
        expect(yield* callsOf(story, run)).toMatchObject([
          {
            status: "unknown",
            result: {
              reason: "unknownOutcome",
              error: expect.stringMatching(/\b300\b/)
            }
          },
          { status: "completed", result: "fig is a word." }
        ])
        expect(yield* diary.started).toHaveLength(1)
      })
    )
  })
})
