/**
 * Files for an agent: sent or fetched, kept by digest, shown to the model and to no browser.
 *
 * The model server is a real one on a socket, so what a story says of a prompt is
 * what went over the wire. The web server of the fetched files is this machine's,
 * and a story that may reach it says so.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { OutsideNetwork, isPublicAddress } from "../src/agents/outside-network.ts"
import type { FakeModelServer } from "../testing/fake-model-server.ts"
import { addEvent, logOf, quietLog } from "../testing/context-words.ts"
import { says, wiredStory, wireModel } from "../testing/model-words.ts"
import type { Answer, Json, Story } from "../testing/platform.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import { asUser } from "../testing/token-words.ts"

const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3])

/** The messages of the first request, as they went over the wire. */
const promptOf = ({ requests: [first] }: FakeModelServer): Json => {
  const body: Json = first?.body
  return body?.messages
}

const attach = (story: Story, type: string, bytes: Uint8Array, fileName?: string): Effect.Effect<Answer> =>
  story.send(
    "POST",
    `/api/projects/${story.projectId}/attachments?type=${encodeURIComponent(type)}${fileName === undefined ? "" : `&fileName=${fileName}`}`,
    bytes,
    { "content-type": "application/octet-stream" }
  )

const addFile = (story: Story, body: Json) =>
  story.ask("POST", "/contexts/desk/events", { type: "FileAttachmentEvent", ...body })

/** A context of an agent whose model lies on the wire. */
const desk = Effect.gen(function* () {
  const wired = yield* wiredStory([says("Seen.")])
  const agent = yield* wired.story.post("/agents", {
    name: "clerk",
    prompt: "Answer.",
    triggerType: "manual",
    model: wireModel
  })
  yield* wired.story.post("/contexts", { name: "desk", agentId: agent.id })
  return wired
})

