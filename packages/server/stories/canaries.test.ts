/**
 * A secret is where it was put and nowhere else.
 *
 * One is planted in each place that takes one. Then everything that can be read of
 * the server is read, also while things go wrong, and none of them is in it: not
 * as it is, nor as hexadecimal or base 64.
 */
import { execFileSync } from "node:child_process"
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Logger, Redacted, References } from "effect"
import { serveAnswers } from "../testing/fake-model-server.ts"
import { startCollector } from "../testing/collector.ts"
import { documentedBy } from "../testing/documented.ts"
import { openStream } from "../testing/event-stream.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { furnish } from "../testing/furniture.ts"
import { audience, issuer, jwtOf } from "../testing/jwt-words.ts"
import { rpc } from "../testing/mcp-extension-words.ts"
import { receiver, subscribing } from "../testing/mcp-receiver.ts"
import { addServer, httpServer, newDiary, program } from "../testing/mcp-words.ts"
import { modelKey, refuses, says, wireModel } from "../testing/model-words.ts"
import { ask } from "../testing/owner-rows.ts"
import {
  type Answer,
  eventually,
  type Json,
  newProject,
  startServer,
  type Story
} from "../testing/platform.ts"
import { feedOf, make } from "../testing/story-words.ts"

const canary = (place: string) => `canary-of-${place}-${crypto.randomUUID()}`

/** The secrets by the place in which each lies. */
type Secrets = Record<string, string>

/** The forms in which a secret would still be one. */
const formsOf = (secret: string): ReadonlyArray<string> => {
  const bytes = Buffer.from(secret)
  return [
    secret,
    bytes.toString("hex"),
    bytes.toString("base64").replace(/=+$/, ""),
    encodeURIComponent(secret)
  ]
}

/** The places whose secret stands in a text. */
const foundIn = (secrets: Secrets, text: string): ReadonlyArray<string> =>
  Object.entries(secrets)
    .filter(([, secret]) => formsOf(secret).some((form) => text.includes(form)))
    .map(([place]) => place)

/** What an operator gives to a server. */
const given = () => ({
  "provider key": modelKey,
  "AWS secret": canary("aws-secret"),
  "MCP server": canary("mcp-server"),
  "MCP program": canary("mcp-program"),
  "JWT secret": canary("jwt-secret"),
  "collector's header": canary("collector"),
  "sealing key": Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64")
})

const start = Effect.fnUntraced(function* (secrets: ReturnType<typeof given>) {
  const models = yield* serveAnswers(
    // Providers tell a key back when they do not know it.
    refuses(401, `Incorrect API key provided: ${modelKey}, ${secrets["AWS secret"]}`),
    says("Heard.")
  )
  const collector = yield* startCollector
  const access = yield* freshDatabase
  const lines: Array<string> = []
  const loggers = [Logger.formatJson, Logger.formatLogFmt, Logger.formatSimple].map((format) =>
    Logger.map(format, (line) => void lines.push(line))
  )
  const doors = yield* startServer(access, loggers, undefined, undefined, secrets["sealing key"]).pipe(
    Effect.provideService(References.MinimumLogLevel, "All"),
    Effect.provide(
      ConfigProvider.layer(
        ConfigProvider.fromEnv({
          env: {
            PATH: process.env["PATH"] ?? "",
            OPENAI_COMPATIBLE_BASE_URL: `${models.url}/v1`,
            OPENAI_COMPATIBLE_API_KEY: secrets["provider key"],
            AWS_REGION: "us-east-1",
            AWS_ACCESS_KEY_ID: "AKIAIOSFODNN7EXAMPLE",
            AWS_SECRET_ACCESS_KEY: secrets["AWS secret"],
            TROPISM_SECRET_SHOP: secrets["MCP server"],
            TROPISM_SECRET_PROGRAM: secrets["MCP program"],
            TROPISM_JWT_SECRET: secrets["JWT secret"],
            TROPISM_JWT_ISSUER: issuer,
            TROPISM_JWT_AUDIENCE: audience,
            OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
            OTEL_EXPORTER_OTLP_HEADERS: `x-key=${secrets["collector's header"]}`,
            OTEL_BSP_SCHEDULE_DELAY: "40"
          }
        })
      )
    )
  )
  return { story: yield* newProject(doors, access), collector, lines }
})

