/**
 * The doors at which foreign MCP servers are added, changed and removed, and what they refuse.
 */
import { describe, expect, layer } from "@effect/vitest"
import { ConfigProvider, Effect, Fiber, Layer } from "effect"
import { outcomesOf } from "../testing/mcp-runs.ts"
import { addServer, httpServer, newDiary, program } from "../testing/mcp-words.ts"
import { ask, holding } from "../testing/owner-rows.ts"
import { eventually, type Json } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { asUser } from "../testing/token-words.ts"
import { naming } from "../testing/naming.ts"

const secret = "s3cret-and-long-enough"

/** The operator's environment. */
const environment = (values: Record<string, string>) =>
  ConfigProvider.layer(ConfigProvider.fromEnv({ env: { PATH: process.env["PATH"] ?? "", ...values } }))

const theirs = environment({ TROPISM_SECRET_SHOP: `${secret}\n`, DATABASE_PASSWORD: "the-database" })

layer(Layer.provide(SharedServer.own, theirs), { excludeTestServices: true })((it) => {
  describe("An MCP server", () => {
    it.effect("is added, listed, changed and removed, and its tools are told as it lists them", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        const made = yield* story.ask("POST", "/mcp-servers", {
          name: "shop",
          transport: program(diary),
          allowedTools: ["lookup"]
        })
        expect(made.status).toBe(201)
        expect(made.body).toMatchObject({
          name: "shop",
          enabled: true,
          callTimeoutMs: 30_000,
          idempotentTools: [],
          lastError: null,
          pinnedAt: expect.any(String),
          createdBy: "admin"
        })
        const lookup = made.body.tools.find((tool: Json) => tool.name === "lookup")
        expect(lookup).toMatchObject({
          offeredName: "shop__lookup",
          description: "Looks a word up.",
          isReadOnly: true,
          isAllowed: true,
          changedAt: null,
          hash: expect.stringMatching(/^[0-9a-f]{64}$/)
        })
        expect(made.body.tools.filter((tool: Json) => tool.isAllowed)).toHaveLength(1)
        expect((yield* story.get("/mcp-servers")).items).toEqual([made.body])
        const path = `/mcp-servers/${made.body.id}`
        const changed = yield* story.patch(path, { allowedTools: ["lookup", "put"], callTimeoutMs: null })
        expect(changed.tools.filter((tool: Json) => tool.isAllowed)).toHaveLength(2)
        expect(yield* story.get(path)).toEqual(changed)
        // Nobody was asked again: what is listed was known.
        expect(yield* diary.started).toHaveLength(1)
        expect((yield* story.delete(path)).status).toBe(204)
        expectProblem(yield* story.ask("GET", path), 404)
        expectProblem(yield* story.ask("DELETE", path), 404)
        expect((yield* story.get("/mcp-servers")).items).toEqual([])
      })
    )

    it.effect(
      "that cannot be reached is kept with the reason, offers nothing, and is looked at again on request",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const missing = yield* addServer(story, { type: "stdio", command: "/nowhere/at-all" })
          expect(missing).toMatchObject({
            tools: [],
            pinnedAt: null,
            lastError: expect.stringMatching(/ENOENT|no such file/i)
          })
          const diary = yield* newDiary
          const changed = yield* story.patch(`/mcp-servers/${missing.id}`, { transport: program(diary) })
          expect(changed.lastError).toBe(null)
          expect(changed.tools).not.toEqual([])
          const gone = yield* story.patch(`/mcp-servers/${missing.id}`, {
            transport: { type: "http", url: "http://127.0.0.1:9/mcp" }
          })
          expect(gone).toMatchObject({ tools: [], lastError: expect.stringMatching(/^.{5,}$/) })
        })
    )

    it.effect("of which nothing is known is looked at when it is enabled, and one that is known is not", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        const off = yield* addServer(story, program(diary), { enabled: false })
        expect(off).toMatchObject({ tools: [], pinnedAt: null, lastError: null })
        const path = `/mcp-servers/${off.id}`
        const namesOf = ({ tools }: Json) => tools.map(({ offeredName }: Json) => offeredName)
        const enabled = yield* story.patch(path, { enabled: true })
        expect(enabled).toMatchObject({ lastError: null, pinnedAt: expect.any(String) })
        expect(namesOf(enabled)).toContain("shop__lookup")
        yield* story.patch(path, { enabled: false })
        expect(namesOf(yield* story.patch(path, { enabled: true }))).toEqual(namesOf(enabled))
        expect(yield* diary.started).toHaveLength(1)
        yield* story.patch(path, { enabled: false })
        const renamed = yield* story.patch(path, { name: "store" })
        expect(namesOf(renamed)).toContain("store__lookup")
        expect(renamed.pinnedAt).toBe(enabled.pinnedAt)
        expect(namesOf(yield* story.patch(path, { enabled: true }))).toEqual(namesOf(renamed))
        expect(yield* diary.started).toHaveLength(1)
        yield* story.patch(path, { enabled: false, transport: { type: "stdio", command: "/nowhere/at-all" } })
        expect(yield* story.patch(path, { enabled: true })).toMatchObject({
          tools: [],
          lastError: expect.stringMatching(/ENOENT|no such file/i)
        })
      })
    )

    it.effect(
      "that lists one tool without a schema of its arguments offers the others and says which is left out",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          for (const kind of ["program", "address"]) {
            const diary = yield* newDiary
            yield* diary.say({
              fail: { inputSchema: null },
              table: { inputSchema: { type: "string" } }
            } as never)
            const transport =
              kind === "program" ? program(diary) : { type: "http", url: (yield* httpServer(diary)).url }
            const made = yield* addServer(story, transport, { name: kind })
            expect(made.lastError).toEqual(naming(/\btable \(.*inputSchema/, /\bfail \(.*inputSchema/))
            expect(made.tools.map((tool: Json) => tool.name)).toContain("lookup")
            expect(made.tools.map((tool: Json) => tool.name)).not.toContain("fail")
            const calls = [{ tool: `${kind}__lookup`, arguments: { word: "fig" } }]
            expect(
              yield* outcomesOf(story, calls, { name: `${kind}-caller`, tools: [`${kind}.*`] })
            ).toMatchObject([{ status: "completed" }])
          }
        })
    )

    it.effect("is changed by whoever knows its version, and not by whoever read it before", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const off = yield* addServer(story, { type: "stdio", command: "/nowhere/at-all" }, { enabled: false })
        const path = `/mcp-servers/${off.id}`
        const change = (expectedVersion: number, name: string) =>
          story.ask("PATCH", path, { name, expectedVersion })
        const first = yield* change(off.version, "store")
        expect([first.status, first.body.version]).toEqual([200, off.version + 1])
        const late = yield* change(off.version, "market")
        expectProblem(late, 409)
        expect(late.body).toMatchObject({
          reason: "version",
          detail: expect.any(String)
        })
        expect(yield* story.get(path)).toEqual(first.body)
        const both = yield* Effect.forEach(["one", "two"], (name) => change(first.body.version, name), {
          concurrency: 2
        })
        expect(both.map(({ status }) => status).toSorted()).toEqual([200, 409])
        // Who names none says that it is changed whatever it is by now.
        expect((yield* story.ask("PATCH", path, { name: "three" })).status).toBe(200)
      })
    )

    it.effect("of another project is not there", () =>
      Effect.gen(function* () {
        const [mine, theirs] = [yield* newStoryHere, yield* newStoryHere]
        const diary = yield* newDiary
        const { id } = yield* addServer(theirs, program(diary))
        for (const method of ["GET", "DELETE"])
          expectProblem(yield* mine.ask(method, `/mcp-servers/${id}`), 404)
        expectProblem(yield* mine.ask("PATCH", `/mcp-servers/${id}`, { enabled: false }), 404)
        expectProblem(yield* mine.ask("POST", `/mcp-servers/${id}/refresh`), 404)
        const [call] = yield* outcomesOf(mine, [{ tool: "shop__lookup", arguments: { word: "fig" } }])
        expect(call).toMatchObject({ status: "refused" })
        expect(yield* diary.called).toEqual([])
      })
    )

    it.effect("is for admins: an editor may look", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        const { id } = yield* addServer(story, program(diary))
        const editor = yield* asUser(story, "editor")
        expect((yield* editor.ask("GET", `/mcp-servers/${id}`)).status).toBe(200)
        expectProblem(
          yield* editor.ask("POST", "/mcp-servers", { name: "mine", transport: program(diary) }),
          403
        )
        expectProblem(yield* editor.ask("PATCH", `/mcp-servers/${id}`, { allowedTools: [] }), 403)
        expectProblem(yield* editor.ask("POST", `/mcp-servers/${id}/refresh`), 403)
        expectProblem(yield* editor.ask("DELETE", `/mcp-servers/${id}`), 403)
        expect(yield* diary.started).toHaveLength(1)
      })
    )

    it.effect(
      "changed by somebody while another looks at it is not changed back, and the other is told",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [diary, other] = [yield* newDiary, yield* newDiary]
          const { id } = yield* addServer(story, program(diary))
          const slow = yield* Effect.forkChild(
            story.ask("PATCH", `/mcp-servers/${id}`, { transport: program(other, { MODE: "silent" }) })
          )
          yield* eventually(other.started, (pids) => pids.length === 1)
          yield* story.patch(`/mcp-servers/${id}`, { allowedTools: [] })
          // It is started a second time, without the question that it seems to have died of.
          for (const count of [1, 2]) {
            const pids = yield* eventually(other.started, (all) => all.length === count)
            process.kill(pids.at(-1) ?? Number.NaN, "SIGKILL")
          }
          const late = yield* Fiber.join(slow)
          expectProblem(late, 409)
          expect(late.body.reason).toBe("version")
          expect(yield* story.get(`/mcp-servers/${id}`)).toMatchObject({
            allowedTools: [],
            transport: program(diary)
          })
        })
    )
  })

  describe("A definition that cannot be right", () => {
    it.effect("is refused with its place, and nothing is kept or started", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        const http = { type: "http", url: "https://example.com/mcp" }
        const wrong: ReadonlyArray<readonly [string, Record<string, unknown>]> = [
          ["/name", { name: "a.b" }],
          ["/name", { name: "a__b" }],
          ["/name", { name: "a_" }],
          ["/name", { name: "graph" }],
          ["/name", { name: "Tropism" }],
          ["/transport/command", { transport: { type: "stdio", command: "" } }],
          ["/transport/env/API_KEY", { transport: program(diary, { API_KEY: "abc" }) }],
          [
            "/transport/headers/Authorization",
            { transport: { ...http, headers: { Authorization: "Bearer x" } } }
          ],
          ["/transport/url", { transport: { ...http, url: "https://ada:pw@example.com/mcp" } }],
          ["/transport/url", { transport: { ...http, url: "https://example.com/mcp?api_key=abc" } }],
          ["/transport/url", { transport: { ...http, url: "file:///etc/passwd" } }],
          ["/callTimeoutMs", { callTimeoutMs: 0 }],
          ["/allowedTools/0", { allowedTools: [""] }],
          ["/serverUrl", { serverUrl: "x" }]
        ]
        for (const [pointer, part] of wrong) {
          const answer = yield* story.ask("POST", "/mcp-servers", {
            name: "shop",
            transport: program(diary),
            ...part
          })
          expectProblem(answer, 422, pointer)
        }
        for (const name of ["DATABASE_PASSWORD", "TROPISM_TOKEN", "TROPISM_SECRET_", "tropism_secret_x"]) {
          const transport = { ...http, headers: { "X-Key": { secret: name } } }
          const answer = yield* story.ask("POST", "/mcp-servers", { name: "shop", transport })
          expectProblem(answer, 422)
          expect(JSON.stringify(answer.body)).not.toContain("the-database")
        }
        expect((yield* story.get("/mcp-servers")).items).toEqual([])
        expect(yield* diary.started).toEqual([])
      })
    )

    it.effect("because its name is taken is refused", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        yield* addServer(story, program(diary))
        const again = yield* story.ask("POST", "/mcp-servers", { name: "shop", transport: program(diary) })
        expectProblem(again, 409)
        expect(again.body.reason).toBe("nameTaken")
      })
    )

    it.effect("because another one takes its name at the same moment is refused", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        const shop = yield* addServer(story, program(diary))
        const other = yield* addServer(story, program(diary), { name: "other" })
        const naming = `update kb.mcp_servers set name = 'taken' where id = '${other.id}'`
        const holder = yield* holding(story.access, naming)
        const renaming = yield* Effect.forkChild(
          story.ask("PATCH", `/mcp-servers/${shop.id}`, { name: "taken" })
        )
        yield* whenWaiting(story.access, 1)
        yield* holder.query("commit")
        const refused = yield* Fiber.join(renaming)
        expectProblem(refused, 409)
        expect(refused.body.reason).toBe("nameTaken")
      })
    )

    it.effect("because a model could not tell two of its tools apart is refused", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        yield* diary.say({ "odd_name/x": {} })
        const body = { name: "shop", transport: program(diary), allowedTools: ["odd*"] }
        const answer = yield* story.ask("POST", "/mcp-servers", body)
        expectProblem(answer, 422, "/allowedTools")
        expect(answer.body.detail).toContain("odd_name/x")
        const one = yield* story.ask("POST", "/mcp-servers", { ...body, allowedTools: ["odd.*"] })
        expect(one.status).toBe(201)
      })
    )
  })

  describe("A secret", () => {
    it.effect("reaches the server that it is for, and stands in no row, answer or outcome", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { log } = yield* SharedServer
        const diary = yield* newDiary
        const heard = yield* httpServer(diary)
        const reference = { secret: "TROPISM_SECRET_SHOP" }
        yield* addServer(story, program(diary, { SECRET: reference }))
        const web = {
          type: "http",
          url: heard.url,
          headers: { Authorization: { ...reference, prefix: "Bearer " } }
        }
        yield* addServer(story, web, { name: "web" })
        const [call] = yield* outcomesOf(story, [{ tool: "shop__tell_secret", arguments: {} }])
        expect(call).toMatchObject({ status: "completed", result: "I was given <redacted>." })
        expect(heard.heard.map(({ headers }) => headers["authorization"])).toContain(`Bearer ${secret}`)
        const rows = yield* ask(
          story.access,
          `select row_to_json(server)::text from kb.mcp_servers server where project_id = $1
           union all select row_to_json(event)::text from kb.context_events event where project_id = $1
           union all select row_to_json(call)::text from kb.tool_calls call where project_id = $1`,
          [story.projectId]
        )
        // Of the operator's environment it got what a program needs, and what its definition names.
        expect(yield* diary.environment).toEqual(["CALLS", "GATE", "OVERLAY", "PATH", "SECRET"])
        expect(rows.length).toBeGreaterThan(3)
        expect(JSON.stringify(rows)).not.toContain(secret)
        expect(JSON.stringify(yield* story.get("/mcp-servers"))).not.toContain(secret)
        const lines = JSON.stringify(log)
        expect(lines).toContain("The story server begins, with <redacted>")
        expect(lines).not.toContain(secret)
      })
    )

    it.effect("that the operator has not set is told by its name", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        const made = yield* addServer(story, program(diary, { SECRET: { secret: "TROPISM_SECRET_NONE" } }))
        expect(made.lastError).toContain("TROPISM_SECRET_NONE")
        expect(yield* diary.started).toEqual([])
      })
    )
  })
})
