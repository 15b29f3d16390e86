/**
 * Requests to authorization servers obey the rules of egress: what an address outside names inside is not reached.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { LocalMcpServers, type LocalPermit } from "./faults.ts"
import { type Discovered, register, renew } from "./oauth-protocol.ts"

const endpoint = Effect.acquireRelease(
  Effect.sync(() => {
    const heard: Array<string> = []
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: (request) => {
        heard.push(new URL(request.url).pathname)
        return new URL(request.url).pathname === "/moved"
          ? new Response(null, { status: 307, headers: { location: "/token" } })
          : Response.json({ client_id: "made", redirect_uris: ["https://here.example/oauth/callback"] })
      }
    })
    return { heard, server, url: `http://127.0.0.1:${server.port}` }
  }),
  ({ server }) => Effect.promise(() => server.stop(true))
)

const found = (url: string): Discovered => ({
  server: {
    issuer: url,
    authorization_endpoint: `${url}/auth`,
    token_endpoint: `${url}/moved`,
    registration_endpoint: `${url}/register`,
    response_types_supported: ["code"],
    code_challenge_methods_supported: ["S256"]
  },
  resource: "https://shop.example/mcp",
  scope: undefined
})

const registering = (permit: LocalPermit, address: string, url: string) =>
  register(
    { type: "http", url: address },
    found(url),
    "https://here.example",
    "https://here.example/oauth/callback"
  ).pipe(Effect.provideService(LocalMcpServers, permit), Effect.result)

describe("An authorization server in this machine's network", () => {
  for (const [permit, address, isReached] of [
    ["nobody", "https://shop.example/mcp", false],
    ["serverTokens", "https://shop.example/mcp", false],
    ["serverTokens", "http://127.0.0.1:1/mcp", true],
    ["admins", "https://shop.example/mcp", true]
  ] as const)
    it.live(
      `is ${isReached ? "" : "not "}reached for ${address} where ${permit} may name what is local`,
      () =>
        Effect.gen(function* () {
          const { heard, url } = yield* endpoint
          const made = yield* registering(permit, address, url)
          expect([made._tag, heard]).toEqual(isReached ? ["Success", ["/register"]] : ["Failure", []])
          if (made._tag === "Failure") expect(made.failure).toMatchObject({ isFinal: false })
        })
    )

  it.live("that redirects the request for a token is followed nowhere: the refresh token stays here", () =>
    Effect.gen(function* () {
      const { heard, url } = yield* endpoint
      const transport = { type: "http", url: "http://127.0.0.1:1/mcp" } as const
      const renewed = yield* renew(transport, found(url), { client_id: "made" }, "a-refresh-token").pipe(
        Effect.provideService(LocalMcpServers, "admins"),
        Effect.result
      )
      expect([renewed._tag, heard]).toEqual(["Failure", ["/moved"]])
    })
  )
})
