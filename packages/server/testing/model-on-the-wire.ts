/**
 * A model server beside the server of a story: it speaks OpenAI's chat completions and keeps what it was asked.
 *
 * Each model has a name of its own, so the stories of a file share one server.
 * A model gives its answers in order, the last one again and again; one that is
 * held answers when the story lets it.
 */
import { createServer, type ServerResponse } from "node:http"
import { ConfigProvider, Context, Deferred, Effect, Layer } from "effect"
import { chatChunk, chatEnd } from "../src/model/fake-model-server.ts"
import { freshDatabase } from "./fresh-database.ts"
import { type Json, newProject, startServer, type Story } from "./platform.ts"
import type { ScriptedCall } from "./story-words.ts"

/** What a model says once. */
export interface WireAnswer {
  readonly say?: string
  readonly calls?: ReadonlyArray<ScriptedCall>
  /** Refuses the request with this status instead, and with `error` where it is given. */
  readonly status?: number
  readonly error?: string
  /** Says it and then nothing more, without an end. */
  readonly isEndless?: boolean
}

export interface WireModel {
  /** The `model` of an agent that asks it. */
  readonly config: { readonly provider: "openai-compatible"; readonly name: string }
  /** The bodies of the requests so far, oldest first. */
  readonly requests: ReadonlyArray<Json>
  /** Done when it was asked for the first time. */
  readonly asked: Deferred.Deferred<void>
  /** Done when the asker hung up before an answer was through. */
  readonly hungUp: Deferred.Deferred<void>
  /** Lets a model that is held answer, from now on. */
  readonly letGo: Effect.Effect<void>
}

interface Served extends WireModel {
  readonly answers: readonly [WireAnswer, ...ReadonlyArray<WireAnswer>]
  readonly requests: Array<Json>
  readonly gate: Deferred.Deferred<void>
}

export class ModelsOnTheWire extends Context.Service<
  ModelsOnTheWire,
  {
    /** A project of one's own in the server that asks these models. */
    readonly newStory: Effect.Effect<Story>
    /** A model that nobody else asks. */
    readonly model: (
      answers: readonly [WireAnswer, ...ReadonlyArray<WireAnswer>],
      options?: { readonly isHeld?: boolean }
    ) => Effect.Effect<WireModel>
  }
>()("@tropism/server/testing/ModelsOnTheWire") {
  static readonly layer = Layer.effect(
    ModelsOnTheWire,
    Effect.gen(function* () {
      const models = new Map<string, Served>()
      const answer = Effect.runPromiseWith(yield* Effect.context<never>())
      const server = createServer((request, response) => {
        const body: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => body.push(chunk))
        request.on("end", () => {
          const asked: Json = JSON.parse(Buffer.concat(body).toString("utf8"))
          const model = models.get(asked.model)
          if (!model) return void response.writeHead(404).end()
          const next = model.answers[model.requests.length] ?? model.answers.at(-1) ?? model.answers[0]
          model.requests.push(asked)
          Deferred.doneUnsafe(model.asked, Effect.void)
          response.on("close", () => {
            if (!response.writableFinished) Deferred.doneUnsafe(model.hungUp, Effect.void)
          })
          void answer(Deferred.await(model.gate)).then(() =>
            send(response, next, `${asked.model}-${model.requests.length}`)
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
        OPENAI_COMPATIBLE_BASE_URL: `http://127.0.0.1:${port}/v1`
      })
      const access = yield* freshDatabase
      const doors = yield* startServer(access).pipe(Effect.provide(ConfigProvider.layer(environment)))

      const model = Effect.fnUntraced(function* (
        answers: readonly [WireAnswer, ...ReadonlyArray<WireAnswer>],
        { isHeld = false }: { readonly isHeld?: boolean } = {}
      ) {
        const name = `model-${models.size + 1}`
        const gate = yield* Deferred.make<void>()
        const letGo = Effect.asVoid(Deferred.succeed(gate, undefined))
        if (!isHeld) yield* letGo
        const config = { provider: "openai-compatible", name } as const
        const served: Served = {
          config,
          answers,
          requests: [],
          asked: yield* Deferred.make<void>(),
          hungUp: yield* Deferred.make<void>(),
          gate,
          letGo
        }
        models.set(name, served)
        return served
      })

      return ModelsOnTheWire.of({ newStory: newProject(doors, access), model })
    })
  )
}

/** An answer as a stream of server-sent events. */
const send = (
  response: ServerResponse,
  { calls = [], error: refusal, isEndless = false, say = "", status }: WireAnswer,
  id: string
): void => {
  if (response.destroyed) return
  if (status !== undefined) {
    const error = { message: refusal ?? `Refused with ${status}`, type: "server_error" }
    return void response
      .writeHead(status, { "content-type": "application/json" })
      .end(JSON.stringify({ error }))
  }
  const chunks = [
    ...(say === "" ? [] : [chatChunk({ role: "assistant", content: say })]),
    ...calls.map((call, index) =>
      chatChunk({
        tool_calls: [
          {
            index,
            id: `call-${id}-${index}`,
            type: "function",
            function: { name: call.tool, arguments: JSON.stringify(call.arguments) }
          }
        ]
      })
    ),
    ...(isEndless ? [] : chatEnd(calls.length === 0 ? "stop" : "tool_calls"))
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
