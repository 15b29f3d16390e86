/**
 * A project on a server whose models are asked over the wire.
 *
 * The provider is a server on this machine that speaks OpenAI's chat completions
 * and answers as the story says; everything between it and the agent is real.
 */
import { ConfigProvider, Effect, type Scope } from "effect"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { chatChunk, chatEnd, type FakeAnswer, serveAnswers, toEvent } from "./fake-model-server.ts"
import { newProject, startServer } from "./platform.ts"
import { patientDatabase } from "./shared-server.ts"

/** Says a text and then nothing more, without an end. */
export const hanging = (text: string): FakeAnswer => ({
  kind: "stream",
  chunks: [toEvent(chatChunk({ content: text }))],
  ending: "hang"
})

/** Says a text to its end. */
export const answering = (text: string): FakeAnswer => ({
  kind: "stream",
  chunks: [chatChunk({ content: text }), ...chatEnd("stop")].map(toEvent),
  ending: "end"
})

/** Starts a provider with these answers, a server that knows it, and an agent that asks it. */
export const newProviderStory = Effect.fn("newProviderStory")(function* (
  answers: readonly [FakeAnswer, ...ReadonlyArray<FakeAnswer>],
  overrides: Record<string, unknown> = {},
  /** How the server reaches its database. */
  reach: (access: PostgresAccess) => Effect.Effect<PostgresAccess, never, Scope.Scope> = Effect.succeed
) {
  const provider = yield* serveAnswers(...answers)
  // A database that is not the program's own may have other programs on it.
  const access = { ...(yield* patientDatabase), embedded: false }
  const environment = ConfigProvider.layer(
    ConfigProvider.fromEnv({ env: { OPENAI_COMPATIBLE_BASE_URL: `${provider.url}/v1` } })
  )
  const start = Effect.provide(Effect.flatMap(reach(access), startServer), environment)
  const story = yield* newProject(yield* start, access)
  const agent = yield* story.post("/agents", {
    name: "speaker",
    prompt: "Speak.",
    triggerType: "manual",
    tools: ["graph.*"],
    model: { provider: "openai-compatible", name: "m" },
    ...overrides
  })
  /** Another server on the same database, with the same provider. */
  return { story, agent, provider, another: start }
})
