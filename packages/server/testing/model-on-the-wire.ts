/**
 * A model server beside the server of a story: it speaks OpenAI's chat completions and keeps what it was asked.
 *
 * Each model has a name of its own, so the stories of a file share one server.
 * A model gives its answers in order, the last one again and again; one that is
 * held answers when the story lets it.
 */
import { createServer, type ServerResponse } from "node:http"
import { ConfigProvider, Context, Deferred, Effect, Layer } from "effect"
import { chatChunk, chatEnd } from "./fake-model-server.ts"
import { freshDatabase } from "./fresh-database.ts"
import { type Json, newProject, startServer, type Story } from "./platform.ts"

/** What a model says once. */
export interface WireAnswer {
  readonly say?: string
  readonly calls?: ReadonlyArray<{ readonly tool: string; readonly arguments: Json }>
  /** Sent before the text, as DeepSeek does. */
  readonly reasoning?: string
  /** The finish reason; `stop` or `tool_calls` where it is absent. */
  readonly finish?: string
  /** The whole body instead, as server-sent events of another provider's API. */
  readonly raw?: ReadonlyArray<Json>
  /** Refuses the request with this status instead, and with `error` where it is given. */
  readonly status?: number
  readonly error?: string
  /** Says it and then nothing more, without an end. */
  readonly isEndless?: boolean
}

export type WireProvider = "openai-compatible" | "anthropic" | "google" | "openai"

export interface WireModel {
  /** The `model` of an agent that asks it. */
  readonly config: { readonly provider: WireProvider; readonly name: string }
  /** The bodies of the requests so far, oldest first. */
  readonly requests: ReadonlyArray<Json>
  /** Done when it was asked for the first time. */
  readonly asked: Deferred.Deferred<void>
  /** Done when the asker hung up before an answer was through. */
  readonly hungUp: Deferred.Deferred<void>
  /** Lets a model that is held answer, from now on. */
  readonly letGo: Effect.Effect<void>
}

export interface WireOptions {
  readonly isHeld?: boolean
  /** Whose API it speaks; `openai-compatible` where it is absent. `openai` speaks the Responses API. */
  readonly provider?: WireProvider
  /** Why the server refuses a request; undefined where it takes it. */
  readonly refusal?: (body: Json) => string | undefined
}

interface Served extends WireModel {
  readonly answers: readonly [WireAnswer, ...ReadonlyArray<WireAnswer>]
  readonly requests: Array<Json>
  readonly gate: Deferred.Deferred<void>
  readonly refusal: (body: Json) => string | undefined
}

export class ModelsOnTheWire extends Context.Service<
  ModelsOnTheWire,
  {
    /** A project of one's own in the server that asks these models. */
    readonly newStory: Effect.Effect<Story>
    /** A model that nobody else asks. */
    readonly model: (
      answers: readonly [WireAnswer, ...ReadonlyArray<WireAnswer>],
      options?: WireOptions
    ) => Effect.Effect<WireModel>
  }
>()("@tropism/server/testing/ModelsOnTheWire") {
  static readonly layer = Layer.effect(
    ModelsOnTheWire,
    Effect.suspend(() => makeModels(false))
  )
  /** The same with every provider, each at this server's address. */
  static readonly ofEveryProvider = Layer.effect(
    ModelsOnTheWire,
    Effect.suspend(() => makeModels(true))
  )
}

const everyProvider = (url: string) => ({
  ANTHROPIC_API_KEY: "key",
  ANTHROPIC_BASE_URL: `${url}/v1`,
  GOOGLE_GENERATIVE_AI_API_KEY: "key",
  GOOGLE_GENERATIVE_AI_BASE_URL: `${url}/v1beta`,
  OPENAI_API_KEY: "key",
  OPENAI_BASE_URL: `${url}/v1`,
  TROPISM_OPENAI_API: "responses"
})

