/**
 * `tropism doctor`: each thing that can be wrong is broken once, named, and told with what mends it.
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { inject } from "vitest"
import { withDatabase } from "../../../server/src/database/postgres-access.ts"
import { unmigratedDatabase } from "../../../server/testing/fresh-database.ts"
import { type FakeServer, fakeServer, token } from "../../testing/fake-server.ts"
import { invoke, invokeWith } from "../../testing/invoke.ts"
import { id } from "../../testing/records.ts"
import { databaseFindings } from "../doctor/database.ts"
import type { Finding } from "@tropism/domain/finding"
import { verdictOf } from "@tropism/domain/health"
import { judge, type VitalSigns } from "@tropism/domain/vital-signs"
import { wellSigns } from "../../../domain/testing/vital-signs.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "doctor-"))),
  (made) => Effect.sync(() => rmSync(made, { recursive: true }))
)

/** What it finds, and how it ends. */
const examine = (environment: Record<string, string>, ...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const data = yield* folder
    const { error, exitCode, out } = yield* invokeWith(
      { TROPISM_DATA: data, PORT: "0", ...environment },
      "doctor",
      "--json",
      ...args
    )
    const findings: ReadonlyArray<Finding> = JSON.parse(out.join("\n"))
    expect(exitCode).toBe(findings.some(({ state }) => state === "fault") ? 1 : 0)
    expect(error === "").toBe(exitCode === 0)
    for (const { fix, state } of findings) expect(fix === null).toBe(state === "ok")
    return findings
  })

const me = { userId: "ada", role: "admin", projectIds: null, roles: null }

const wellServer = (signs: Partial<VitalSigns> = {}) =>
  fakeServer({
    failing: new Map([
      ["/api/me", { status: 200, body: me }],
      [
        `/api/projects/${id("project", 1)}/health`,
        { status: 200, body: verdictOf(judge({ ...wellSigns, ...signs })) }
      ]
    ])
  })

const at = (server: FakeServer) => {
  const { hostname, port } = new URL(server.url)
  return { HOST: hostname, PORT: port }
}

const well = { version: 18, isWritable: true, schema: 47, knownSchema: 47, aheadMs: 3, roleFault: null }

