/**
 * The client for programs without Effect, against real servers: calls, pages, problems, feeds and a server that is killed.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { prepareMortal, startMortal } from "../../server/testing/mortal-servers.ts"
import { eventually, type Json, newProject, newStory, storyToken } from "../../server/testing/platform.ts"
import { makeTeller } from "../src/plain/chat-events.ts"
import { createClient } from "../src/plain/create-client.ts"
import { type Conflict, endpoints } from "../src/plain/contract.gen.ts"
import { isProblem, TropismUnreachable } from "../src/plain/problem.ts"

/** Takes so many elements and leaves. */
const take = async (count: number, elements: AsyncIterable<Json>): Promise<ReadonlyArray<Json>> => {
  const taken: Array<Json> = []
  for await (const element of elements) if (taken.push(element) >= count) break
  return taken
}

/** The first event that stands in the log. */
const firstKept = async (events: AsyncIterable<Json>): Promise<Json> => {
  for await (const event of events) if (event.type !== "TextDeltaEvent") return event
}

/** The class and the message of the fault with which no client is made. */
const faultOf = (options: Parameters<typeof createClient>[0]) => {
  try {
    createClient(options)
  } catch (fault) {
    return fault instanceof Error ? [fault.constructor, fault.message] : [fault]
  }
  return []
}

const newGate = () => Promise.withResolvers<void>()

