/**
 * A door that streams, heard as a browser's EventSource would hear it.
 *
 * What has come so far stands in arrays that grow; a story waits until they
 * satisfy it. The connection is cut when the scope ends, or by the story.
 */
import { Effect, Stream, type Scope } from "effect"
import { type Doors, eventually, type Json } from "./platform.ts"

/** One server-sent event. */
export interface Heard {
  /** What Last-Event-ID would name; undefined for an event that has no place in the log. */
  readonly id: string | undefined
  readonly name: string
  readonly json: Json
}

export interface EventStream {
  readonly status: number
  readonly headers: Headers
  readonly heard: ReadonlyArray<Heard>
  /** What a browser that reconnects would send by now; undefined while no id has come. */
  readonly lastEventId: () => string | undefined
  /** Comments, which a browser ignores and which keep a quiet connection open. */
  readonly comments: ReadonlyArray<string>
  /** Waits until what was heard satisfies. */
  readonly until: (satisfies: (heard: ReadonlyArray<Heard>) => boolean) => Effect.Effect<ReadonlyArray<Heard>>
  /** Waits until so many comments have come. */
  readonly commented: (count: number) => Effect.Effect<unknown>
  /** Waits until the server has closed the stream. */
  readonly ended: Effect.Effect<unknown>
  /** Breaks the connection, as a dead network does. */
  readonly cut: Effect.Effect<void>
}

/** Opens a stream; `lastEventId` is what a client that reconnects sends. */
export const openStream = Effect.fn("openStream")(function* (
  doors: Doors,
  path: string,
  lastEventId?: string,
  /** What is sent beside a credential: a stream may also be the answer to a message. */
  message: {
    readonly method?: string
    readonly headers?: Record<string, string>
    readonly body?: string
  } = {}
): Effect.fn.Return<EventStream, never, Scope.Scope> {
  const connection = yield* Effect.acquireRelease(
    Effect.sync(() => new AbortController()),
    (open) => Effect.sync(() => open.abort())
  )
  const response = yield* Effect.promise(() =>
    fetch(doors.url + path, {
      ...message,
      signal: connection.signal,
      headers: {
        authorization: `Bearer ${doors.token}`,
        accept: "text/event-stream",
        "x-request-id": "story",
        ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
        ...message.headers
      }
    })
  )
  const heard: Array<Heard> = []
  const comments: Array<string> = []
  const state = { isOver: false, rest: "", lastEventId: undefined as string | undefined }
  const take = (text: string): void => {
    const blocks = (state.rest + text).split("\n\n")
    state.rest = blocks.pop() ?? ""
    for (const block of blocks) {
      state.lastEventId = fieldsOf(block).get("id") ?? state.lastEventId
      if (block.startsWith(":")) comments.push(block)
      else if (block.includes("data: ")) heard.push(heardOf(block))
    }
  }
  yield* Stream.fromReadableStream({
    evaluate: () => response.body ?? new ReadableStream<Uint8Array>(),
    onError: (error) => error
  }).pipe(
    Stream.decodeText(),
    Stream.runForEach((text) => Effect.sync(() => take(text))),
    Effect.andThen(Effect.sync(() => void (state.isOver = true))),
    Effect.ignoreCause,
    Effect.forkScoped
  )
  return {
    status: response.status,
    headers: response.headers,
    heard,
    lastEventId: () => state.lastEventId,
    comments,
    until: (satisfies) =>
      eventually(
        Effect.sync(() => [...heard]),
        satisfies
      ),
    commented: (count) =>
      eventually(
        Effect.sync(() => comments.length),
        (seen) => seen >= count
      ),
    ended: eventually(
      Effect.sync(() => state.isOver),
      (isOver) => isOver
    ),
    cut: Effect.sync(() => connection.abort())
  }
})

/** The events of a stream's text that have come whole. */
export const heardIn = (text: string): ReadonlyArray<Heard> =>
  text
    .split("\n\n")
    .slice(0, -1)
    .filter((block) => block.includes("data: "))
    .map(heardOf)

const fieldsOf = (block: string): ReadonlyMap<string, string> =>
  new Map(
    block.split("\n").map((line): [string, string] => {
      const colon = line.indexOf(": ")
      return [line.slice(0, colon), line.slice(colon + 2)]
    })
  )

const heardOf = (block: string): Heard => {
  const fields = fieldsOf(block)
  return {
    id: fields.get("id"),
    name: fields.get("event") ?? "message",
    json: JSON.parse(fields.get("data") ?? "null")
  }
}
