/** A setting that cannot be used keeps the server from starting, with a sentence that says what to set. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Exit, FileSystem } from "effect"
import { generateKeyPairSync } from "node:crypto"
import { exportSPKI } from "jose"
import { serve } from "../src/main.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { jwtOf, newKey, shown, trusting } from "../testing/jwt-words.ts"
import { startServer } from "../testing/platform.ts"

/** What a server says that is started on an empty folder with an environment, and what the folder has then. */
const startingWith = Effect.fnUntraced(function* (env: Readonly<Record<string, string>>) {
  const fileSystem = yield* FileSystem.FileSystem
  const dataFolder = yield* fileSystem.makeTempDirectoryScoped()
  const exit = yield* serve({ host: "127.0.0.1", port: 0, dataFolder }).pipe(
    Effect.exit,
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
  )
  const made = yield* fileSystem.readDirectory(dataFolder)
  return { told: Exit.isFailure(exit) ? String(exit.cause) : "started", made }
}, Effect.provide(NodeServices.layer))

describe("A setting that cannot be used", () => {
  it.live("keeps the server from starting and from making a database, and its value is not told", () =>
    Effect.gen(function* () {
      for (const [name, value] of [
        ["TROPISM_OPENAI_API", "xyzzy"],
        ["TROPISM_PROMPT_CACHE", "xyzzy"],
        ["TROPISM_RATE_LIMIT", "xyzzy"],
        ["OPENAI_COMPATIBLE_BASE_URL", "xyzzy"],
        ["OPENAI_BASE_URL", "file:///xyzzy"],
        ["OTEL_EXPORTER_OTLP_ENDPOINT", "xyzzy"],
        ["OTEL_EXPORTER_OTLP_PROTOCOL", "xyzzy"],
        ["TROPISM_MIN_SCHEDULE_SECONDS", "xyzzy"],
        ["TROPISM_RETENTION_DAYS", "xyzzy"],
        ["TROPISM_STUCK_AFTER_SECONDS", "xyzzy"],
        ["TROPISM_CONCURRENT_RUNS", "0"],
        ["TROPISM_MODEL_CONCURRENCY", "0"],
        ["TROPISM_LOCAL_MCP_SERVERS", "xyzzy"],
        ["TROPISM_ENCRYPTION_KEY", "xyzzy"]
      ] as const) {
        const { made, told } = yield* startingWith({ [name]: value })
        expect(told).toMatch(new RegExp(`SettingUnusable.*\\b${name}\\b`))
        expect(told).not.toContain("xyzzy")
        expect(told).not.toContain("SchemaError")
        expect(made).toEqual([])
      }
    }).pipe(Effect.scoped)
  )

  it.live("is told with its value where that is no secret", () =>
    Effect.gen(function* () {
      for (const [name, value] of [
        ["TROPISM_ALLOWED_ORIGINS", "nope"],
        ["TROPISM_PRICES", "/no/such"],
        ["TROPISM_MODEL", "foo"]
      ] as const) {
        const { made, told } = yield* startingWith({ [name]: value })
        expect(told).toContain(name)
        expect(told).toContain(value)
        expect(made).toEqual([])
      }
    }).pipe(Effect.scoped)
  )

  it.live("a half of what JWTs need keeps it from starting, too", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const whose = { TROPISM_JWT_ISSUER: "https://id.example", TROPISM_JWT_AUDIENCE: "tropism" }
      const weak = generateKeyPairSync("rsa", { modulusLength: 1_024 })
      const strong = generateKeyPairSync("rsa", { modulusLength: 2_048 })
      const noKey = /TROPISM_JWT_JWKS_URL.*TROPISM_JWT_SECRET.*TROPISM_JWT_PUBLIC_KEY/
      const noIssuer = /TROPISM_JWT_SECRET.*TROPISM_JWT_ISSUER.*TROPISM_JWT_AUDIENCE/
      const badKey = /^(?!.*TROPISM_JWT_ISSUER).*TROPISM_JWT_PUBLIC_KEY.*-----BEGIN PUBLIC KEY-----/
      const badAddress = /^(?!.*TROPISM_JWT_ISSUER).*TROPISM_JWT_JWKS_URL.*\bhttps\b/
      const faults: ReadonlyArray<readonly [env: Record<string, string>, settings: RegExp]> = [
        [whose, noKey],
        [{ TROPISM_JWT_ADMIN_CLAIM: "a=b" }, noKey],
        [{ TROPISM_JWT_SECRET: "x".repeat(32) }, noIssuer],
        [{ TROPISM_JWT_SECRET: "x".repeat(32), TROPISM_JWT_ISSUER: "https://id.example" }, noIssuer],
        [{ ...whose, TROPISM_JWT_SECRET: "x".repeat(31) }, /TROPISM_JWT_SECRET.*\b32\b/],
        [
          { ...whose, TROPISM_JWT_SECRET: "x".repeat(32), TROPISM_JWT_JWKS_URL: "https://id.example/keys" },
          /TROPISM_JWT_JWKS_URL.*TROPISM_JWT_SECRET(?!.*TROPISM_JWT_PUBLIC_KEY)/
        ],
        [{ ...whose, TROPISM_JWT_JWKS_URL: "http://id.example/keys" }, badAddress],
        [{ ...whose, TROPISM_JWT_JWKS_URL: "https://me:xyzzy@id.example/keys" }, badAddress],
        [{ ...whose, TROPISM_JWT_JWKS_URL: "keys" }, badAddress],
        [{ ...whose, TROPISM_JWT_PUBLIC_KEY: "xyzzy" }, badKey],
        [
          { ...whose, TROPISM_JWT_PUBLIC_KEY: `${weak.publicKey.export({ type: "spki", format: "pem" })}` },
          badKey
        ],
        [
          {
            ...whose,
            TROPISM_JWT_PUBLIC_KEY: `${strong.privateKey.export({ type: "pkcs8", format: "pem" })}`
          },
          badKey
        ],
        [
          { ...whose, TROPISM_JWT_SECRET: "x".repeat(32), TROPISM_JWT_ADMIN_CLAIM: "admin" },
          /TROPISM_JWT_ADMIN_CLAIM.*name=value/
        ]
      ]
      for (const [env, settings] of faults) {
        const environment = ConfigProvider.layer(ConfigProvider.fromEnv({ env }))
        const exit = yield* Effect.exit(Effect.provide(startServer(access), environment))
        const told = Exit.isFailure(exit) ? String(exit.cause) : "started"
        expect(told).toMatch(settings)
        expect(told).not.toMatch(/xyzzy|xxxx|BEGIN PRIVATE KEY-----\n/)
      }
    }).pipe(Effect.scoped)
  )

  it.live("a secret, or a public key, lets in whoever it signs and nobody who takes one for the other", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const secret = "a-secret-of-thirty-two-bytes-or-more"
      const bytes = new TextEncoder().encode(secret)
      const key = yield* newKey("any", "RS256")
      const pem = yield* Effect.promise(() => exportSPKI(key.open))
      const signedBy = {
        secret: yield* jwtOf({ kid: "any", alg: "HS256", secret: bytes }, "ada"),
        longer: yield* jwtOf({ kid: "any", alg: "HS512", secret: Buffer.alloc(64, bytes) }, "ada"),
        key: yield* jwtOf(key, "ada"),
        text: yield* jwtOf({ kid: "any", alg: "HS256", secret: new TextEncoder().encode(pem) }, "ada")
      }
      const statuses = (env: Record<string, string>) =>
        Effect.flatMap(trusting(access, env), (doors) =>
          Effect.forEach(Object.entries(signedBy), ([name, jwt]) =>
            Effect.map(shown(doors, jwt).send("GET", "/api/me"), ({ status }) => [name, status])
          )
        )
      const only = (good: string) => Object.keys(signedBy).map((name) => [name, name === good ? 200 : 401])
      expect(yield* statuses({ TROPISM_JWT_SECRET: secret })).toEqual(only("secret"))
      expect(yield* statuses({ TROPISM_JWT_PUBLIC_KEY: pem.replaceAll("\n", "\\n") })).toEqual(only("key"))
    }).pipe(Effect.scoped)
  )
})