/** A connection that ends behind the first that it brings. */
const cutShort = async (response: Response): Promise<Response> => {
  const reader = response.body?.getReader()
  const first = await reader?.read()
  await reader?.cancel()
  return new Response(first?.value, { headers: response.headers })
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

describe("The client for programs without Effect", () => {
  it.live("does what the contract says, tells problems, and misses nothing when a server is killed", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = { ...(yield* freshDatabase), embedded: false }
        const first = yield* startMortal(access)
        const second = yield* prepareMortal(access)
        const { projectId } = yield* newProject(first, access)
        // As behind a balancer: the address stays, and whichever server is there answers.
        let alive = first.url
        const keys: Array<string | null> = []
        const balanced = Object.assign(
          (input: string | URL | Request, init?: RequestInit) => {
            keys.push(new Headers(init?.headers).get("idempotency-key"))
            return fetch(String(input).replace("http://tropism.test", alive), init)
          },
          { preconnect: fetch.preconnect }
        )
        // On a busy machine the other server takes longer to start than most callers would wait.
        const client = createClient({
          url: "http://tropism.test/",
          token: storyToken,
          retries: 20,
          fetch: balanced
        })

        yield* Effect.promise(() => calls(client, projectId))
        yield* Effect.promise(() => talk(client))
        // What was written has its place in the feed a moment later.
        const before = Effect.promise<ReadonlyArray<Json>>(() => client.feed.events({ limit: 200 }).all())
        yield* eventually(before, ({ length }) => length === writtenByCalls)
        const position = writtenByCalls

        const feed = client.events({ after: position })
        const heard = take(20, feed)
        for (const number of upTo(10))
          yield* Effect.promise(() => client.objects.create({ type: "Late", properties: { number } }))
        yield* first.kill
        yield* first.died
        const writing = Effect.promise(async () => {
          for (const number of upTo(10))
            await client.objects.create({ type: "Late", properties: { number: number + 10 } })
        })
        const starting = Effect.map(second, ({ url }) => {
          alive = url
        })
        yield* Effect.all([writing, starting], { concurrency: 2 })
        const events = yield* Effect.promise(() => heard)
        expect(events.map((event) => event.snapshot.properties.number)).toEqual(upTo(20))
        expect(events.map((event) => event.position)).toEqual(upTo(20).map((number) => position + number))
        expect(feed.lastEventId).toBe(String(position + 20))
        const late = yield* Effect.promise<ReadonlyArray<Json>>(() =>
          client.objects.list({ type: "Late" }).all()
        )
        expect(late).toHaveLength(20)
        const keyed = keys.filter((key) => key !== null)
        expect(keyed.length).toBeGreaterThan(new Set(keyed).size)
      })
    )
  )

  it.live("misses nothing of a feed that is cut before its first event", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      const write = (key: string, count: number) =>
        Effect.andThen(
          story.post("/objects", { type: "Thing", key }),
          // What was written has its place in the feed a moment later.
          eventually(story.get("/events"), ({ items }) => items.length === count)
        )
      yield* write("before", 1)
      const [isCut, isWritten, isBack] = [newGate(), newGate(), newGate()]
      const places: Array<string | null | undefined> = []
      const breaking = Object.assign(
        async (input: string | URL | Request, init?: RequestInit) => {
          places.push(new Headers(init?.headers).get("last-event-id"))
          if (places.length === 1) return cutShort(await fetch(input, init)).finally(isCut.resolve)
          places.push(feed.lastEventId)
          await isWritten.promise
          return fetch(input, init).finally(isBack.resolve)
        },
        { preconnect: fetch.preconnect }
      )
      const { projectId: project, token, url } = story
      const feed = createClient({ url, token, project, fetch: breaking }).events()
      const heard = take(1, feed)
      yield* Effect.promise(() => isCut.promise)
      yield* write("meanwhile", 2)
      isWritten.resolve()
      yield* Effect.promise(() => isBack.promise)
      yield* write("afterwards", 3)
      const [event] = yield* Effect.promise(() => heard)
      expect(event.snapshot.key).toBe("meanwhile")
      expect(places).toEqual([null, "1", "1"])
      expect(feed.lastEventId).toBe("2")
    })
  )

  it.live(
    "sends a file once, whoever says that the server did not answer: it has no name to be known by",
    () =>
      Effect.gen(function* () {
        const story = yield* newStory
        const posts: Array<string | null> = []
        // A proxy that passes it on and loses the answer.
        const losing = Object.assign(
          async (input: string | URL | Request, init?: RequestInit) => {
            posts.push(new Headers(init?.headers).get("idempotency-key"))
            const text = await (await fetch(input, init)).text()
            return posts.length === 1 ? new Response("", { status: 502 }) : new Response(text)
          },
          { preconnect: fetch.preconnect }
        )
        const client = createClient({
          url: story.url,
          token: story.token,
          project: story.projectId,
          fetch: losing
        })
        const bytes = new TextEncoder().encode('{"type":"Sent","properties":{}}\n')
        for (const body of [bytes, new Blob([bytes])]) {
          posts.length = 0
          const lines = take(9, client.transfer.import(body, { query: { format: "jsonl" } }))
          expect(yield* Effect.promise(() => lines.catch(({ status }) => status))).toBe(502)
          expect(posts).toEqual([null])
        }
        posts.length = 0
        const restored = take(9, client.dumps.restoreDump(bytes))
        expect(yield* Effect.promise(() => restored.catch(({ status }) => status))).toBe(502)
        expect(posts).toEqual([null])
        expect((yield* story.get("/objects?type=Sent")).items).toHaveLength(2)
      })
  )

  it("is not made for what no request could ask: the fault is told at once, and the token is not", () => {
    for (const url of ["not a url", "", "127.0.0.1:4400", "ftp://127.0.0.1"])
      expect(faultOf({ url })).toEqual([TypeError, expect.stringContaining(JSON.stringify(url))])
    for (const token of ["secret\n", "secr\u00e9t", "secret\u0000"])
      expect(faultOf({ url: "http://127.0.0.1:9", token })).toEqual([
        TypeError,
        expect.not.stringMatching(/secr|127\.0\.0\.1/)
      ])
  })

  it("tells a server that is not there, and what a call needs", async () => {
    const client = createClient({ url: "http://127.0.0.1:9", project: "none", retries: 1 })
    await expect(client.tasks.get("1")).rejects.toBeInstanceOf(TropismUnreachable)
    await expect(client.tasks.get("")).rejects.toThrow(/tasks\.get.*taskId/)
    const signal = AbortSignal.abort(new Error("no longer wanted"))
    await expect(client.tasks.get("1", { signal })).rejects.toThrow("no longer wanted")
  })

  it("knows every call of the contract in its form", () => {
    const formOf = (name: string) => endpoints.find(({ call }) => call === name)?.form
    expect(endpoints.length).toBeGreaterThan(120)
    expect(["objects.list", "objects.get", "transfer.export", "metrics.scrape"].map(formOf)).toEqual([
      "page",
      "value",
      "lines",
      "text"
    ])
  })

  it("tells an answer once that was told from its beginning again", () => {
    const tell = makeTeller()
    const words = (text: string) => tell("words", { text })
    const begun = { type: "begun", conversationId: "c" }
    expect(tell("begun", { conversationId: "c" })).toEqual([begun])
    expect(words("One two")).toEqual([{ type: "words", text: "One two" }])
    expect(tell("toolCall", { callId: "1", status: "started" })).toHaveLength(1)
    expect(tell("begun", { conversationId: "c" })).toEqual([])
    expect(words("One ")).toEqual([])
    expect(tell("toolCall", { callId: "1", status: "started" })).toEqual([])
    expect(words("two three")).toEqual([{ type: "words", text: " three" }])
    expect(words(" four")).toEqual([{ type: "words", text: " four" }])
    tell("begun", { conversationId: "c" })
    expect(words("Anew")).toEqual([begun, { type: "words", text: "Anew" }])
  })
})

/** Events of the graph that those calls bring about: six objects, one change and one deletion. */
const writtenByCalls = 8