/** What people are told once, or bring themselves. */
const told = Effect.fnUntraced(function* (story: Story, jwtSecret: string) {
  const browse = (address: string) =>
    story.send("GET", address.slice(story.url.length), undefined, { authorization: "" })
  const sessionIn = (answer: Answer) => /=([^;]+)/.exec(answer.headers.get("set-cookie") ?? "")?.[1] ?? ""
  yield* story.post("/members", { userId: "ada", role: "editor" })
  const token = yield* story.post("/tokens", { name: "hers", userId: "ada" })
  const used = yield* story.post("/members/ada/login-link")
  const unused = yield* story.post("/members/ada/login-link")
  const agent = yield* story.post("/agents", {
    name: "listener",
    prompt: "Listen.",
    triggerType: "webhook",
    model: wireModel
  })
  const webhook = yield* story.post(`/agents/${agent.id}/webhooks`, {})
  const rotated = yield* story.post(`/agents/${agent.id}/webhooks/${webhook.id}/rotate`, { graceSeconds: 60 })
  const jwt = yield* jwtOf({ kid: "k", alg: "HS256", secret: Buffer.from(jwtSecret) }, "ada")
  const wrong = canary("wrong-token")
  for (const bearer of [jwt, `${jwt.slice(0, -4)}AAAA`, wrong, token.token])
    yield* story.send("GET", "/api/me", undefined, { authorization: `Bearer ${bearer}` })
  for (const [bearer, id] of [
    [rotated.token, "one"],
    [canary("wrong-webhook"), "two"]
  ])
    yield* story.send(
      "POST",
      `/api/hooks/${webhook.id}`,
      { n: 1 },
      {
        authorization: `Bearer ${bearer}`,
        "idempotency-key": String(id)
      }
    )
  return {
    "admin's token": story.token,
    "server's login link": new URL(story.loginLink).searchParams.get("code") ?? "",
    "admin's session": sessionIn(yield* browse(story.loginLink)),
    "member's token": token.token,
    "member's login link": new URL(used.url).searchParams.get("code") ?? "",
    "member's session": sessionIn(yield* browse(used.url)),
    "unused login link": new URL(unused.url).searchParams.get("code") ?? "",
    webhook: webhook.token,
    "rotated webhook": rotated.token,
    JWT: jwt,
    "refused token": wrong
  }
})

/** Every row of every table, as text. */
const everyRow = Effect.fnUntraced(function* ({ access }: Story) {
  const tables = yield* ask(
    access,
    `select format('%I.%I', schemaname, tablename) from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`
  )
  expect(tables.length).toBeGreaterThan(40)
  return yield* Effect.forEach(tables, ([table]) =>
    Effect.map(
      ask(access, `select coalesce(string_agg(t::text, E'\\n'), '') from ${table} t`),
      ([row]) => `${table}: ${row?.[0]}`
    )
  )
})

/** What every operation answers that only reads, about things that are there. */
const everyAnswer = Effect.fnUntraced(function* (story: Story, ids: Readonly<Record<string, string>>) {
  const { document, operations } = documentedBy((yield* story.send("GET", "/openapi.json")).body)
  expect(document.openapi).toBeTypeOf("string")
  return yield* Effect.forEach(
    operations.filter(({ method }) => method === "GET"),
    ({ path }) => {
      const address = path
        .replace("{projectId}", story.projectId)
        .replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(ids[name] ?? "1"))
      return Effect.map(story.send("GET", address), (answer) => `${path}: ${textOf(answer)}`)
    }
  )
})

const textOf = ({ body, headers, status }: Answer): string => JSON.stringify([status, [...headers], body])

