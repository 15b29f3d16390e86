/**
 * What foreign tools answer: structures, files, tasks and questions, and what a model is told of them.
 */
import { describe, expect, layer } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import {
  answering,
  newOddShop,
  type OddAnswer,
  oddServer,
  oddTool,
  said,
  streaming
} from "../testing/mcp-odd-server.ts"
import { beginRun, outcomesOf } from "../testing/mcp-runs.ts"
import { addServer } from "../testing/mcp-words.ts"
import { eventually, type Json, scripted, type Story, storyToken } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf } from "../testing/story-words.ts"

const lookUp = { tool: "shop__lookup", arguments: { word: "fig" } }
const digits = "1234567890"

/** A secret that each way of writing writes otherwise. */
const awkward = 'to"p/sécret ??~~>>value'

const theirs = ConfigProvider.layer(
  ConfigProvider.fromEnv({
    env: {
      PATH: process.env["PATH"] ?? "",
      TROPISM_SECRET_PIN: digits,
      TROPISM_SECRET_SELF: storyToken,
      TROPISM_SECRET_AWKWARD: awkward
    }
  })
)

/** What a call comes to whose server answers so. */
const outcomeWhen = (
  decide: OddAnswer,
  options: Parameters<typeof oddServer>[1] = {},
  overrides: Record<string, unknown> = {}
) =>
  Effect.gen(function* () {
    const story = yield* newStoryHere
    const odd = yield* oddServer(decide, options)
    const { callTimeoutMs, ...transport } = overrides
    const made = yield* addServer(
      story,
      { type: "http", url: odd.url, ...transport },
      callTimeoutMs === undefined ? {} : { callTimeoutMs }
    )
    const [call] = yield* outcomesOf(story, [lookUp])
    return { call, odd, story, made }
  })

const atCall =
  (result: Json): OddAnswer =>
  ({ message }) =>
    message?.method === "tools/call" ? answering(message, { resultType: "complete", ...result }) : undefined

const rows = {
  type: "object",
  properties: { rows: { type: "array", items: { type: "integer" } } },
  required: ["rows"]
}

const handle = { resultType: "task", taskId: "t-1", status: "working", ttlMs: null, pollIntervalMs: 1 }
const times = { createdAt: "2026-01-01T00:00:00Z", lastUpdatedAt: "2026-01-01T00:00:00Z" }

/** A server whose calls are tasks, which are at each look as is said. */
const working = (...looks: ReadonlyArray<Json>) => {
  const left = [...looks]
  const decide: OddAnswer = ({ message }) => {
    if (message?.method === "tools/call") return answering(message, { ...handle, ...times })
    if (message?.method !== "tasks/get") return undefined
    const look = left.length > 1 ? left.shift() : left[0]
    return answering(message, { ...handle, ...times, resultType: "complete", ...look })
  }
  return decide
}

