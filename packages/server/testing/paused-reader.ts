/**
 * A reader of a project's lines that reads nothing until it is told to, and a graph that is too large to lie unread for it.
 */
import { connect } from "node:net"
import { Effect } from "effect"
import { importLines, jsonl } from "./import-words.ts"
import { ask } from "./owner-rows.ts"
import type { Json, Story } from "./platform.ts"

/** Of a large graph. */
export const documents = 60

/** More than sockets hold for a reader that does not read. */
export const largeGraph = (story: Story) =>
  importLines(
    story,
    jsonl(
      ...Array.from({ length: documents }, (_, number) => ({
        type: "Document",
        key: `document-${number}`,
        properties: { state: "old", text: "x".repeat(200_000) }
      }))
    )
  )

export interface PausedReader {
  /** Reads so many bytes, and then nothing until it is told to. */
  readonly begun: (bytes: number) => Effect.Effect<void>
  /** Reads all that is left, to its end. */
  readonly text: Effect.Effect<string>
  /** The same, a line at a time. */
  readonly rest: Effect.Effect<ReadonlyArray<Json>>
  readonly leave: Effect.Effect<void>
}

/** Asks for lines and reads nothing of them yet; what a client keeps unread for it would hide how slow it is. */
export const beginReading = (story: Story, path = "/export"): Effect.Effect<PausedReader> =>
  Effect.callback((resume) => {
    const { hostname, port } = new URL(story.url)
    // HTTP/1.0: the answer is the lines and nothing between them, until the connection is closed.
    const head = [
      `GET /api/projects/${story.projectId}${path} HTTP/1.0`,
      `Host: ${hostname}:${port}`,
      `Authorization: Bearer ${story.token}`
    ]
    const socket = connect(Number(port), hostname, () => socket.write(`${head.join("\r\n")}\r\n\r\n`))
    socket.pause()
    const pieces: Array<Buffer> = []
    const begun: PausedReader["begun"] = (bytes) =>
      Effect.callback((done) => {
        let left = bytes
        const take = (piece: Buffer): void => {
          pieces.push(piece)
          left -= piece.length
          if (left > 0) return
          socket.off("data", take)
          socket.pause()
          done(Effect.void)
        }
        socket.on("data", take)
        socket.resume()
      })
    const text: PausedReader["text"] = Effect.callback((done) => {
      socket.on("data", (piece: Buffer) => pieces.push(piece))
      socket.on("close", () => {
        const said = Buffer.concat(pieces).toString()
        done(Effect.succeed(said.slice(said.indexOf("\r\n\r\n") + 4)))
      })
      socket.resume()
    })
    const rest = Effect.map(text, (lines) =>
      lines
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
    )
    resume(Effect.succeed({ begun, text, rest, leave: Effect.sync(() => socket.destroy()) }))
  })

/** Transactions that read objects and are still open. */
export const openSnapshots = (story: Story) =>
  Effect.map(
    ask(
      story.access,
      `select count(distinct pid)::int from pg_locks
       where database = (select oid from pg_database where datname = current_database())
         and relation = 'kb.graph_objects'::regclass and mode = 'AccessShareLock'`
    ),
    ([row]) => row?.[0]
  )
