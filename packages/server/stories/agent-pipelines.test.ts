/**
 * What a run asks of its model: on the wire, as a provider hears it.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { httpLimits } from "../src/limits.ts"
import { firstOf } from "../testing/context-words.ts"
import { joined, ModelsOnTheWire, toolsOf, wordsOf } from "../testing/model-on-the-wire.ts"
import { eventually, type Json } from "../testing/platform.ts"
import { callsOf } from "../testing/story-words.ts"
import { naming } from "../testing/naming.ts"

const worker = (overrides: Record<string, unknown>) => ({
  name: "worker",
  prompt: "Look after {{ input.what }}.",
  triggerType: "manual",
  executionMode: "execute",
  ...overrides
})

layer(ModelsOnTheWire.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: Agent Pipeline Construction", () => {
    it.effect(
      "S002-R01 S002-R02 S002-R03 S002-R04 S002-R05 Single-flow agent execution: the definition's model is asked with its system prompt, its tools and the input, and its final text is the summary",
      () =>
        Effect.gen(function* () {
          const { model, newStory } = yield* ModelsOnTheWire
          const story = yield* newStory
          const gardener = yield* model([
            { say: "Let me look.", calls: [{ tool: "search_objects", arguments: { type: "Plant" } }] },
            { say: "All plants are well." }
          ])
          const agent = yield* story.post(
            "/agents",
            worker({
              systemPrompt: "You are a gardener.",
              flowType: "single",
              tools: ["graph.search_*", "graph.get_object"],
              model: { ...gardener.config, temperature: 0.25, maxOutputTokens: 512 }
            })
          )
          const run = yield* story.post(`/agents/${agent.id}/trigger`, { input: { what: "the plants" } })
          expect(run).toMatchObject({
            status: "completed",
            summary: "All plants are well.",
            stepCount: 2,
            model: `openai-compatible:${gardener.config.name}`
          })
          expect(gardener.requests).toHaveLength(2)
          for (const request of gardener.requests) {
            expect(request).toMatchObject({ model: gardener.config.name, temperature: 0.25, max_tokens: 512 })
            expect(toolsOf(request)).toEqual(["get_object", "search_objects"])
            expect(wordsOf(request).slice(0, 2)).toEqual([
              ["system", "You are a gardener."],
              ["user", "Look after the plants."]
            ])
          }
          expect(wordsOf(gardener.requests[1]).slice(2)).toEqual([["assistant", "Let me look."]])
          expect(gardener.requests[1].messages.at(-1)).toMatchObject({ role: "tool" })
        })
    )

    it.effect("S002-R02 an agent that names no tools is offered none", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const empty = yield* model([
          { calls: [{ tool: "search_objects", arguments: {} }] },
          { say: "Without hands." }
        ])
        const agent = yield* story.post("/agents", worker({ tools: [], model: empty.config }))
        const run = yield* story.post(`/agents/${agent.id}/trigger`)
        expect(empty.requests.map(toolsOf)).toEqual([[], []])
        expect(yield* callsOf(story, run)).toMatchObject([
          {
            tool: "search_objects",
            status: "refused",
            result: { error: expect.stringContaining("search_objects") }
          }
        ])
      })
    )

    it.effect(
      "S002-R06 Sequential-flow agent execution: each step is asked with its own prompt, tools and model, and sees what was said before",
      () =>
        Effect.gen(function* () {
          const { model, newStory } = yield* ModelsOnTheWire
          const story = yield* newStory
          const [quick, thorough] = [
            yield* model([{ say: "A draft." }]),
            yield* model([
              { calls: [{ tool: "delete_object", arguments: { objectId: "x" } }] },
              { say: "It is good." }
            ])
          ]
          const agent = yield* story.post(
            "/agents",
            worker({
              flowType: "sequential",
              tools: ["graph.*"],
              model: quick.config,
              steps: [
                { name: "draft", prompt: "Write about {{ input.what }}.", tools: [] },
                {
                  name: "check",
                  prompt: "Is this good: {{ steps.draft.output }}",
                  tools: ["graph.get_object"],
                  model: { ...thorough.config, temperature: 0 }
                }
              ]
            })
          )
          const run = yield* story.post(`/agents/${agent.id}/trigger`, { input: { what: "ferns" } })
          expect(run).toMatchObject({ status: "completed", summary: "It is good.", stepCount: 3 })
          expect(quick.requests.map(wordsOf)).toEqual([
            joined([
              ["user", "Look after ferns."],
              ["user", "Write about ferns."]
            ])
          ])
          expect(quick.requests.map(toolsOf)).toEqual([[]])
          expect(thorough.requests.map(toolsOf)).toEqual([["get_object"], ["get_object"]])
          expect(thorough.requests[0].temperature).toBe(0)
          expect(wordsOf(thorough.requests[0])).toEqual(
            joined([
              ["user", "Look after ferns."],
              ["user", "Write about ferns."],
              ["assistant", "A draft."],
              ["user", "Is this good: A draft."]
            ])
          )
          // The log says from where on another model answers.
          const { items } = yield* story.get(`/runs/${run.id}/events`)
          expect(
            items.flatMap((event: Json) =>
              event.type === "SetLlmConfigEvent" || event.type === "FlowStepStartedEvent"
                ? [event.name ?? event.step]
                : []
            )
          ).toEqual([quick.config.name, "draft", thorough.config.name, "check"])
          // What the agent may use elsewhere, this step may not.
          expect(yield* callsOf(story, run)).toMatchObject([
            {
              tool: "delete_object",
              status: "refused",
              result: { error: naming("delete_object", "get_object") }
            }
          ])
        })
    )

    it.effect("S002-R06 a flow whose steps all have models of their own needs none besides", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const own = yield* model([{ say: "Mine." }])
        const agent = yield* story.post(
          "/agents",
          worker({
            flowType: "sequential",
            // Nobody has given this server a key.
            model: { provider: "anthropic", name: "claude-sonnet-5" },
            steps: [{ name: "only", prompt: "Go.", model: own.config }]
          })
        )
        expect(yield* story.post(`/agents/${agent.id}/trigger`)).toMatchObject({
          status: "completed",
          summary: "Mine."
        })
      })
    )

    it.effect(
      "S002-R07 Loop-flow agent execution: exit_loop is offered in a loop and nowhere else, and ends it",
      () =>
        Effect.gen(function* () {
          const { model, newStory } = yield* ModelsOnTheWire
          const story = yield* newStory
          const counter = yield* model([
            { say: "One." },
            { say: "Two." },
            { say: "Enough.", calls: [{ tool: "exit_loop", arguments: { output: "Counted to two." } }] },
            { say: "Never asked for." }
          ])
          const agent = yield* story.post(
            "/agents",
            worker({
              flowType: "loop",
              maxIterations: 5,
              prompt: "Round {{ iteration }}.",
              tools: [],
              model: counter.config
            })
          )
          const run = yield* story.post(`/agents/${agent.id}/trigger`)
          expect(run).toMatchObject({ status: "completed", summary: "Counted to two.", stepCount: 3 })
          expect(counter.requests.map(toolsOf)).toEqual([["exit_loop"], ["exit_loop"], ["exit_loop"]])
          expect(wordsOf(counter.requests[2])).toEqual([
            ["user", "Round 1."],
            ["assistant", "One."],
            ["user", "Round 2."],
            ["assistant", "Two."],
            ["user", "Round 3."]
          ])
          const single = yield* model([
            { calls: [{ tool: "exit_loop", arguments: {} }] },
            { say: "There is no loop." }
          ])
          const other = yield* story.post(
            "/agents",
            worker({ name: "single", tools: ["*.*"], model: single.config })
          )
          const alone = yield* story.post(`/agents/${other.id}/trigger`)
          expect(alone).toMatchObject({ status: "completed", summary: "There is no loop." })
          expect(toolsOf(single.requests[0])).not.toContain("exit_loop")
          expect(yield* callsOf(story, alone)).toMatchObject([{ tool: "exit_loop", status: "refused" }])
        })
    )
  })

  describe("Requirement: Agent Run Lifecycle Tracking", () => {
    it.effect("S002-R08 the record of a run stands there, running, before its model has said a word", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const held = yield* model([{ say: "At last." }], { isHeld: true })
        const agent = yield* story.post("/agents", worker({ model: held.config }))
        const { body: triggered } = yield* story.ask("POST", `/agents/${agent.id}/trigger?wait=false`)
        yield* Deferred.await(held.asked)
        expect(yield* story.get(`/runs/${triggered.id}`)).toMatchObject({
          status: "running",
          summary: null,
          stepCount: 0,
          startedAt: expect.any(String),
          completedAt: null,
          durationMs: null
        })
        yield* held.letGo
        yield* eventually(story.get(`/runs/${triggered.id}`), (run) => run.status === "completed")
      })
    )
  })

  describe("Requirement: Trigger Endpoint Activation", () => {
    const inputs: ReadonlyArray<readonly [string, unknown, string]> = [
      ["text, as it is", "Water the ferns.\nAll of them.", "Water the ferns.\nAll of them."],
      ["an object, as JSON", { plant: "fern", litres: 2 }, '{\n  "plant": "fern",\n  "litres": 2\n}'],
      ["a number, as JSON", 7, "7"],
      ["false, as JSON", false, "false"]
    ]
    it.effect.each(inputs)(
      "S002-R41 Manual trigger via API: an input that no template speaks of is a message of its own: %s",
      ([, input, said]) =>
        Effect.gen(function* () {
          const { model, newStory } = yield* ModelsOnTheWire
          const story = yield* newStory
          const hearing = yield* model([{ say: "Heard." }])
          const agent = yield* story.post(
            "/agents",
            worker({ prompt: "Do as you are told.", model: hearing.config })
          )
          const run = yield* story.post(`/agents/${agent.id}/trigger`, { input })
          expect(run).toMatchObject({ status: "completed", summary: "Heard.", trigger: { input } })
          expect(hearing.requests.map(wordsOf)).toEqual([
            joined([
              ["user", "Do as you are told."],
              ["user", said]
            ])
          ])
        })
    )

    const json = "application/json"
    const bodies: ReadonlyArray<readonly [string, string, string, unknown, string]> = [
      [
        "an object with fields of its own",
        json,
        '{"message":"Water the ferns.","input":1}',
        { message: "Water the ferns.", input: 1 },
        '{\n  "input": 1,\n  "message": "Water the ferns."\n}'
      ],
      ["an object of odd names", json, '{"toString":"it"}', { toString: "it" }, '{\n  "toString": "it"\n}'],
      ["a string", json, '"Water the ferns."', "Water the ferns.", "Water the ferns."],
      ["a list", json, '["fern",2]', ["fern", 2], '[\n  "fern",\n  2\n]'],
      ["false", json, "false", false, "false"],
      ["text", "text/plain; charset=utf-8", '{"Water" them', '{"Water" them', '{"Water" them'],
      ["text that is JSON", "text/plain", "7", "7", "7"]
    ]
    it.effect.each(bodies)(
      "S002-R41 Manual trigger via API: the request body is the input: %s",
      ([, contentType, body, input, said]) =>
        Effect.gen(function* () {
          const { model, newStory } = yield* ModelsOnTheWire
          const story = yield* newStory
          const hearing = yield* model([{ say: "Heard." }])
          const agent = yield* story.post("/agents", worker({ prompt: "Do it.", model: hearing.config }))
          const path = `/api/projects/${story.projectId}/agents/${agent.id}/trigger`
          const headers = { "content-type": contentType, "idempotency-key": crypto.randomUUID() }
          const answer = yield* story.send("POST", path, body, headers)
          expect(answer).toMatchObject({ status: 200, body: { status: "completed", trigger: { input } } })
          expect(hearing.requests.map(wordsOf)).toEqual([
            joined([
              ["user", "Do it."],
              ["user", said]
            ])
          ])
          // Sent again under its key it begins nothing; another body, or the same one as what it is not, is refused.
          expect((yield* story.send("POST", path, body, headers)).body.id).toBe(answer.body.id)
          const other = contentType === json ? "text/plain" : json
          const changed = yield* story.send("POST", path, '"7"', { ...headers, "content-type": other })
          expect(changed.status).toBe(422)
          expect(hearing.requests).toHaveLength(1)
        })
    )

    it.effect("S002-R41 a body that cannot be kept as it is begins no run, and says why", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const silent = yield* model([{ say: "Ok." }])
        const agent = yield* story.post("/agents", worker({ model: silent.config }))
        const path = `/api/projects/${story.projectId}/agents/${agent.id}/trigger`
        for (const [status, contentType, body] of [
          [400, json, "{oops"],
          [400, "text/html", "Water"],
          [400, "text/plain", new Uint8Array([0xff, 0xfe, 0x41])],
          [422, "text/plain", "a\u0000b"],
          [422, json, '{"message":"a\\u0000b"}'],
          [422, json, '{"message":1,"message":2}'],
          [413, "text/plain", "x".repeat(httpLimits.bodyMaxBytes + 1)]
        ] as const) {
          const answer = yield* story.send("POST", path, body, { "content-type": contentType })
          expect([contentType, answer.status]).toEqual([contentType, status])
        }
        expect((yield* story.get("/runs")).items).toEqual([])
        expect(silent.requests).toEqual([])
      })
    )

    it.effect("S002-R41 an input of nothing is no message, nor is one that a step speaks of", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const [silent, speaking] = [yield* model([{ say: "Ok." }]), yield* model([{ say: "Ok." }])]
        const plain = yield* story.post("/agents", worker({ prompt: "Go.", model: silent.config }))
        for (const body of [undefined, {}, { input: null }, { input: "" }])
          yield* story.post(`/agents/${plain.id}/trigger`, body)
        expect(silent.requests.map(wordsOf)).toEqual(silent.requests.map(() => [["user", "Go."]]))
        expect(silent.requests).toHaveLength(4)
        const stepped = yield* story.post(
          "/agents",
          worker({
            name: "stepped",
            prompt: "Go.",
            flowType: "loop",
            maxIterations: 1,
            steps: [{ name: "say", prompt: "Say {{ input }}." }],
            model: speaking.config
          })
        )
        yield* story.post(`/agents/${stepped.id}/trigger`, { input: "please" })
        expect(speaking.requests.map(wordsOf)).toEqual([
          joined([
            ["user", "Go."],
            ["user", "Say please."]
          ])
        ])
      })
    )

    it.effect("S002-R41 the first step of a flow comes after the input", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const looping = yield* model([{ say: "Ok." }])
        const agent = yield* story.post(
          "/agents",
          worker({
            prompt: "Round {{ iteration }}.",
            flowType: "loop",
            maxIterations: 2,
            model: looping.config
          })
        )
        yield* story.post(`/agents/${agent.id}/trigger`, { input: "A word." })
        expect(looping.requests.map(wordsOf).at(-1)).toEqual(
          joined([
            ["user", "A word."],
            ["user", "Round 1."],
            ["assistant", "Ok."],
            ["user", "Round 2."]
          ])
        )
      })
    )

    it.effect(
      "S002-R40 S002-R42 S002-R43 Manual trigger via API: the definition as it is now is executed, and the run is answered with its results and is not skipped",
      () =>
        Effect.gen(function* () {
          const { model, newStory } = yield* ModelsOnTheWire
          const story = yield* newStory
          const [old, present] = [yield* model([{ say: "Old." }]), yield* model([{ say: "New." }])]
          const agent = yield* story.post("/agents", worker({ model: old.config }))
          yield* story.patch(`/agents/${agent.id}`, { model: present.config, systemPrompt: "Be new." })
          const answer = yield* story.ask("POST", `/agents/${agent.id}/trigger`, { input: { what: "it" } })
          expect(answer.status).toBe(200)
          expect(answer.body).toMatchObject({
            agentId: agent.id,
            agentVersion: 2,
            status: "completed",
            summary: "New.",
            stepCount: 1,
            usage: { inputTokens: 11, outputTokens: 7 },
            trigger: { type: "manual", input: { what: "it" } }
          })
          expect(old.requests).toEqual([])
          expect(present.requests.map(wordsOf)).toEqual([
            [
              ["system", "Be new."],
              ["user", "Look after it."]
            ]
          ])
        })
    )
  })

  describe("Requirement: Step Limit Enforcement", () => {
    it.effect(
      "S002-R20 S002-R21 S002-R22 Soft stop at step limit: one system message, one last request, and no tools in it",
      () =>
        Effect.gen(function* () {
          const { model, newStory } = yield* ModelsOnTheWire
          const story = yield* newStory
          const endless = yield* model([
            { say: "First.", calls: [{ tool: "search_objects", arguments: { query: "one" } }] },
            { say: "Second.", calls: [{ tool: "search_objects", arguments: { query: "two" } }] },
            { say: "I searched twice and found nothing." },
            { say: "Never asked for." }
          ])
          const agent = yield* story.post(
            "/agents",
            worker({ tools: ["graph.*"], maxSteps: 2, model: endless.config })
          )
          const run = yield* story.post(`/agents/${agent.id}/trigger`)
          expect(run).toMatchObject({
            status: "paused",
            pauseReason: "stepLimit",
            summary: "I searched twice and found nothing.",
            stepCount: 3
          })
          expect(endless.requests).toHaveLength(3)
          const [first, second, last] = endless.requests
          expect([first, second].map((request) => toolsOf(request).includes("search_objects"))).toEqual([
            true,
            true
          ])
          // The tools stay named, for the conversation has calls of them; none may be called any more.
          expect([first, second, last].map((request) => request.tool_choice)).toEqual([
            "auto",
            "auto",
            "none"
          ])
          const log = yield* story.get(`/runs/${run.id}/events`)
          const stop = JSON.stringify(firstOf(log.items, "SoftStopEvent").content).slice(1, -1)
          const isStop = (message: Json) => JSON.stringify(message.content).includes(stop)
          expect(first.messages.concat(second.messages).filter(isStop)).toEqual([])
          expect(last.messages.filter(isStop)).toHaveLength(1)
          expect(last.messages.at(-1)).toEqual({ role: "system", content: JSON.parse(`"${stop}"`) })
        })
    )

    it.effect(
      "S002-R20 a server that takes no system message in the middle is told in tags, and asked so from then on",
      () =>
        Effect.gen(function* () {
          const { model, newStory } = yield* ModelsOnTheWire
          const story = yield* newStory
          const search = { calls: [{ tool: "search_objects", arguments: { query: "one" } }] }
          const strict = yield* model([
            search,
            { status: 400, error: "System message must be at the beginning." },
            { say: "Stopped." },
            search,
            { say: "Again." }
          ])
          const agent = yield* story.post(
            "/agents",
            worker({ tools: ["graph.*"], maxSteps: 1, model: strict.config })
          )
          for (const summary of ["Stopped.", "Again."])
            expect(yield* story.post(`/agents/${agent.id}/trigger`)).toMatchObject({
              status: "paused",
              pauseReason: "stepLimit",
              summary
            })
          const last = strict.requests.map(({ messages }) => messages.at(-1))
          expect(last.map(({ role }) => role)).toEqual(["user", "system", "user", "user", "user"])
          for (const at of [2, 4])
            expect(last[at]).toEqual({ role: "user", content: `<system>\n${last[1].content}\n</system>` })
        })
    )

    it.effect("S002-R20 a refusal that has another cause is told as it is", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const search = { calls: [{ tool: "search_objects", arguments: { query: "one" } }] }
        const full = yield* model([search, { status: 400 }, search, { say: "Stopped." }])
        const agent = yield* story.post(
          "/agents",
          worker({ tools: ["graph.*"], maxSteps: 1, model: full.config })
        )
        expect((yield* story.post(`/agents/${agent.id}/trigger`)).status).toBe("failed")
        expect((yield* story.post(`/agents/${agent.id}/trigger`)).status).toBe("paused")
        expect(full.requests.map(({ messages }) => messages.at(-1).role)).toEqual([
          "user",
          "system",
          "user",
          "system"
        ])
      })
    )
  })
})