/** A web server that answers as it is told, for as long as the scope lasts. */
const website = (answer: (request: IncomingMessage, response: ServerResponse) => void) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly close: () => void }>((resume) => {
      const server = createServer(answer)
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, close: () => server.close() }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

/** Lets the server fetch from this machine, too. */
const reachingHere = Effect.provideService(OutsideNetwork, {
  ...OutsideNetwork.defaultValue(),
  mayReach: (address) => address === "127.0.0.1" || isPublicAddress(address)
})

describe("Event Types: FileAttachmentEvent", () => {
  it.live(
    "S004-R25 a file that was sent is an event with source and mimeType, and the model is shown its bytes",
    () =>
      Effect.gen(function* () {
        const { models, story } = yield* desk
        const sent = yield* attach(story, "image/png", png, "chart.png")
        expect(sent.status).toBe(201)
        expect(sent.body).toEqual({
          digest: expect.stringMatching(/^[0-9a-f]{64}$/),
          mimeType: "image/png",
          sizeBytes: png.length,
          untrusted: false,
          fileName: "chart.png"
        })
        const { digest } = sent.body
        expect((yield* addFile(story, { attachment: digest, fileName: "chart.png" })).status).toBe(204)
        // It triggers nothing: the model has not been asked.
        const [, event] = yield* logOf(story, "desk")
        expect(event).toMatchObject({
          type: "FileAttachmentEvent",
          id: "desk:2",
          source: { type: "upload" },
          mimeType: "image/png",
          fileName: "chart.png",
          digest,
          sizeBytes: png.length,
          triggersAgentTurn: false
        })
        expect(models.requests).toEqual([])
        yield* addEvent(story, "desk", "What do you see?")
        const log = yield* quietLog(story, "desk")
        expect(JSON.stringify(log)).not.toContain(Buffer.from(png).toString("base64"))
        const messages: Json = promptOf(models)
        expect(messages).toEqual([
          {
            role: "user",
            content: [
              {
                type: "image_url",
                image_url: { url: `data:image/png;base64,${Buffer.from(png).toString("base64")}` }
              },
              { type: "text", text: "What do you see?" }
            ]
          }
        ])
      }).pipe(Effect.scoped)
  )

  it.live("S004-R25 a text is shown as text, and triggers a turn where it says so", () =>
    Effect.gen(function* () {
      const { models, story } = yield* desk
      const { body } = yield* attach(story, "text/csv; charset=utf-8", new TextEncoder().encode("a,b\n1,2\n"))
      yield* addFile(story, { attachment: body.digest, fileName: "t.csv", triggersAgentTurn: true })
      yield* quietLog(story, "desk")
      expect(promptOf(models)).toEqual([{ role: "user", content: "[File t.csv]\na,b\n1,2\n" }])
    }).pipe(Effect.scoped)
  )

  it.live(
    "S004-R25 a file comes in its event as source and mimeType: its bytes as data, or its address",
    () =>
      Effect.gen(function* () {
        const { story } = yield* desk
        const site = yield* website((_, response) => {
          response.writeHead(200, { "content-type": "image/png" }).end(png)
        })
        const data = `data:image/png;base64,${Buffer.from(png).toString("base64")}`
        const mimeType = "image/png"
        const text = `data:text/plain;charset=utf-8;base64,${Buffer.from("Hello").toString("base64")}`
        for (const file of [
          { source: data, mimeType },
          { source: site.url, mimeType },
          { source: text, fileName: "hello.txt" }
        ])
          expect((yield* addFile(story, file)).status).toBe(204)
        const log = (yield* logOf(story, "desk")).filter(({ type }) => type === "FileAttachmentEvent")
        expect(log).toMatchObject([
          { source: { type: "upload" }, mimeType, sizeBytes: png.length },
          { source: { type: "url", url: site.url }, mimeType, digest: log[0].digest },
          { source: { type: "upload" }, mimeType: "text/plain", fileName: "hello.txt", sizeBytes: 5 }
        ])
        const kept = yield* story.send("GET", `/api/projects/${story.projectId}/attachments/${log[2].digest}`)
        expect(kept.status).toBe(200)
        const before = yield* countRows(story)
        const refused: ReadonlyArray<readonly [Json, string]> = [
          [{ source: data, mimeType: "image/gif" }, "/mimeType"],
          [{ source: site.url, mimeType: "image/gif" }, "/mimeType"],
          [{ source: data.replace("png", "gif") }, "/source"],
          [{ source: "data:text/html;base64,PGI+" }, "/source"],
          [{ source: "ftp://files.example/a.png" }, "/source"],
          [{ source: data, url: site.url }, "/url"],
          [{ mimeType }, "/attachment"]
        ]
        for (const [body, pointer] of refused) expectProblem(yield* addFile(story, body), 422, pointer)
        for (const bytes of ["@@@@", "!", "AA=A"]) {
          const answer = yield* addFile(story, { source: `data:text/plain;base64,${bytes}` })
          expectProblem(answer, 422, "/source")
          expect(answer.body.detail).toContain("base64")
        }
        expect(yield* countRows(story)).toEqual(before)
      }).pipe(reachingHere, Effect.scoped)
  )

  it.live("S004-R25 a source is fetched from the public network alone", () =>
    Effect.gen(function* () {
      const { story } = yield* desk
      for (const source of ["http://127.0.0.1:1/a.png", "https://10.0.0.1/a.png"])
        expectProblem(yield* addFile(story, { source }), 422, "/source")
    }).pipe(Effect.scoped)
  )

  it.live("S004-R25 a file is fetched before its event is kept", () =>
    Effect.gen(function* () {
      const { story } = yield* desk
      const site = yield* website((request, response) => {
        if (request.url === "/moved") return void response.writeHead(302, { location: "/file.png" }).end()
        response.writeHead(200, { "content-type": "image/png" }).end(png)
      })
      const url = `${site.url}/moved`
      expect((yield* addFile(story, { url })).status).toBe(204)
      const [, event] = yield* logOf(story, "desk")
      expect(event).toMatchObject({
        source: { type: "url", url },
        mimeType: "image/png",
        sizeBytes: png.length
      })
      const file = yield* story.send("GET", `/api/projects/${story.projectId}/attachments/${event.digest}`)
      expect(file.status).toBe(200)
    }).pipe(reachingHere, Effect.scoped)
  )

  it.live("a file that somebody doubts stays so when it is fetched without a word", () =>
    Effect.gen(function* () {
      const { story } = yield* desk
      const site = yield* website((_, response) => {
        response.writeHead(200, { "content-type": "image/png" }).end(png)
      })
      const doubts = [true, undefined, false, undefined]
      for (const untrusted of doubts)
        expect(
          (yield* addFile(story, { url: site.url, ...(untrusted === undefined ? {} : { untrusted }) })).status
        ).toBe(204)
      const log = yield* logOf(story, "desk")
      expect(log.slice(1).map((event) => event.untrusted ?? false)).toEqual([true, true, false, false])
    }).pipe(reachingHere, Effect.scoped)
  )

  it.live("a file is handed out to be kept and never shown in a page, and only in its own project", () =>
    Effect.gen(function* () {
      const { story } = yield* desk
      const { body } = yield* attach(story, "image/png", png)
      const path = `/api/projects/${story.projectId}/attachments/${body.digest}`
      const { headers } = yield* story.send("GET", path)
      expect({
        type: headers.get("content-type"),
        disposition: headers.get("content-disposition"),
        sniffing: headers.get("x-content-type-options"),
        policy: headers.get("content-security-policy")
      }).toEqual({
        type: "application/octet-stream",
        disposition: `attachment; filename="${body.digest}"`,
        sniffing: "nosniff",
        policy: "default-src 'none'; sandbox"
      })
      const other = yield* story.send("POST", "/api/projects", { name: "Another" })
      const foreign = yield* story.send("GET", `/api/projects/${other.body.id}/attachments/${body.digest}`)
      expect(foreign.status).toBe(404)
      const unsigned = yield* Effect.promise(() => fetch(story.url + path))
      expect(unsigned.status).toBe(401)
    }).pipe(Effect.scoped)
  )

  it.live(
    "a browser that keeps a file asks at each reading, and is told of it as long as it may read it",
    () =>
      Effect.gen(function* () {
        const { story } = yield* desk
        const sender = yield* asUser(story, "editor", [story.projectId], "ada")
        const { body } = yield* attach(sender, "image/png", png)
        const path = `/api/projects/${story.projectId}/attachments/${body.digest}`
        const read = (reader: Story, tag?: string) =>
          Effect.map(
            reader.send("GET", path, undefined, tag === undefined ? {} : { "if-none-match": tag }),
            ({ headers, status }) => [status, headers.get("cache-control"), headers.get("etag")]
          )
        const tag = `"${body.digest}"`
        expect(yield* read(sender)).toEqual([200, "private, no-cache", tag])
        expect(yield* read(sender, tag)).toEqual([304, "private, no-cache", tag])
        expect(yield* read(sender, '"another"')).toEqual([200, "private, no-cache", tag])
        const stranger = yield* asUser(story, "editor", [story.projectId], "bob")
        expect(yield* read(stranger, tag)).toEqual([404, "no-store", null])
        yield* story.delete("/members/ada")
        const [status] = yield* read(sender, tag)
        expect(status).toBe(401)
      }).pipe(Effect.scoped)
  )

  it.live("a file is sent with its own media type as the header, and needs no other word", () =>
    Effect.gen(function* () {
      const { story } = yield* desk
      const send = (header: string, bytes: Uint8Array, query = "") =>
        story.send("POST", `/api/projects/${story.projectId}/attachments${query}`, bytes, {
          "content-type": header
        })
      const text = (value: string) => new TextEncoder().encode(value)
      const sent = [
        yield* send("image/png", png, "?fileName=chart.png"),
        yield* send("text/plain; charset=utf-8", text("Words.")),
        yield* send("Application/PDF", text("%PDF-1.7 and more")),
        yield* send("application/json", text('{"a": 1}')),
        yield* send("text/csv", text("a,b"), "?type=text/csv")
      ]
      expect(sent.map(({ body, status }) => [status, body.mimeType, body.fileName])).toEqual([
        [201, "image/png", "chart.png"],
        [201, "text/plain", null],
        [201, "application/pdf", null],
        [201, "application/json", null],
        [201, "text/csv", null]
      ])
      // The bytes decide still, and two words for one file must agree.
      expectProblem(yield* send("image/png", text("no picture")), 422, "type")
      expectProblem(yield* send("image/png", png, "?type=image/gif"), 422, "type")
      expectProblem(yield* send("application/octet-stream", png), 422, "type")
      const form = yield* send("application/x-www-form-urlencoded", png)
      expectProblem(form, 400)
      expect(form.body.detail).toContain("content-type: image/png")
    }).pipe(Effect.scoped)
  )

  it.live("what is no such file is refused, and nothing is kept", () =>
    Effect.gen(function* () {
      const { story } = yield* desk
      const text = (value: string) => new TextEncoder().encode(value)
      expectProblem(yield* attach(story, "text/html", text("<b>")), 422, "type")
      expectProblem(yield* attach(story, "image/png", text("no picture")), 422, "type")
      expectProblem(yield* attach(story, "image/png", new Uint8Array()), 422, "type")
      expectProblem(yield* attach(story, "text/plain", new Uint8Array([0xff, 0xfe])), 422, "type")
      expectProblem(yield* attach(story, "text/plain", text("a\u0000b")), 422, "type")
      expectProblem(yield* attach(story, "image/png", png, "a%2Fb.png"), 422, "fileName")
      expectProblem(yield* attach(story, "application/pdf", new Uint8Array(10_485_761)), 413)
      const digest = "0".repeat(64)
      expectProblem(yield* addFile(story, { attachment: digest }), 422, "/attachment")
      expectProblem(yield* addFile(story, {}), 422, "/attachment")
      expectProblem(yield* addFile(story, { attachment: digest, url: "https://example.com/" }), 422, "/url")
      expect(yield* logOf(story, "desk")).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.live("an address inside is not fetched, however it is written or reached", () =>
    Effect.gen(function* () {
      const { story } = yield* desk
      const asked: Array<string> = []
      const site = yield* website((request, response) => {
        asked.push(request.url ?? "")
        response.writeHead(200, { "content-type": "image/png" }).end(png)
      })
      const { port } = new URL(site.url)
      const addresses = [
        site.url,
        `http://localhost:${port}/`,
        `http://127.1:${port}/`,
        `http://0x7f000001:${port}/`,
        `http://[::ffff:127.0.0.1]:${port}/`,
        `http://[::1]:${port}/`,
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "file:///etc/passwd",
        "ftp://example.com/a.png",
        "http://user:secret@example.com/a.png",
        "not an address"
      ]
      for (const url of addresses) expectProblem(yield* addFile(story, { url }), 422, "/url")
      expect(asked).toEqual([])
      expect(yield* logOf(story, "desk")).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.live("a name that leads outside when it is judged and inside when it is called reaches nothing", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const site = yield* website((request, response) => {
        asked.push(request.url ?? "")
        response.writeHead(302, { location: `http://inside.test:${new URL(site.url).port}/secret` }).end()
      })
      let looked = 0
      const { story } = yield* Effect.provideService(desk, OutsideNetwork, {
        // The first name is this machine's and stands for the world; the second leads to an address that is closed.
        mayReach: (address) => address === "127.0.0.1",
        lookup: (name, options, callback) => {
          looked += 1
          const address = name === "outside.test" ? "127.0.0.1" : "127.0.0.2"
          return options.all ? callback(null, [{ address, family: 4 }]) : callback(null, address, 4)
        }
      })
      const answer = yield* addFile(story, { url: `http://outside.test:${new URL(site.url).port}/a.png` })
      expectProblem(answer, 422, "/url")
      expect(answer.body.detail).toContain("inside.test")
      expect([asked, looked]).toEqual([["/a.png"], 2])
    }).pipe(Effect.scoped)
  )

  it.live("a website that is wrong, endless or silent breaks nothing but its own request", () =>
    Effect.gen(function* () {
      const { story } = yield* desk
      const site = yield* website((request, response) => {
        switch (request.url) {
          case "/missing":
            return void response.writeHead(404).end()
          case "/html":
            return void response.writeHead(200, { "content-type": "text/html" }).end("<b>")
          case "/liar":
            return void response.writeHead(200, { "content-type": "image/png" }).end("no picture")
          case "/loop":
            return void response.writeHead(302, { location: "/loop" }).end()
          case "/endless": {
            response.writeHead(200, { "content-type": "text/plain" })
            const chunk = "x".repeat(1_048_576)
            for (let n = 0; n < 12; n++) response.write(chunk)
            return undefined
          }
          default:
            return void response.destroy()
        }
      })
      for (const path of ["/missing", "/html", "/liar", "/loop", "/endless", "/broken"])
        expectProblem(yield* addFile(story, { url: site.url + path }), 422, "/url")
      expect(yield* logOf(story, "desk")).toEqual([])
    }).pipe(reachingHere, Effect.scoped)
  )
})
