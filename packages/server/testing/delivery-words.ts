/**
 * The words in which stories deliver to a webhook: signed as a sender would sign, with nothing of the server's own code.
 */
import { createHash, createHmac } from "node:crypto"
import { Effect } from "effect"
import type { Answer, Doors, Json, Story } from "./platform.ts"
import { promptWithObject, scripted } from "./platform.ts"
import { watcher } from "./story-words.ts"

/** An agent that webhooks trigger, which says what it was given. */
export const listener = (overrides: Record<string, unknown> = {}) =>
  watcher({
    name: "listener",
    prompt: promptWithObject,
    triggerType: "webhook",
    reactionConfig: null,
    model: scripted([{ say: "Got {{ input.input | json }}." }]),
    ...overrides
  })

/** An agent with one webhook. */
export const listenerWithHook = Effect.fnUntraced(function* (
  story: Story,
  settings: Record<string, unknown> = {},
  overrides: Record<string, unknown> = {}
) {
  const agent = yield* story.post("/agents", listener(overrides))
  const hook = yield* story.post(`/agents/${agent.id}/webhooks`, settings)
  return { agent, hook }
})

export interface Signed {
  readonly id?: string
  /** Seconds since 1970. */
  readonly timestamp?: number | string
  /** The key; the signing secret's without one. */
  readonly secret?: string
  /** What is signed instead of what is sent. */
  readonly signedBody?: string
  /** The header instead of the right one. */
  readonly signature?: string
  readonly contentType?: string
}

const nowSeconds = () => Math.floor(Date.now() / 1_000)

const keyOf = (signingSecret: string) => Buffer.from(signingSecret.replace(/^whsec_/, ""), "base64")

/** The signature that Standard Webhooks asks for. */
export const sign = (key: Uint8Array, id: string, timestamp: number | string, body: string): string =>
  `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`

/** The key that follows from the token itself. */
export const keyOfToken = (token: string) => createHash("sha256").update(token).digest()

/** Delivers a body to a webhook, rightly signed unless it is said otherwise; no bearer token goes with it. */
export const deliver = (
  doors: Doors,
  hook: Json,
  body: string,
  {
    id = "msg-1",
    secret = hook.signingSecret,
    signature,
    signedBody = body,
    timestamp = nowSeconds(),
    contentType = "application/json"
  }: Signed = {}
): Effect.Effect<Answer> =>
  doors.send("POST", new URL(hook.url).pathname, body, {
    authorization: "",
    "content-type": contentType,
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signature ?? sign(keyOf(secret), id, timestamp, signedBody)
  })