describe("tropism doctor", () => {
  it.live("finds nothing at fault while no server runs, and says in words what it saw", () =>
    Effect.gen(function* () {
      const findings = yield* examine({})
      expect(findings.filter(({ state }) => state === "fault")).toEqual([])
      expect(findings.map(({ check }) => check)).toEqual(
        expect.arrayContaining([
          "runtime",
          "data folder",
          "disk",
          "file handles",
          "settings",
          "database",
          "port",
          "model"
        ])
      )
      const { exitCode, out } = yield* invokeWith({ TROPISM_DATA: yield* folder, PORT: "0" }, "doctor")
      expect(exitCode).toBe(0)
      expect(out.join("\n")).toMatch(/^ok +runtime +Bun/m)
      expect(out.join("\n")).toMatch(/^warn +model[^]+\bexport OPENAI_API_KEY/m)
    })
  )

  it.live("names what is broken around the server", () =>
    Effect.gen(function* () {
      const open = yield* folder
      writeFileSync(join(open, "token"), "secret")
      chmodSync(join(open, "token"), 0o644)
      const stranger = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("hello") })
      yield* Effect.addFinalizer(() => Effect.promise(() => stranger.stop(true)))
      const broken: ReadonlyArray<readonly [Record<string, string>, Partial<Finding>]> = [
        [{ TROPISM_DATA: open }, { check: "data folder", fix: `chmod 600 ${join(open, "token")}` }],
        [{ TROPISM_DATA: join(open, "token") }, { check: "data folder" }],
        [
          { TROPISM_DATA: "/proc/nowhere/data" },
          { check: "data folder", fix: "mkdir -p /proc/nowhere/data" }
        ],
        [
          { PORT: String(stranger.port) },
          { check: "port", fix: `PORT=${Number(stranger.port) + 1} tropism start` }
        ],
        [
          { DATABASE_URL: "mysql://127.0.0.1/x" },
          {
            check: "database",
            detail: expect.stringContaining("DATABASE_URL"),
            fix: expect.stringContaining("export DATABASE_URL=")
          }
        ],
        [
          { DATABASE_URL: "postgres://a:b@127.0.0.1:1/x" },
          { check: "database", fix: 'psql "$DATABASE_URL" -c "select 1"' }
        ],
        [{ OPENAI_BASE_URL: "nowhere" }, { check: "settings" }],
        [
          { TROPISM_MODEL: "openai:gpt-4o" },
          { check: "settings", detail: expect.stringContaining("OPENAI_API_KEY") }
        ],
        ...Object.entries({
          TROPISM_RATE_LIMIT: "xyzzy",
          TROPISM_PRICES: "/nowhere/xyzzy",
          TROPISM_ENCRYPTION_KEY: "xyzzy",
          TROPISM_JWT_JWKS_URL: "xyzzy",
          TROPISM_ALLOWED_ORIGINS: "xyzzy",
          TROPISM_MIN_SCHEDULE_SECONDS: "-4",
          TROPISM_LOCAL_MCP_SERVERS: "xyzzy"
        }).map(
          ([name, value]) =>
            [
              { [name]: value },
              { check: "settings", detail: expect.stringContaining(name.replace(/_JWKS_URL$/, "")) }
            ] as const
        )
      ]
      for (const [environment, finding] of broken)
        expect(yield* examine(environment)).toContainEqual(
          expect.objectContaining({ state: "fault", ...finding })
        )
    })
  )

  it.live("looks at the server that runs: its token, its MCP servers, or that it is not there", () =>
    Effect.gen(function* () {
      const server = yield* wellServer()
      const seen = yield* examine({ ...at(server), TROPISM_TOKEN: token })
      expect(seen).toContainEqual(
        expect.objectContaining({
          check: "token",
          state: "ok",
          detail: expect.stringMatching(/\bada, admin, 1\b/)
        })
      )
      expect(seen).toContainEqual(expect.objectContaining({ check: "project", state: "ok" }))
      const shop = { id: "1", name: "shop", error: "ECONNREFUSED" }
      const ill = yield* wellServer({ silentServers: [shop], serverFault: "Out of order" })
      const found = yield* examine({ ...at(ill), TROPISM_TOKEN: token })
      expect(found).toContainEqual({
        check: "MCP server",
        state: "fault",
        detail: expect.stringMatching(/^"Demo": .*\bshop\b.*\(ECONNREFUSED\)$/),
        fix: `tropism mcp-servers refresh shop --project ${id("project", 1)}`
      })
      expect(found).toContainEqual({
        check: "server",
        state: "fault",
        detail: '"Demo": Out of order.',
        fix: "tropism doctor"
      })
      yield* invoke(server, "kill-switch", "on", "--server", "--reason", "Restored")
      expect(yield* examine({ ...at(server), TROPISM_TOKEN: token })).toContainEqual({
        check: "kill switch",
        state: "warn",
        detail: expect.stringMatching(/ Restored$/),
        fix: "tropism kill-switch off --server"
      })
      const refused = yield* examine({ ...at(server), TROPISM_TOKEN: "wrong" })
      expect(refused).toContainEqual(expect.objectContaining({ check: "token", state: "fault" }))
      const gone = yield* examine({ TROPISM_TOKEN: token }, "--url", "http://127.0.0.1:1")
      expect(gone).toContainEqual(
        expect.objectContaining({ check: "server", state: "fault", fix: "tropism start" })
      )
    })
  )

  it.live("asks the models' providers only with --online", () =>
    Effect.gen(function* () {
      const asked: Array<string | null> = []
      const provider = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch: (request) => {
          asked.push(request.headers.get("authorization"))
          return new Response("", { status: 401 })
        }
      })
      yield* Effect.addFinalizer(() => Effect.promise(() => provider.stop(true)))
      const environment = { OPENAI_API_KEY: "sk-no", OPENAI_BASE_URL: `http://127.0.0.1:${provider.port}/v1` }
      expect(yield* examine(environment)).toContainEqual(
        expect.objectContaining({ check: "model", state: "ok" })
      )
      expect(asked).toEqual([])
      const findings = yield* examine(environment, "--online")
      expect(findings).toContainEqual(
        expect.objectContaining({ check: "model", state: "fault", fix: "export OPENAI_API_KEY=…" })
      )
      expect(asked).toEqual(["Bearer sk-no"])
      expect(JSON.stringify(findings)).not.toContain("sk-no")
    })
  )

  it.live("sees an empty database, which tropism migrate fills once", () =>
    Effect.gen(function* () {
      const { ownerUrl } = yield* unmigratedDatabase
      const name = new URL(Redacted.value(ownerUrl)).pathname.slice(1)
      const environment = {
        DATABASE_URL: Redacted.value(withDatabase(Redacted.make(inject("postgres").adminUrl), name))
      }
      const schema = Effect.map(examine(environment), (findings) =>
        findings.filter(({ check }) => check === "schema")
      )
      const migrate = Effect.map(invokeWith(environment, "migrate", "--json"), ({ out }) =>
        JSON.parse(out.join("\n"))
      )
      expect(yield* schema).toEqual([
        { check: "schema", state: "ok", detail: expect.not.stringMatching(/\d/), fix: null }
      ])
      const { before, now } = yield* migrate
      expect(before).toBeNull()
      expect(yield* schema).toEqual([
        { check: "schema", state: "ok", detail: expect.stringMatching(`\\b${now}\\b`), fix: null }
      ])
      expect(yield* migrate).toEqual({ before: now, now })
    })
  )

  it.each([
    [{ version: 14 }, "database", "fault"],
    [{ isWritable: false }, "database", "fault"],
    [{ roleFault: "passes row-level security" }, "database role", "fault"],
    [{ roleFault: "is missing" }, "database role", "fault"],
    [{ schema: 48 }, "schema", "fault"],
    [{ schema: 46 }, "schema", "warn"],
    [{ aheadMs: -60_000 }, "clock", "warn"]
  ] as const)("names %j of a database", (change, check, state) => {
    expect(databaseFindings(well).every((one) => one.state === "ok")).toBe(true)
    expect(databaseFindings({ ...well, ...change }).filter((one) => one.state !== "ok")).toMatchObject([
      { check, state }
    ])
  })

  it("says of a program that is older than its database how a newer one comes from where this one came", () => {
    const schema = databaseFindings({ ...well, schema: 48 }).find(({ check }) => check === "schema")
    for (const command of ["git pull", "npm ci", "npm install -g ./tropism-VERSION.tgz"])
      expect(schema?.fix).toContain(command)
    // No registry has the package.
    expect(schema?.fix).not.toContain("tropism@")
  })
})
