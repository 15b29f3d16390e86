/**
 * A sender that sends a file piece by piece and reads the answer meanwhile.
 *
 * It can go away in the middle, as connections do. What it was told is kept.
 */
import { Effect } from "effect"
import { linesOf } from "./import-words.ts"
import { eventually, type Json, type Story } from "./platform.ts"

export interface Sender {
  readonly send: (text: string) => Effect.Effect<void>
  /** Says that the file is over. */
  readonly end: Effect.Effect<void>
  /** Breaks the connection off. */
  readonly leave: Effect.Effect<void>
  /** What it was told so far, once that satisfies. */
  readonly toldWhen: (satisfies: (told: ReadonlyArray<Json>) => boolean) => Effect.Effect<ReadonlyArray<Json>>
}

/** Begins to send a file. */
export const beginSending = (story: Story, query: string): Effect.Effect<Sender> =>
  Effect.sync(() => {
    const connection = new AbortController()
    const encoder = new TextEncoder()
    let text = ""
    let body: ReadableStreamDefaultController<Uint8Array> | undefined
    const stream = new ReadableStream<Uint8Array>({ start: (controller) => void (body = controller) })
    const request: RequestInit & { readonly duplex: "half" } = {
      method: "POST",
      body: stream,
      duplex: "half",
      headers: { authorization: `Bearer ${story.token}`, "content-type": "application/octet-stream" },
      signal: connection.signal
    }
    const keep = new WritableStream<Uint8Array>({
      write: (bytes) => void (text += new TextDecoder().decode(bytes))
    })
    fetch(`${story.url}/api/projects/${story.projectId}/import${query}`, request)
      .then((response) => response.body?.pipeTo(keep))
      .catch(() => undefined)
    const told = Effect.sync(() => {
      const whole = text.slice(0, text.lastIndexOf("\n") + 1)
      return whole === "" ? [] : linesOf({ body: whole })
    })
    return {
      send: (piece) => Effect.sync(() => body?.enqueue(encoder.encode(piece))),
      end: Effect.sync(() => body?.close()),
      leave: Effect.sync(() => connection.abort()),
      toldWhen: (satisfies) => eventually(told, satisfies)
    }
  })

/** Whether so many lines were told to be committed. */
export const hasCommitted =
  (lines: number) =>
  (told: ReadonlyArray<Json>): boolean =>
    told.some((line) => line.type === "progress" && line.lines >= lines)
