/** The demo's agents, asked through their own definitions, with no network and no model. */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { AgentInput, defineAgent, findDefinitionFault } from "@tropism/domain/agent"
import type { Message } from "@tropism/domain/message"
import { Clock, Effect, FileSystem, Path, Schema, Stream } from "effect"
import { Liquid } from "liquidjs"
import { parse } from "yaml"
import { makeFakeClock } from "../../testing/fake-clock.ts"
import { modelsIn, textOf } from "../../testing/models.ts"
import { naming } from "../../testing/naming.ts"
import { builtInScriptNames, loadBuiltInScripts } from "./built-in-scripts.ts"
import type { ModelPart } from "./model-request.ts"
import { Models } from "./models.ts"

const decodeAgent = Schema.decodeUnknownEffect(AgentInput)

const readAgent = Effect.fnUntraced(function* (name: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* path.fromFileUrl(new URL("../../../cli/demo", import.meta.url))
  const yaml: unknown = parse(yield* fs.readFileString(path.join(folder, `${name}.yaml`)))
  return defineAgent(yield* decodeAgent(yaml, { onExcessProperty: "error" }))
})

type ToolAnswer = { readonly result: Schema.Json; readonly isFailure?: boolean }
interface Turn {
  readonly calls: ReadonlyArray<{ readonly name: string; readonly arguments: Schema.Json }>
  readonly text: string
}

/** Drives an agent's model until it calls no more tools. */
const turnOf = (
  name: string,
  scope: object,
  answer: (name: string, args: Schema.Json) => ToolAnswer = () => ({ result: {} })
) =>
  Effect.gen(function* () {
    const agent = yield* readAgent(name)
    const model = yield* (yield* Models).resolve({ agentName: agent.name, model: agent.model })
    const tools = agent.tools.map((tool) => ({
      name: tool.split(".")[1] ?? "",
      inputSchema: { type: "object" }
    }))
    let messages: ReadonlyArray<Message> = [
      { role: "user", content: String(new Liquid().parseAndRenderSync(agent.prompt, scope)) }
    ]
    const calls: Array<Turn["calls"][number]> = []
    for (let step = 0; step < (agent.maxSteps ?? 1); step++) {
      const parts: ReadonlyArray<ModelPart> = yield* Stream.runCollect(model.request({ messages, tools }))
      const asked = parts.flatMap((part) => (part.type === "toolCall" ? [part] : []))
      if (asked.length === 0) return { calls, text: textOf(parts) } satisfies Turn
      for (const call of asked) expect(tools.map((tool) => tool.name)).toContain(call.name)
      calls.push(...asked.map((call) => ({ name: call.name, arguments: call.arguments })))
      messages = [
        ...messages,
        {
          role: "assistant",
          content: asked.map((call) => ({
            type: "tool-call",
            id: call.id,
            name: call.name,
            params: call.arguments
          }))
        },
        {
          role: "tool",
          content: asked.map((call) => ({
            type: "tool-result",
            id: call.id,
            name: call.name,
            isFailure: false,
            ...answer(call.name, call.arguments)
          }))
        }
      ]
    }
    return yield* Effect.die("The script does not come to an end")
  }).pipe(
    Effect.provideService(Clock.Clock, makeFakeClock().clock),
    Effect.provide([modelsIn({}), NodeServices.layer])
  )

const packageNamed = (name: string, properties: object) => ({
  id: "0199aaaa-0000-7000-8000-000000000001",
  type: "Package",
  key: `node_modules/${name}`,
  version: 1,
  properties: { name, version: "1.2.3", ...properties }
})
const created = { id: "e", type: "created", objectId: "0199aaaa-0000-7000-8000-000000000001", version: 1 }