layer(Layer.provide(SharedServer.own, theirs), { excludeTestServices: true })((it) => {
  describe("Null for what is absent", () => {
    const nulls = { _meta: null, isError: null, structuredContent: null }
    const text = { type: "text", text: 'Says "_meta":null, ö.', annotations: null, _meta: null }
    const file = { type: "resource", resource: { uri: "a:b", text: "B", mimeType: null, _meta: null } }
    const message = (id: number, result: Json) => ({ jsonrpc: "2.0", id, result, error: null })
    const atCallSend =
      (send: (body: Json) => Response): OddAnswer =>
      (heard) =>
        heard.message?.method === "tools/call"
          ? send(message(heard.message.id, { resultType: "complete", content: [text, file], ...nulls }))
          : undefined

    it.effect.each<readonly [string, (body: Json) => Response]>([
      ["a body", (body) => Response.json(body)],
      [
        "a body of many lines",
        (body) =>
          new Response(JSON.stringify(body, null, 2), { headers: { "content-type": "application/json" } })
      ],
      ["a stream", (body) => streaming(`event: message\ndata: ${JSON.stringify(body)}\n\n`)]
    ])("is taken in the answer of a call, in %s", ([, send]) =>
      Effect.gen(function* () {
        const { call } = yield* outcomeWhen(atCallSend(send))
        expect(call).toMatchObject({ status: "completed", result: `${text.text}\n[resource: a:b]\nB` })
      })
    )

    it.effect("is taken in the handshake, in a task and in place of a content", () =>
      Effect.gen(function* () {
        const { call } = yield* outcomeWhen(atCall({ content: null, structuredContent: { a: null } }))
        expect(call).toMatchObject({ status: "completed", result: { a: null } })
        const { made } = yield* outcomeWhen(({ message: asked }) =>
          asked?.method === "initialize"
            ? answering(asked, {
                protocolVersion: "2025-11-25",
                capabilities: { tools: {}, prompts: null },
                serverInfo: { name: "odd", version: "1", title: null },
                instructions: null,
                _meta: null
              })
            : undefined
        )
        expect(made).toMatchObject({ lastError: null })
        const task = yield* outcomeWhen(
          working({ status: "completed", result: { content: [text], ...nulls }, _meta: null })
        )
        expect(task.call).toMatchObject({ status: "completed", result: text.text })
      })
    )
  })

  describe("An answer that is nearly as the protocol wants it", () => {
    const fig = { type: "text", text: "fig" }
    const asJson = (result: Json) => (asked: Json) => answering(asked, result)
    const sent = (asked: Json, end: string) =>
      streaming(
        `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", id: asked.id, result: said("fig") })}${end}`
      )
    const erring = (error: Json) => (asked: Json) => Response.json({ jsonrpc: "2.0", id: asked.id, error })

    type Answered = readonly [string, (asked: Json) => Response, Json]
    /** What each is read as, in one run: the word of a call names its answer. */
    const outcomesFor = Effect.fnUntraced(function* (answers: ReadonlyArray<Answered>) {
      const { odd, story } = yield* newOddShop(({ message }) =>
        message?.method === "tools/call"
          ? answers.find(([what]) => what === message.params.arguments.word)?.[1](message)
          : undefined
      )
      const calls = answers.map(([word]) => ({ ...lookUp, arguments: { word } }))
      const outcomes = yield* outcomesOf(story, calls)
      expect(odd.of("tools/call")).toHaveLength(answers.length)
      return outcomes.map(({ result, status }, index) => [answers[index]?.[0], status, result])
    })

    const readable: ReadonlyArray<Answered> = [
      ["a structure and no content", asJson({ structuredContent: { a: 1 } }), { a: 1 }],
      ["a structure that is a list", asJson({ structuredContent: [1, 2] }), "[1,2]"],
      ["such a structure and its text", asJson({ structuredContent: [1], content: [fig] }), "fig"],
      ["neither structure nor content", asJson({}), ""],
      ["a text for a content", asJson({ content: "fig" }), "fig"],
      ["a part for a content", asJson({ content: fig }), "fig"],
      ["a text for a part", asJson({ content: ["fig"] }), "fig"],
      [
        "a part of a kind that is to come",
        asJson({ content: [{ type: "video", url: "a" }, fig] }),
        '{"type":"video","url":"a"}\nfig'
      ],
      ["a text part without its text", asJson({ content: [{ type: "text" }, fig] }), '{"type":"text"}\nfig'],
      [
        "a link without a name",
        asJson({ content: [{ type: "resource_link", uri: "a:b" }] }),
        "[link: a:b, a:b]"
      ],
      [
        "sound without its kind",
        asJson({ content: [{ type: "audio", data: "aGk=" }] }),
        expect.stringMatching(/^\[audio: .*\b4\b/)
      ],
      [
        "a file without an address",
        asJson({ content: [{ type: "resource", resource: { blob: "aGk=" } }] }),
        expect.stringMatching(/^\[resource: .*\b4\b/)
      ],
      ["annotations out of range", asJson({ content: [{ ...fig, annotations: { priority: 7 } }] }), "fig"],
      ["a stream that ends in the line", (asked) => sent(asked, ""), "fig"],
      ["a stream that ends after the line", (asked) => sent(asked, "\r\n"), "fig"]
    ]

    it.effect("is read", () =>
      Effect.gen(function* () {
        expect(yield* outcomesFor(readable)).toEqual(
          readable.map(([what, , result]) => [what, "completed", result])
        )
      })
    )

    const failing: ReadonlyArray<Answered> = [
      ["isError and no content", asJson({ isError: true }), expect.stringMatching(/no reason/)],
      [
        "isError and an empty content",
        asJson({ isError: true, content: [] }),
        expect.stringMatching(/no reason/)
      ],
      [
        "isError and a structure",
        asJson({ isError: true, structuredContent: { why: "No figs" } }),
        { why: "No figs" }
      ],
      ["isError as text", asJson({ isError: "true", content: [fig] }), "fig"],
      ["an error that is text", erring("No figs"), "No figs"],
      ["an error without a code", erring({ message: "No figs" }), "No figs"],
      ["an error without a message", erring({ code: -32_000 }), expect.stringMatching(/no reason/)]
    ]

    it.effect("is a failure with its reason", () =>
      Effect.gen(function* () {
        expect(yield* outcomesFor(failing)).toEqual(
          failing.map(([what, , error]) => [what, "failed", { reason: "toolFailed", error }])
        )
      })
    )

    it.effect("in a task is read, too", () =>
      Effect.gen(function* () {
        const { call } = yield* outcomeWhen(working({ status: "completed", result: { content: "fig" } }), {
          isNew: true
        })
        expect(call).toMatchObject({ status: "completed", result: "fig" })
      })
    )

    it.effect("that is longer than its bound is cut, and says so", () =>
      Effect.gen(function* () {
        const { call } = yield* outcomeWhen(atCall(said("x".repeat(1_000_000))))
        expect(call.status).toBe("completed")
        expect(call.result).toMatch(/^x+… \(cut: \d+ of 1000000 characters\)$/)
      })
    )

    it.effect("is none where the call is only taken: its outcome is unknown, and it is not made again", () =>
      Effect.gen(function* () {
        const { call, odd } = yield* outcomeWhen(
          ({ message }) =>
            message?.method === "tools/call" ? new Response(null, { status: 202 }) : undefined,
          {},
          { callTimeoutMs: 1_000 }
        )
        expect(call).toMatchObject({ status: "unknown", result: { reason: "unknownOutcome" } })
        expect(odd.of("tools/call")).toHaveLength(1)
      })
    )
  })

  describe("A structure", () => {
    const structured = (structuredContent: Json, content: ReadonlyArray<Json> = []) =>
      atCall({ content: [{ type: "text", text: "as text" }, ...content], structuredContent })

    for (const isNew of [false, true])
      it.effect(
        `that fits what the tool says of its answers is told as it is${isNew ? ", in 2026-07-28" : ""}`,
        () =>
          Effect.gen(function* () {
            const tools = [oddTool({ outputSchema: rows })]
            const { call } = yield* outcomeWhen(structured({ rows: [1, 2] }), { isNew, tools })
            expect(call).toMatchObject({ status: "completed", result: { rows: [1, 2] } })
          })
      )

    it.effect("that does not fit is told with what does not, and the call is no failure: it was made", () =>
      Effect.gen(function* () {
        const tools = [oddTool({ outputSchema: rows })]
        const { call, odd } = yield* outcomeWhen(structured({ rows: ["one"] }), { tools })
        expect(call.status).toBe("completed")
        expect(call.result).toMatch(/\/rows\/0: [\s\S]*\{"rows":\["one"\]\}/)
        expect(odd.of("tools/call")).toHaveLength(1)
      })
    )

    it.effect("beside which there is more than its text is told with that", () =>
      Effect.gen(function* () {
        const link = { type: "resource_link", uri: "https://shop.example/a", name: "The bill" }
        const { call } = yield* outcomeWhen(structured({ rows: [1] }, [link]))
        expect(call.result).toBe('{"rows":[1]}\n[link: https://shop.example/a, The bill]')
      })
    )

    it.effect("with a secret for a number, or in a name, is told without it", () =>
      Effect.gen(function* () {
        const { call } = yield* outcomeWhen(
          structured({ pin: Number(digits), [`at-${digits}`]: [`${digits}!`] }),
          {},
          { headers: { "X-Pin": { secret: "TROPISM_SECRET_PIN" } } }
        )
        expect(call).toMatchObject({
          status: "completed",
          result: { pin: "<redacted>", "at-<redacted>": ["<redacted>!"] }
        })
      })
    )
  })

  describe("A secret", () => {
    it.effect("is told in none of the spellings in which its server says it back", () =>
      Effect.gen(function* () {
        const spellings = (whole: string): ReadonlyArray<string> => {
          const inBase64 = ["", "x", "xx", "§±"].map((before) =>
            Buffer.from(before + whole).toString("base64")
          )
          const hex = Buffer.from(whole).toString("hex")
          return [
            ...inBase64,
            ...inBase64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")),
            hex,
            hex.toUpperCase(),
            JSON.stringify(whole),
            encodeURIComponent(whole),
            whole
          ]
        }
        const given = `Bearer ${awkward}`
        const { call } = yield* outcomeWhen(
          atCall(said([...spellings(given), ...spellings(awkward)].join("\n"))),
          {},
          { headers: { Authorization: { secret: "TROPISM_SECRET_AWKWARD", prefix: "Bearer " } } }
        )
        const lines: ReadonlyArray<string> = call.result.split("\n")
        const bare = ["<redacted>", "e<redacted>", "eH<redacted>", "wqfCs<redacted>"]
        expect(lines.slice(0, 13)).toEqual([
          ...bare,
          ...bare,
          "<redacted>",
          "<redacted>",
          '"<redacted>"',
          "<redacted>",
          "<redacted>"
        ])
        expect(lines.slice(13)).toEqual(lines.slice(0, 13))
      })
    )
  })

  describe("What a model cannot read", () => {
    it.effect("is named: images, sound, files and links", () =>
      Effect.gen(function* () {
        const { call } = yield* outcomeWhen(
          atCall({
            content: [
              { type: "text", text: "Here." },
              { type: "image", mimeType: "image/png", data: "aGk=" },
              { type: "audio", mimeType: "audio/wav", data: "aGk=" },
              {
                type: "resource",
                resource: { uri: "file:///a.txt", mimeType: "text/plain", text: "Its words." }
              },
              { type: "resource", resource: { uri: "file:///a.bin", blob: "aGk=" } },
              {
                type: "resource_link",
                uri: "file:///b.pdf",
                name: "b",
                title: "A bill",
                mimeType: "application/pdf",
                description: "of\nMay"
              }
            ]
          })
        )
        expect(call.result.split("\n")).toEqual([
          "Here.",
          expect.stringMatching(/^\[.*image\/png.*\b4\b.*\]$/),
          expect.stringMatching(/^\[.*audio\/wav.*\b4\b.*\]$/),
          "[resource: file:///a.txt]",
          "Its words.",
          expect.stringMatching(/^\[.*file:\/\/\/a\.bin.*\b4\b.*\]$/),
          "[link: file:///b.pdf, A bill, application/pdf, of May]"
        ])
      })
    )
  })

  describe("A server that asks in the middle of a call", () => {
    const question = {
      method: "elicitation/create",
      params: {
        mode: "form",
        message: "Which account shall pay?",
        requestedSchema: { type: "object", properties: { account: { type: "string" } } }
      }
    }

    it.effect("for a person's input is told nobody is there, and the model what was asked", () =>
      Effect.gen(function* () {
        const { call, odd } = yield* outcomeWhen(
          atCall({
            resultType: "input_required",
            inputRequests: { who: question, what: { method: "sampling/createMessage", params: {} } }
          }),
          { isNew: true }
        )
        expect(call).toMatchObject({ status: "failed", result: { reason: "toolFailed" } })
        expect(call.result.error).toContain('"Which account shall pay?" (account)')
        expect(call.result.error).toMatch(/\bsampling\b/)
        expect(odd.of("tools/call")).toHaveLength(1)
      })
    )

    it.effect("by a request of its own, as in 2025-11-25, is answered at once and told of", () =>
      Effect.gen(function* () {
        let asked: Json
        let isAnswered: ((refusal: Json) => void) | undefined
        const refusal = new Promise<Json>((resolve) => {
          isAnswered = resolve
        })
        const encode = (message: Json) => new TextEncoder().encode(`data: ${JSON.stringify(message)}\n\n`)
        const { call } = yield* outcomeWhen(({ message }) => {
          if (message?.id === "ask-1" && message.method === undefined) {
            isAnswered?.(message.error)
            return new Response(null, { status: 202 })
          }
          if (message?.method !== "tools/call") return undefined
          asked = message
          const body = new ReadableStream({
            start: (controller) => {
              controller.enqueue(encode({ jsonrpc: "2.0", id: "ask-1", ...question }))
              return refusal.then(({ code }) => {
                const result = said(`I was refused with ${code}.`, { isError: true })
                controller.enqueue(encode({ jsonrpc: "2.0", id: asked.id, result }))
                controller.close()
              })
            }
          })
          return new Response(body, { headers: { "content-type": "text/event-stream" } })
        })
        expect(call).toMatchObject({ status: "failed", result: { reason: "toolFailed" } })
        expect(call.result.error).toMatch(/^I was refused with -32601\.\n.*Which account shall pay/)
      })
    )
  })

  describe("A call that is answered with a task", () => {
    it.effect("is waited for until it has ended", () =>
      Effect.gen(function* () {
        const { call, odd } = yield* outcomeWhen(
          working(
            {},
            {},
            { status: "completed", result: { content: [{ type: "text", text: "It is done." }] } }
          ),
          { isNew: true }
        )
        expect(call).toMatchObject({ status: "completed", result: "It is done." })
        expect(odd.of("tools/call")).toHaveLength(1)
        expect(odd.of("tasks/get").map(({ message }) => message.params.taskId)).toEqual(["t-1", "t-1", "t-1"])
        const declared =
          odd.of("tools/call")[0]?.message.params._meta["io.modelcontextprotocol/clientCapabilities"]
        expect(declared.extensions).toHaveProperty(["io.modelcontextprotocol/tasks"])
      })
    )

    for (const [status, more, words] of [
      ["failed", { error: { code: -1, message: "No more figs" } }, "No more figs"],
      ["cancelled", { statusMessage: "Closed for today" }, "Closed for today"],
      ["input_required", { inputRequests: { who: { method: "roots/list", params: {} } } }, "folders (roots)"]
    ] as const)
      it.effect(`that comes to ${status} has failed, with the server's reason`, () =>
        Effect.gen(function* () {
          const { call } = yield* outcomeWhen(working({ status, ...more }), { isNew: true })
          expect(call).toMatchObject({
            status: "failed",
            result: { reason: "toolFailed", error: expect.stringContaining(words) }
          })
        })
      )

    it.effect("by this very program is waited for like any other's", () =>
      Effect.gen(function* () {
        const [mine, other] = [yield* newStoryHere, yield* newStoryHere]
        yield* other.post("/agents", {
          name: "helper",
          prompt: "Help.",
          triggerType: "manual",
          tools: [],
          model: scripted([{ say: "I helped." }])
        })
        yield* addOwn(mine, other)
        const calls = [{ tool: "own__trigger_agent", arguments: { agent: "helper" } }]
        const [call] = yield* outcomesOf(mine, calls, { tools: ["own.*"] })
        expect(call.status).toBe("completed")
        expect(JSON.stringify(call.result)).toContain("I helped.")
      })
    )
  })

  describe("This very program", () => {
    it.effect("is a foreign server like any other: its tools are pinned, called and refused", () =>
      Effect.gen(function* () {
        const [mine, other] = [yield* newStoryHere, yield* newStoryHere]
        const made = yield* addOwn(mine, other)
        expect(made.lastError).toBe(null)
        const [created, wrong] = yield* outcomesOf(
          mine,
          [
            { tool: "own__create_object", arguments: { type: "word", properties: { text: "fig" } } },
            { tool: "own__get_object", arguments: { objectId: "01900000-0000-7000-8000-000000000000" } }
          ],
          { tools: ["own.*"] }
        )
        expect(created.status).toBe("completed")
        expect(wrong).toMatchObject({ status: "failed", result: { reason: "toolFailed" } })
        expect((yield* other.get("/objects")).items).toMatchObject([{ type: "word" }])
        expect((yield* mine.get("/objects")).items).toEqual([])
      })
    )
  })
})

layer(SharedServer.layer)((it) => {
  describe("A call that is answered with a task", () => {
    it.effect("that takes longer than a call may is cancelled, and its outcome is unknown", () =>
      Effect.gen(function* () {
        const { odd, story } = yield* newOddShop(working({}), { isNew: true }, { callTimeoutMs: 20_000 })
        const run = yield* beginRun(story, [lookUp])
        yield* asTimePasses(
          250,
          Effect.sync(() => odd.of("tasks/get")),
          ({ length }) => length > 0
        )
        yield* asTimePasses(250, story.get(`/runs/${run.id}`), (now) => now.completedAt !== null)
        expect(yield* callsOf(story, run)).toMatchObject([
          { status: "unknown", result: { error: expect.stringMatching(/\b20000\b/) } }
        ])
        const told = yield* eventually(
          Effect.sync(() => odd.of("tasks/cancel")),
          (all) => all.length === 1
        )
        expect(told[0]?.message.params.taskId).toBe("t-1")
      })
    )
  })
})

/** Adds this program's own door, with another project behind it, as a foreign server. */
const addOwn = (mine: Story, other: Story): Effect.Effect<Json> =>
  addServer(
    mine,
    {
      type: "http",
      url: `${mine.url}/api/projects/${other.projectId}/mcp`,
      headers: { Authorization: { secret: "TROPISM_SECRET_SELF", prefix: "Bearer " } }
    },
    { name: "own" }
  )