const makeModels = Effect.fnUntraced(function* (hasAllProviders: boolean) {
  const models = new Map<string, Served>()
  const answer = Effect.runPromiseWith(yield* Effect.context<never>())
  const server = createServer((request, response) => {
    const body: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => body.push(chunk))
    request.on("end", () => {
      const asked: Json = JSON.parse(Buffer.concat(body).toString("utf8"))
      const model = models.get(asked.model ?? /models\/([^:]+):/.exec(request.url ?? "")?.[1])
      if (!model) return void response.writeHead(404).end()
      const next = model.answers[model.requests.length] ?? model.answers.at(-1) ?? model.answers[0]
      model.requests.push(asked)
      Deferred.doneUnsafe(model.asked, Effect.void)
      response.on("close", () => {
        if (!response.writableFinished) Deferred.doneUnsafe(model.hungUp, Effect.void)
      })
      const error = model.refusal(asked)
      void answer(Deferred.await(model.gate)).then(() =>
        send(
          response,
          error === undefined ? next : { status: 400, error },
          `${asked.model}-${model.requests.length}`
        )
      )
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  const environment = ConfigProvider.fromUnknown({
    OPENAI_COMPATIBLE_BASE_URL: `http://127.0.0.1:${port}/v1`,
    ...(hasAllProviders ? everyProvider(`http://127.0.0.1:${port}`) : {})
  })
  const access = yield* freshDatabase
  const doors = yield* startServer(access).pipe(Effect.provide(ConfigProvider.layer(environment)))

  const model = Effect.fnUntraced(function* (
    answers: readonly [WireAnswer, ...ReadonlyArray<WireAnswer>],
    { isHeld = false, provider = "openai-compatible", refusal = () => undefined }: WireOptions = {}
  ) {
    const name = `model-${models.size + 1}`
    const gate = yield* Deferred.make<void>()
    const letGo = Effect.asVoid(Deferred.succeed(gate, undefined))
    if (!isHeld) yield* letGo
    const config = { provider, name }
    const served: Served = {
      config,
      answers,
      requests: [],
      asked: yield* Deferred.make<void>(),
      hungUp: yield* Deferred.make<void>(),
      gate,
      refusal,
      letGo
    }
    models.set(name, served)
    return served
  })

  return ModelsOnTheWire.of({ newStory: newProject(doors, access), model })
})

/** An answer as a stream of server-sent events. */
const send = (
  response: ServerResponse,
  { calls = [], error: refusal, finish, isEndless = false, raw, reasoning, say = "", status }: WireAnswer,
  id: string
): void => {
  if (response.destroyed) return
  if (status !== undefined) {
    const error = { message: refusal ?? `Refused with ${status}`, type: "server_error" }
    return void response
      .writeHead(status, { "content-type": "application/json" })
      .end(JSON.stringify({ error }))
  }
  if (raw !== undefined) {
    response.writeHead(200, { "content-type": "text/event-stream" })
    for (const value of raw)
      response.write(`${value.type ? `event: ${value.type}\n` : ""}data: ${JSON.stringify(value)}\n\n`)
    return void response.end()
  }
  const chunks = [
    ...(reasoning === undefined ? [] : [chatChunk({ role: "assistant", reasoning_content: reasoning })]),
    ...(say === "" ? [] : [chatChunk({ role: "assistant", content: say })]),
    ...calls.map((call, index) =>
      chatChunk({
        tool_calls: [
          {
            index,
            id: `call-${id}-${index}`,
            type: "function",
            function: {
              name: call.tool,
              arguments: typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments)
            }
          }
        ]
      })
    ),
    ...(isEndless ? [] : chatEnd(finish ?? (calls.length === 0 ? "stop" : "tool_calls")))
  ]
  response.writeHead(200, { "content-type": "text/event-stream" })
  for (const chunk of chunks)
    response.write(`data: ${typeof chunk === "string" ? chunk : JSON.stringify(chunk)}\n\n`)
  if (!isEndless) response.end()
}

/** The names of the tools that a request offers, in alphabetical order. */
export const toolsOf = (request: Json): ReadonlyArray<string> =>
  (request.tools ?? []).map((tool: Json) => tool.function.name).toSorted()

/** Who says what in a request, tool results left out. */
export const wordsOf = (request: Json): ReadonlyArray<readonly [string, string]> =>
  request.messages
    .filter((message: Json) => message.role !== "tool" && message.content)
    .map((message: Json) => [message.role, textOf(message.content)])

/** Messages as they are sent: neighbouring user messages are joined. */
export const joined = (
  words: ReadonlyArray<readonly [string, string]>
): ReadonlyArray<readonly [string, string]> =>
  words.reduce<ReadonlyArray<readonly [string, string]>>((before, [role, text]) => {
    const last = before.at(-1)
    return role === "user" && last?.[0] === "user"
      ? [...before.slice(0, -1), [role, `${last[1]}\n\n${text}`]]
      : [...before, [role, text]]
  }, [])

const textOf = (content: Json): string =>
  typeof content === "string" ? content : content.map((part: Json) => part.text).join("")