describe("The built-in scripts", () => {
  it.effect("have the names by which agents are judged when they are saved", () =>
    Effect.gen(function* () {
      const scripts = yield* loadBuiltInScripts
      expect([...scripts.keys()].toSorted()).toEqual(builtInScriptNames)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("the demo's definitions", () => {
  for (const name of ["licence-review", "install-script-watch", "daily-digest"]) {
    it.effect(`${name} is one that the server would accept`, () =>
      Effect.gen(function* () {
        const agent = yield* readAgent(name)
        expect(agent.name).toBe(name)
        expect(findDefinitionFault(agent)).toBeUndefined()
      }).pipe(Effect.provide(NodeServices.layer))
    )
  }
})

describe("licence-review", () => {
  const suggested = () => ({ result: { status: "suggested", taskId: "t", taskNumber: 12 } })
  const review = (properties: object, event: unknown = created) =>
    turnOf("licence-review", { event, object: packageNamed("left-pad", properties) }, suggested)

  it.effect("suggests a mark for a package without a licence", () =>
    Effect.gen(function* () {
      const { calls, text } = yield* review({})
      expect(calls).toEqual([
        {
          name: "update_object",
          arguments: {
            objectId: "0199aaaa-0000-7000-8000-000000000001",
            properties: { licenseReview: "missing" },
            reasoning: expect.stringContaining("left-pad 1.2.3"),
            confidence: 0.95
          }
        }
      ])
      expect(text).toEqual(naming("left-pad", 12))
    })
  )

  it.effect("suggests a review of a licence that is not on the list, be it part of one that is", () =>
    Effect.gen(function* () {
      for (const licence of ["GPL-3.0-only", "MI", "MIT AND GPL-2.0", '`rm -rf` ```" {{ 7 }}']) {
        const { calls } = yield* review({ license: licence })
        expect(calls[0]?.arguments).toMatchObject({
          properties: { licenseReview: "review" },
          confidence: 0.8,
          reasoning: expect.stringContaining(licence)
        })
      }
    })
  )

  it.effect("has nothing to do with a permissive, marked or deleted package", () =>
    Effect.gen(function* () {
      for (const [properties, event] of [
        [{ license: "MIT" }, created],
        [{ license: "GPL-3.0", licenseReview: "review" }, created],
        [{}, { ...created, type: "deleted" }]
      ] as const) {
        const { calls, text } = yield* review(properties, event)
        expect(calls).toEqual([])
        expect(text).toMatch(/\S/)
      }
    })
  )

  it.effect("works by hand too, without an event, and without an object says so", () =>
    Effect.gen(function* () {
      expect((yield* review({}, null)).calls).toHaveLength(1)
      expect(yield* turnOf("licence-review", {})).toEqual({
        calls: [],
        text: expect.stringMatching(/\S/)
      })
    })
  )
})

describe("install-script-watch", () => {
  const watch = (properties: object, answer: (name: string) => ToolAnswer) =>
    turnOf("install-script-watch", { event: created, object: packageNamed("esbuild", properties) }, answer)

  it.effect("records a finding and ties it to the package", () =>
    Effect.gen(function* () {
      const { calls, text } = yield* watch({ hasInstallScript: true }, (name) =>
        name === "create_object"
          ? {
              result: {
                status: "applied",
                object: { id: "finding-1", type: "Finding", version: 1, properties: {} }
              }
            }
          : { result: { status: "applied" } }
      )
      expect(calls).toMatchObject([
        {
          name: "create_object",
          arguments: {
            type: "Finding",
            properties: { title: expect.stringContaining("esbuild 1.2.3"), severity: "medium" }
          }
        },
        {
          name: "create_relationship",
          arguments: {
            type: "FINDING_ABOUT",
            fromId: "finding-1",
            toId: "0199aaaa-0000-7000-8000-000000000001"
          }
        }
      ])
      expect(text).toContain("esbuild")
    })
  )

  it.effect("stops where there is such a finding already", () =>
    Effect.gen(function* () {
      const { calls, text } = yield* watch({ hasInstallScript: true }, () => ({
        isFailure: true,
        result: { error: "Taken" }
      }))
      expect(calls).toHaveLength(1)
      expect(text).toContain("esbuild")
    })
  )

  it.effect("has nothing to do with a package that runs no script", () =>
    Effect.gen(function* () {
      for (const properties of [{}, { hasInstallScript: false }]) {
        expect(yield* watch(properties, () => ({ result: {} }))).toEqual({
          calls: [],
          text: expect.stringContaining("esbuild")
        })
      }
    })
  )
})

describe("daily-digest", () => {
  it.effect("counts and names what the search finds", () =>
    Effect.gen(function* () {
      const finding = (title: string, severity: string) => ({
        id: title,
        type: "Finding",
        properties: { title, severity }
      })
      const { calls, text } = yield* turnOf("daily-digest", {}, (_name, args) =>
        Schema.is(Schema.Struct({ type: Schema.Literal("Finding") }))(args)
          ? { result: { items: [finding("a runs", "medium"), finding("b runs", "high")], total: 2 } }
          : { result: { items: [], total: 214 } }
      )
      expect(calls.map((call) => call.name)).toEqual(["search_objects", "search_objects"])
      expect(text).toMatch(/^.*\b214\b.*\b2\b.*\n- a runs \(medium\)\n- b runs \(high\)$/)
    })
  )

  it.effect("says so where there is none, or where the search fails", () =>
    Effect.gen(function* () {
      expect((yield* turnOf("daily-digest", {}, () => ({ result: { items: [], total: 0 } }))).text).toMatch(
        /^.*\b0\b.*\b0\b/
      )
      expect((yield* turnOf("daily-digest", {}, () => ({ isFailure: true, result: "no" }))).text).toMatch(
        /^\D+$/
      )
    })
  )
})
