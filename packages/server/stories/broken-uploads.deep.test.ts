/**
 * Files whose sender goes away in the middle: the server goes on, whatever it was reading.
 *
 * The server is a process of its own, as it is with users: what ends a process
 * is seen here, and nowhere inside it.
 */
import { describe, expect, it } from "@effect/vitest"
import { connect, type Socket } from "node:net"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { startMortal } from "../testing/mortal-servers.ts"
import { type Doors, eventually, newProject } from "../testing/platform.ts"

/** Others are answered meanwhile: by then the server has begun to read. */
const answered = (doors: Doors) =>
  Effect.forEach([1, 2, 3, 4, 5], () => doors.send("GET", "/api/projects").pipe(Effect.ignoreCause), {
    discard: true
  })

interface BrokenUpload {
  readonly path: string
  readonly framing: string
  readonly body: string
  readonly leave: (socket: Socket) => void
}

/** Sends the beginning of a body, lets the server read it, and is gone. */
const breakOff = (doors: Doors, { body, framing, leave, path }: BrokenUpload) =>
  Effect.callback<Socket>((resume) => {
    const { host, hostname, port } = new URL(doors.url)
    const head = [
      `POST ${path} HTTP/1.1`,
      `host: ${host}`,
      `authorization: Bearer ${doors.token}`,
      "content-type: application/octet-stream",
      framing
    ]
    const part =
      framing.startsWith("transfer") && body !== "" ? `${body.length.toString(16)}\r\n${body}\r\n` : body
    const socket = connect(Number(port), hostname, () =>
      socket.write(`${head.join("\r\n")}\r\n\r\n${part}`, () => resume(Effect.succeed(socket)))
    )
    // A server that is gone refuses: the story sees it at its end.
    socket.on("error", () => resume(Effect.succeed(socket)))
    return Effect.sync(() => socket.destroy())
  }).pipe(Effect.tap(answered(doors)), Effect.map(leave))

const framings = ["content-length: 9999", "transfer-encoding: chunked"]

/** A connection is closed, or reset. */
const ways: ReadonlyArray<(socket: Socket) => void> = [
  (socket) => void socket.destroy(),
  (socket) => void socket.resetAndDestroy()
]

describe("Requirement: a file that breaks off breaks nothing else", () => {
  it.live(
    "the server answers others after every way in which an upload can end too early",
    () =>
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const server = yield* startMortal(access)
        const { projectId } = yield* newProject(server, access)
        const imports = ["jsonl", "csv", "package-lock"].map(
          (format) => `/api/projects/${projectId}/import?format=${format}`
        )
        const paths = [...imports, "/api/restore", `/api/projects/${projectId}/attachments`]
        const cases = paths.flatMap((path) =>
          framings.flatMap((framing) =>
            ["", "{"].flatMap((body) => ways.map((leave) => ({ path, framing, body, leave })))
          )
        )
        expect(cases).toHaveLength(40)
        yield* Effect.forEach(cases, (one) => breakOff(server, one), { concurrency: 8 })
        const health = yield* eventually(server.send("GET", "/ready"), ({ status }) => status === 200)
        expect(health.body.status).toBe("ok")
        const kept = yield* server.send("GET", `/api/projects/${projectId}/objects`)
        expect(kept.body).toEqual({ items: [], nextCursor: null })
      }).pipe(Effect.scoped),
    120_000
  )
})
