/**
 * Bodies that are larger than a door takes: refused as soon as that is known, however they are sent. And bodies that stop coming.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { connect } from "node:net"
import { httpLimits, transferLimits } from "../src/limits.ts"
import { importLock } from "../testing/import-words.ts"
import type { Story } from "../testing/platform.ts"
import { rawAnswer } from "../testing/raw-request.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { before } from "../testing/shop-lockfiles.ts"

layer(SharedServer.layer)((it) => {
  // Its clock stands still: however slowly the body comes, it is not taken for one that comes no more.
  describe("A body of 10 MiB from a client that sends all before it reads", () => {
    it.effect("is refused in words each time, and not by a broken connection", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const said = yield* Effect.forEach(Array.from({ length: 20 }), () => wholeThenAnswer(story))
        expect(said).toEqual(said.map(() => "HTTP/1.1 413 Payload Too Large"))
      })
    )
  })

  describe("A body that stops coming", () => {
    const doors: ReadonlyArray<readonly [string, (story: Story) => string]> = [
      ["objects", ({ projectId }) => `/api/projects/${projectId}/objects`],
      ["MCP", ({ projectId }) => `/api/projects/${projectId}/mcp`],
      ["completions", ({ projectId }) => `/api/projects/${projectId}/v1/chat/completions`],
      ["a webhook", () => `/api/hooks/${crypto.randomUUID()}`]
    ]
    it.effect.each(doors)("%s: is refused when its time is up, and the connection ends", ([, pathOf]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const head = [`POST ${pathOf(story)} HTTP/1.1`, "content-type: application/json", ...signed]
        const text = yield* refusedInTime(
          httpLimits.bodyTimeoutMs,
          rawAnswer(story, [...head, "content-length: 20"], '{"type": "Th')
        )
        expect(text).toMatch(/\b60\b/)
      })
    )

    it.effect("a lockfile: is refused when its turn is up, and the next one has it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const head = [
          `POST /api/projects/${story.projectId}/import?format=package-lock HTTP/1.1`,
          "content-type: application/octet-stream",
          `content-length: ${before.length}`
        ]
        const text = yield* refusedInTime(
          transferLimits.lockfileTimeoutMs,
          rawAnswer(story, head, before.slice(0, -1))
        )
        expect(text).toMatch(/\b300\b/)
        expect(yield* importLock(story, before)).toMatchObject({ type: "finished", created: 5 })
      })
    )
  })
})

/** What was said to whoever does not send all, when the time for it is up. */
const refusedInTime = Effect.fnUntraced(function* (timeoutMs: number, sending: Effect.Effect<string>) {
  const answer = yield* Effect.forkScoped(sending)
  const said = yield* asTimePasses(
    timeoutMs / 4,
    Effect.sync(() => answer.pollUnsafe()),
    (exit) => exit !== undefined
  )
  const text = yield* said ?? Effect.die("Nothing was said")
  expect(text.split("\r\n")[0]).toBe("HTTP/1.1 400 Bad Request")
  expect(text).toMatch(/^connection: close\r$/im)
  return text
})

/** Sends a large body to its end, then reads: what came back, or how the connection broke. */
const wholeThenAnswer = ({ projectId, token, url }: Story): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const { host, hostname, port } = new URL(url)
    const body = Buffer.alloc(10_485_760, "9")
    const head = [`POST /api/projects/${projectId}/objects HTTP/1.1`, `host: ${host}`]
    const headers = [`authorization: Bearer ${token}`, "content-type: application/json"]
    const socket = connect(Number(port), hostname, () => {
      socket.pause()
      socket.write([...head, ...headers, `content-length: ${body.length}`, "", ""].join("\r\n"))
      socket.write(body, (error) =>
        error ? resume(Effect.succeed(`broken: ${error.message}`)) : socket.resume()
      )
    })
    let said = ""
    socket.on("data", (part) => (said += part.toString("latin1")))
    socket.on("error", (error) => resume(Effect.succeed(`broken: ${error.message}`)))
    socket.on("close", () => resume(Effect.succeed(said.split("\r\n")[0] ?? "")))
    return Effect.sync(() => socket.destroy())
  })

/** A webhook reads nothing of whoever says that it signed nothing. */
const signed = ["webhook-id: one", "webhook-timestamp: 1", "webhook-signature: v1,none"]

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A body that is larger than a door takes", () => {
    const small = 1_048_576
    const large = 16_777_216
    const doors: ReadonlyArray<readonly [string, (story: Story) => string, number]> = [
      ["MCP", () => "/mcp", small],
      ["a project's MCP", ({ projectId }) => `/api/projects/${projectId}/mcp`, small],
      ["objects", ({ projectId }) => `/api/projects/${projectId}/objects`, small],
      ["completions", ({ projectId }) => `/api/projects/${projectId}/v1/chat/completions`, large]
    ]
    const bodies: ReadonlyArray<readonly [string, (size: number) => readonly [string, string]]> = [
      ["says its length and does not come", (size) => [`content-length: ${size}`, ""]],
      ["says its length and comes", (size) => [`content-length: ${size}`, "9".repeat(size)]],
      ["says its length and comes in part", (size) => [`content-length: ${size}`, "9".repeat(size / 2)]],
      [
        "comes in chunks without an end",
        (size) => ["transfer-encoding: chunked", `${size.toString(16)}\r\n${"9".repeat(size)}\r\n`]
      ],
      [
        "comes in a chunk that breaks off",
        (size) => ["transfer-encoding: chunked", `fffffff\r\n${"9".repeat(size)}`]
      ]
    ]
    it.effect.each(doors)("%s: is refused at once, and the connection ends", ([, pathOf, maxBytes]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        for (const [what, bodyOf] of bodies) {
          const [header, rest] = bodyOf(maxBytes + 2)
          const said = yield* rawAnswer(
            story,
            [`POST ${pathOf(story)} HTTP/1.1`, "content-type: application/json", header],
            rest
          )
          expect([what, said.split("\r\n")[0]]).toEqual([what, "HTTP/1.1 413 Payload Too Large"])
          expect([what, /^connection: close\r$/im.test(said)]).toEqual([what, true])
          expect(said).toContain(String(maxBytes))
        }
      })
    )
  })
})
