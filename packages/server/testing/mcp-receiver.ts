/**
 * An address to which events are delivered: it keeps what comes and answers as it is told, over real HTTP.
 */
import { createHmac } from "node:crypto"
import { Effect, type Scope } from "effect"
import { rpc } from "./mcp-extension-words.ts"
import { eventually, type Json, type Story } from "./platform.ts"

/** One request that came. */
export interface Delivered {
  readonly headers: Record<string, string>
  readonly text: string
  readonly body: Json
}

export interface Receiver {
  readonly url: string
  /** Everything that came so far, challenges and all. */
  readonly all: ReadonlyArray<Delivered>
  /** Only the events, whatever was answered. */
  readonly events: () => ReadonlyArray<Delivered>
  /** Answers events so from now on. */
  readonly answerWith: (status: number) => Effect.Effect<void>
  /** Answers no event that comes from now on. */
  readonly hold: Effect.Effect<void>
  /** Answers those that are held, and holds the next ones. */
  readonly letGo: Effect.Effect<void>
  /** Waits until so many events have come. */
  readonly until: (count: number) => Effect.Effect<ReadonlyArray<Delivered>>
}

/** Opens an address, until the scope ends; one that is shy does not echo challenges. */
export const receiver = ({ isShy = false } = {}): Effect.Effect<Receiver, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const all: Array<Delivered> = []
        const state = { status: 204, isHolding: false }
        const held: Array<() => void> = []
        const server = Bun.serve({
          port: 0,
          hostname: "127.0.0.1",
          idleTimeout: 0,
          fetch: (request) =>
            request.text().then((text) => {
              const body = JSON.parse(text)
              all.push({ headers: Object.fromEntries(request.headers), text, body })
              if (body.type === "verification")
                return Response.json(isShy ? { thanks: true } : { challenge: body.challenge })
              const answer = () => new Response(null, { status: state.status })
              return state.isHolding
                ? new Promise<Response>((resolve) => void held.push(() => resolve(answer())))
                : answer()
            })
        })
        return { all, held, server, state }
      }),
      ({ server }) => Effect.promise(() => server.stop(true))
    ),
    ({ all, held, server, state }): Receiver => {
      const events = () => all.filter(({ body }) => body.type === undefined)
      return {
        url: `http://127.0.0.1:${server.port}/hook`,
        all,
        events,
        answerWith: (status) => Effect.sync(() => void (state.status = status)),
        hold: Effect.sync(() => void (state.isHolding = true)),
        letGo: Effect.sync(() => held.splice(0).forEach((answer) => answer())),
        until: (count) => eventually(Effect.sync(events), (seen) => seen.length >= count)
      }
    }
  )

export const secretOf = (letter: string): string => `whsec_${Buffer.alloc(32, letter).toString("base64")}`

/** Whether a request was signed with a secret, as Standard Webhooks says. */
export const isSignedWith = ({ headers, text }: Delivered, secret: string): boolean =>
  (headers["webhook-signature"] ?? "").split(" ").includes(
    `v1,${createHmac("sha256", Buffer.from(secret.slice(6), "base64"))
      .update(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${text}`)
      .digest("base64")}`
  )

/** Subscribes to an event at an address, and answers the whole answer. */
export const subscribing = (story: Story, url: string, more: Json = {}): Effect.Effect<Json> =>
  rpc(story, "events/subscribe", {
    name: "object.created",
    ...more,
    delivery: { mode: "webhook", url, secret: secretOf("a"), ...more.delivery }
  })