/** What is answered while the database fails under a door. */
const faults = Effect.fnUntraced(function* (story: Story) {
  const texts: Array<string> = []
  for (const [table, path] of [
    ["tasks", `/api/projects/${story.projectId}/tasks`],
    ["api_tokens", "/api/me"],
    ["webhooks", `/api/projects/${story.projectId}/agents`]
  ]) {
    yield* ask(story.access, `alter table kb.${table} rename to away`)
    const answer = yield* story.send("GET", path ?? "")
    texts.push(textOf(answer))
    yield* ask(story.access, `alter table kb.away rename to ${table}`)
  }
  expect(texts[0]).toMatch(/^\[500/)
  return texts
})

/** The commands of all programs on this machine. */
const commands = Effect.sync(() => execFileSync("ps", ["-ww", "-A", "-o", "args="], { encoding: "utf8" }))

describe("A secret", () => {
  it.live("stands in no table, log line, span, answer, stream or list of programs", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const operator = given()
        const { collector, lines, story } = yield* start(operator)
        const diary = yield* newDiary
        const shop = yield* httpServer(diary)
        const headers = { Authorization: { secret: "TROPISM_SECRET_SHOP", prefix: "Bearer " } }
        yield* addServer(story, { type: "http", url: shop.url, headers }, { name: "far" })
        yield* addServer(story, { type: "http", url: "http://127.0.0.1:1/mcp", headers }, { name: "gone" })
        for (const MODE of ["well", "broken"])
          yield* addServer(story, program(diary, { MODE, SECRET: { secret: "TROPISM_SECRET_PROGRAM" } }), {
            name: `near-${MODE}`
          })
        expect(shop.heard.map((each) => each.headers["authorization"])).toContain(
          `Bearer ${operator["MCP server"]}`
        )
        const hook = yield* receiver()
        const whsec = `whsec_${Buffer.from(canary("subscriber")).toString("base64")}`
        yield* subscribing(story, hook.url, { delivery: { secret: whsec } })
        const people = yield* told(story, operator["JWT secret"])
        const ids: Json = yield* furnish(story, "their")
        yield* hook.until(1)
        const asker = yield* story.post("/agents", {
          name: "asker",
          prompt: "Ask.",
          triggerType: "manual",
          model: wireModel
        })
        yield* story.post(`/agents/${asker.id}/trigger`, {})
        const runs = yield* eventually(story.get("/runs?limit=200"), (page) =>
          page.items.every((run: Json) => run.completedAt !== null)
        )
        // The provider told the key back, and that is why a run failed.
        expect(runs.items.some((run: Json) => run.status === "failed")).toBe(true)

        const passwords = {
          "database of the server": new URL(Redacted.value(story.access.serverUrl)).password,
          "database of the owner": new URL(Redacted.value(story.access.ownerUrl)).password
        }
        const secrets: Secrets = { ...operator, ...passwords, ...people, subscriber: whsec.slice(6) }
        expect(Object.entries(secrets).filter(([, secret]) => secret.length < 16)).toEqual([])

        const stream = yield* openStream(story, `/api/projects/${story.projectId}/events`)
        const [first] = yield* feedOf(story, 1)
        const replayed = yield* openStream(story, `/api/projects/${story.projectId}/events`, "0")
        yield* make(story, "Person")
        yield* stream.until((heard) => heard.length > 0)
        yield* replayed.until((heard) => heard.length > 1)
        expect(first.id).toBeTypeOf("string")
        const talks = yield* Effect.forEach(
          ["tools/list", "resources/list", "prompts/list", "nonsense"],
          (method) => rpc(story, method, {})
        )
        const failed = yield* faults(story)
        const answers = yield* everyAnswer(story, ids)
        const spans = yield* eventually(
          Effect.sync(() => collector.texts),
          (texts) => texts.length > 2
        )
        const readings: Readonly<Record<string, ReadonlyArray<string>>> = {
          tables: yield* everyRow(story),
          "log lines": lines,
          spans,
          answers,
          errors: failed,
          streams: [...stream.heard, ...replayed.heard].map((heard) => JSON.stringify(heard)),
          "MCP answers": talks.map((answer) => JSON.stringify(answer)),
          deliveries: hook.all.map((delivered) => JSON.stringify(delivered)),
          programs: [yield* commands]
        }
        // What is no secret is found where it is: these looks see something.
        for (const place of ["tables", "answers", "spans"] as const)
          expect([place, foundIn({ project: story.projectId }, readings[place]?.join() ?? "")]).toEqual([
            place,
            ["project"]
          ])
        expect(lines.join()).toContain("ERR_JWS_SIGNATURE_VERIFICATION_FAILED")
        for (const [place, texts] of Object.entries(readings)) {
          expect([place, texts.join("").length > 100]).toEqual([place, true])
          const found = texts
            .map((text) => ({ secrets: foundIn(secrets, text), text }))
            .filter((each) => each.secrets.length > 0)
            .map((each) => ({ secrets: each.secrets, text: each.text.slice(0, 2_000) }))
          expect([place, found]).toEqual([place, []])
        }
      })
    )
  )
})
