/**
 * Words for stories about answers that are being made while a server leaves.
 */
import { expect } from "@effect/vitest"
import { ConfigProvider, Effect, Scope } from "effect"
import type { ClusterAddress } from "../src/cluster/peers.ts"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { chatChunk, chatEnd, type FakeAnswer, type FakeModelServer, toEvent } from "./fake-model-server.ts"
import { type EventStream, type Heard, openStream } from "./event-stream.ts"
import { modelKey } from "./model-words.ts"
import { type Doors, eventually, type Json, startServer, type Story, storyKeys } from "./platform.ts"

export const piece = (text: string): string => toEvent(chatChunk({ content: text }))

/** An answer in three pieces, each when the story wants it. */
export const inPieces: FakeAnswer = {
  kind: "stream",
  chunks: [piece("One.")],
  ending: "hang",
  rest: [piece(" Two."), [piece(" Three."), ...chatEnd("stop").map(toEvent)].join("")]
}

/** What is answered to a message as it is made. */
export const streamOf = (story: Story, path: string, body: Json) =>
  openStream(story, `/api/projects/${story.projectId}${path}`, undefined, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body)
  })

/** What was told of an answer. */
export const wordsIn = (heard: ReadonlyArray<Heard>): string =>
  heard.flatMap(({ json, name }) => (name === "words" ? [json.text] : [])).join("")

/** Waits until nobody is let in any more. */
export const closedTo = ({ url }: Doors) =>
  eventually(
    Effect.promise(() =>
      fetch(`${url}/health`).then(
        () => false,
        () => true
      )
    ),
    (isClosed) => isClosed
  )

/** A server that asks its models there, until the scope ends; with an address one of a cluster. */
export const serverWith = (
  access: PostgresAccess,
  { url }: FakeModelServer,
  scope: Scope.Scope,
  cluster?: ClusterAddress
) =>
  Scope.provide(startServer(access, [], undefined, undefined, storyKeys, cluster), scope).pipe(
    Effect.provide(
      ConfigProvider.layer(
        ConfigProvider.fromEnv({
          env: { OPENAI_COMPATIBLE_BASE_URL: `${url}/v1`, OPENAI_COMPATIBLE_API_KEY: modelKey }
        })
      )
    )
  )

/** Lets an answer in three pieces go on to its end, and answers all that was told of it. */
export const restOf = Effect.fn("restOf")(function* (models: FakeModelServer, stream: EventStream) {
  yield* models.letGoOn
  yield* stream.until((heard) => wordsIn(heard) === "One. Two.")
  yield* models.letGoOn
  const heard = yield* stream.until((all) => all.at(-1)?.name === "done")
  expect(wordsIn(heard)).toBe("One. Two. Three.")
  return heard
})
