/**
 * `tropism mcp-servers`: what was typed wrong, and what it is worth when a server is not reached.
 */
import { describe, expect, it } from "@effect/vitest"
import { leftOutWords } from "@tropism/domain/mcp-server"
import { Effect } from "effect"
import { fakeServer } from "../../testing/fake-server.ts"
import { invoke } from "../../testing/invoke.ts"
import { at, id } from "../../testing/records.ts"

const shop = (lastError: string | null) => ({
  id: id("agent", 1),
  name: "shop",
  transport: { type: "stdio", command: "shop", args: [], env: {} },
  allowedTools: [],
  idempotentTools: [],
  callTimeoutMs: 30_000,
  enabled: true,
  version: 1,
  tools: [],
  pinnedAt: null,
  lastError,
  signIn: null,
  eventSources: [],
  createdBy: "ada",
  createdAt: at(0),
  updatedAt: at(0)
})

const answering = (server: unknown) =>
  fakeServer({
    failing: new Map([[`/api/projects/${id("project", 1)}/mcp-servers`, { status: 201, body: server }]])
  })

const source = (polledAt: string) => ({
  name: "sales",
  arguments: {},
  status: "listening",
  agents: ["clerk"],
  polledAt,
  nextPollAt: at(9),
  failedSince: null,
  lastFault: null,
  truncatedAt: null,
  lastOccurrence: null
})

describe("tropism mcp-servers show", () => {
  it.live("says of a server whose tools failed whether its events are heard since", () =>
    Effect.gen(function* () {
      const failed = { ...shop("The server answered nonsense (HTTP 500)"), updatedAt: at(5) }
      const states: Array<string | undefined> = []
      for (const eventSources of [[], [source(at(4))], [source(at(4)), source(at(6))]]) {
        const server = yield* fakeServer({
          failing: new Map([
            [
              `/api/projects/${id("project", 1)}/mcp-servers`,
              { status: 200, body: { items: [{ ...failed, eventSources }], nextCursor: null } }
            ]
          ])
        })
        const { out } = yield* invoke(server, "mcp-servers", "show", "shop")
        states.push(out.find((line) => line.startsWith("state ")))
        expect(out.join("\n")).toContain("HTTP 500")
      }
      const [unreached, earlier, heard] = states
      expect([earlier, heard === unreached]).toEqual([unreached, false])
    })
  )
})

describe("tropism mcp-servers set", () => {
  const bodyOf = (authorization: unknown, ...flags: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const one = {
        ...shop(null),
        transport: { type: "http", url: "https://shop.example/mcp", headers: {} },
        ...(authorization === undefined ? {} : { authorization })
      }
      const path = `/api/projects/${id("project", 1)}/mcp-servers`
      const server = yield* fakeServer({
        failing: new Map([
          [path, { status: 200, body: { items: [one], nextCursor: null } }],
          [`${path}/${one.id}`, { status: 200, body: one }]
        ])
      })
      const { error, exitCode } = yield* invoke(server, "mcp-servers", "set", "shop", ...flags)
      expect([error, exitCode]).toEqual(["", 0])
      return JSON.parse(server.requests.find(({ line }) => line.startsWith("PATCH"))?.body ?? "null")
    })

  it.live("changes of the sign-in what is said, and leaves the rest", () =>
    Effect.gen(function* () {
      const before = {
        type: "oauth",
        per: "server",
        clientId: "crm",
        clientSecret: { secret: "TROPISM_SECRET_CRM" },
        scopes: ["a"]
      }
      expect(yield* bodyOf(before, "--per-member")).toEqual({ authorization: { ...before, per: "member" } })
      expect(yield* bodyOf({ ...before, per: "member" }, "--no-per-member", "--scope", "b")).toEqual({
        authorization: { ...before, scopes: ["b"] }
      })
      expect(yield* bodyOf(before, "--client-id", "new")).toEqual({
        authorization: { ...before, clientId: "new", clientSecret: null }
      })
      expect(yield* bodyOf(undefined, "--client-id", "new", "--client-secret", "TROPISM_SECRET_NEW")).toEqual(
        {
          authorization: {
            type: "oauth",
            per: "server",
            clientId: "new",
            clientSecret: { secret: "TROPISM_SECRET_NEW" },
            scopes: null
          }
        }
      )
      expect(yield* bodyOf(before, "--reset-sign-in")).toEqual({ authorization: null })
      expect(yield* bodyOf(before, "--no-enabled")).toEqual({ enabled: false })
    })
  )
})

describe("tropism mcp-servers add", () => {
  it.live("ends with 1 and the reason when the server was not reached, and says that it stays", () =>
    Effect.gen(function* () {
      const server = yield* answering(shop("Connection closed"))
      const { error, exitCode } = yield* invoke(server, "mcp-servers", "add", "shop", "shop-program")
      expect(error).toMatch(/\bshop\b.*Connection closed\. .*"tropism mcp-servers refresh shop"/)
      expect(exitCode).toBe(1)
    })
  )

  it.live("ends with 0 when the server was reached, even where a tool is left out", () =>
    Effect.gen(function* () {
      for (const told of [null, `${leftOutWords} odd (inputSchema)`]) {
        const server = yield* answering(shop(told))
        expect((yield* invoke(server, "mcp-servers", "add", "shop", "shop-program")).exitCode).toBe(0)
      }
    })
  )

  it.live("says what was typed wrong, and sends nothing", () =>
    Effect.gen(function* () {
      const server = yield* answering(shop(null))
      const at = ["-a", "https://shop.example/mcp"]
      const secret = yield* invoke(server, "mcp-servers", "add", "shop", ...at, "--header", "A=secret:PATH")
      expect(secret.error).toMatch(/ transport › headers › A.*TROPISM_SECRET_/)
      const address = yield* invoke(server, "mcp-servers", "add", "shop", "-a", "ftp://x")
      expect(address.error).toMatch(/ transport › url: /)
      expect([secret.exitCode, address.exitCode]).toEqual([2, 2])
      expect(server.requests.filter(({ line }) => line.startsWith("POST"))).toEqual([])
    })
  )
})