/** Calls of each form, in the only project there is. */
const calls = async (client: ReturnType<typeof createClient>, projectId: string) => {
  expect((await client.system.health()).status).toBe("ok")
  expect((await client.projects.get()).id).toBe(projectId)
  const made: Json = await client.objects.create({ type: "Thing", key: "one", properties: { number: 1 } })
  const patched: Json = await client.objects.update(made.id, { properties: { number: 2 } })
  expect(patched).toMatchObject({ id: made.id, version: 2, properties: { number: 2 } })
  for (const number of [2, 3, 4, 5]) await client.objects.create({ type: "Thing", properties: { number } })
  const things = client.objects.list({ type: "Thing", limit: 2 })
  expect((await things.all()).length).toBe(5)
  expect((await take(3, things)).length).toBe(3)
  const page = await things.page()
  const next = await things.page(page.nextCursor)
  expect([page.items.length, next.items.length]).toEqual([2, 2])
  const where = [{ property: "number", op: "eq", value: 5 }] as const
  expect(await client.objects.list({ where }).all()).toHaveLength(1)
  expect(await client.objects.delete(made.id)).toBeUndefined()
  const lines = await take(4, client.transfer.export({ types: "Thing" }))
  expect(lines.every((line) => line.type === "Thing")).toBe(true)
  const bytes = new TextEncoder().encode('{"type":"Sent","key":"a","properties":{}}\n')
  const brought = await take(99, client.transfer.import(bytes, { query: { format: "jsonl" } }))
  expect(brought.at(-1)).toMatchObject({ type: "finished", created: 1 })
  const attachment: Json = await client.attachments.attach(new TextEncoder().encode("Hello"), {
    query: { type: "text/plain", fileName: "hello.txt" }
  })
  const file = await client.attachments.download(attachment.digest)
  expect(new TextDecoder().decode(file)).toBe("Hello")
  const missing = await client.objects.get(made.id).catch((error: unknown) => error)
  expect([isProblem(missing, "not-found"), isProblem(missing, "conflict")]).toEqual([true, false])
  expect(isProblem(missing) && missing.requestId).toMatch(/^[0-9a-f-]{36}$/)
  const taken = client.objects.create({ type: "Sent", key: "a", properties: {} })
  const conflict = await taken.catch((error: unknown) => error)
  const told = isProblem(conflict, "conflict") ? conflict : undefined
  const problem: Conflict | undefined = told?.problem
  expect([told?.code, told?.status, told?.detail]).toEqual(["keyTaken", 409, problem?.detail])
  expect((await client.objects.get(problem?.existingId ?? "")).key).toBe("a")
  const other: Json = await client.projects.create({ name: "Other" })
  expect(await client.in(other.id).objects.list().all()).toEqual([])
}

/** An agent answers: by chat, in its context and in its run. */
const talk = async (client: ReturnType<typeof createClient>) => {
  const agent = await client.agents.create({
    name: "speaker",
    prompt: "Greet.",
    tools: [],
    triggerType: "manual",
    executionMode: "execute",
    model: { provider: "scripted", name: "speaker", script: { rules: [{ say: "Good morning." }] } }
  })
  const pieces: Array<Json> = []
  for await (const piece of client.chatEvents({ agentId: agent.id, message: "Hello" })) pieces.push(piece)
  expect(pieces[0]?.type).toBe("begun")
  const words = pieces.filter(({ type }) => type === "words").map(({ text }) => text)
  expect(words.join("")).toContain("Good morning.")
  const { answer } = pieces.at(-1)
  expect(answer.status).toBe("completed")
  const events: Array<Json> = []
  for await (const event of client.runEvents(answer.runId, { after: "start" })) events.push(event)
  const kept = events.filter(({ type }) => type !== "TextDeltaEvent").map(({ type }) => type)
  expect(kept.at(-1)).toBe("AgentTurnCompletedEvent")
  const heard = await take(
    kept.length,
    client.contextEvents(`chat-${answer.conversationId}`, { after: "start" })
  )
  expect(heard.map(({ type }) => type)).toEqual(kept)

  // A place that the log has not reached is waited for, and none is what begins behind it.
  const name = `chat-${answer.conversationId}`
  const beyond = firstKept(client.contextEvents(name, { after: kept.length + 1 }))
  await client.chat.send({ conversationId: answer.conversationId, message: "And now?" })
  expect((await beyond)?.id).toMatch(new RegExp(`:${kept.length + 2}$`))
  const nowhere = take(1, client.contextEvents(name, { after: "yesterday" }))
  const refused = await nowhere.catch((error: unknown) => error)
  expect(isProblem(refused, "invalid-input") && refused.detail).toContain("after")
}
