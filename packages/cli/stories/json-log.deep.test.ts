/**
 * `TROPISM_LOG=json`: what a real server writes to standard error, line by line, as a collector of logs reads it.
 */
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { startCollector } from "../../server/testing/collector.ts"
import { calls, modelKey, refuses, says } from "../../server/testing/model-words.ts"
import { quickDataFolder } from "../../server/testing/quick-folder.ts"
import { serveAnswers } from "../../server/testing/fake-model-server.ts"
import { until } from "../testing/invoke.ts"
import { launch, launcher } from "../testing/launch.ts"
import { start } from "../testing/real-server.ts"

const trace = "0af7651916cd43dd8448eb211c80319c"

it.live("what keeps a server from starting is such a line, too", () =>
  Effect.gen(function* () {
    const server = yield* launch(launcher, ["start"], {
      TROPISM_DATA: join(yield* quickDataFolder, "data"),
      PORT: "0",
      TROPISM_LOG: "json",
      TROPISM_RATE_LIMIT: "many"
    })
    yield* until(() => server.code() !== undefined)
    expect(server.code()).toBe(1)
    expect(JSON.parse(server.error())).toMatchObject({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      level: "fatal",
      message: expect.stringContaining("TROPISM_RATE_LIMIT")
    })
  }).pipe(Effect.scoped)
)

it.live(
  "each line is an object that names its request, or its run with project and trace, and no secret",
  () =>
    Effect.gen(function* () {
      const folder = yield* quickDataFolder
      const collector = yield* startCollector
      const models = yield* serveAnswers(
        refuses(503, `Try later, ${modelKey}`),
        calls({ id: "c1", tool: "no_such_tool", arguments: {} }),
        says("Done.")
      )
      const key = Buffer.alloc(32, 9).toString("base64")
      const server = yield* start(join(folder, "data"), "0", {
        TROPISM_LOG: "json",
        TROPISM_ENCRYPTION_KEY: key,
        OPENAI_COMPATIBLE_BASE_URL: `${models.url}/v1`,
        OPENAI_COMPATIBLE_API_KEY: modelKey,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_BSP_SCHEDULE_DELAY: "40"
      })
      const send = (method: string, path: string, body: unknown, headers: Record<string, string> = {}) =>
        Effect.promise(() =>
          fetch(server.url + path, {
            method,
            headers: {
              authorization: `Bearer ${server.token}`,
              "content-type": "application/json",
              ...headers
            },
            body: JSON.stringify(body)
          }).then((answer) => answer.json())
        )
      const lines = (): ReadonlyArray<Record<string, unknown>> =>
        server.server
          .error()
          .split("\n")
          .slice(0, -1)
          .map((line) => JSON.parse(line))
      const lineWith = (facts: Record<string, unknown>) =>
        lines().find((line) => Object.entries(facts).every(([name, value]) => line[name] === value))

      const project = yield* send("POST", "/api/projects", { name: "Shop" })
      const root = `/api/projects/${project.id}`
      const agent = yield* send("POST", `${root}/agents`, {
        name: "helper",
        prompt: "Help.",
        triggerType: "manual",
        executionMode: "execute",
        tools: ["graph.*"],
        model: { provider: "openai-compatible", name: "wire-1" }
      })
      const run = yield* send("POST", `${root}/agents/${agent.id}/trigger`, {})
      expect(run).toMatchObject({ status: "completed" })
      yield* send(
        "PUT",
        `${root}/kill-switch`,
        { stopped: true, reason: "To\nlook" },
        { "x-request-id": "shop-7", traceparent: `00-${trace}-b7ad6b7169203331-01` }
      )
      yield* until(() => lineWith({ requestId: "shop-7" }) !== undefined)

      for (const line of lines())
        expect(line).toMatchObject({
          time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
          level: expect.stringMatching(/^(?:info|warn|error)$/),
          message: expect.stringMatching(/./)
        })
      const ofRun = { runId: run.id, projectId: project.id, traceId: run.id.replaceAll("-", "") }
      expect(lineWith({ runId: run.id, level: "warn" })).toMatchObject({
        ...ofRun,
        message: expect.stringMatching(/\bwire-1\b.*\b\d+ ms\b/)
      })
      expect(lineWith({ runId: run.id, tool: "no_such_tool" })).toMatchObject({
        ...ofRun,
        level: "info",
        attempt: 1
      })
      expect(lineWith({ requestId: "shop-7" })).toMatchObject({
        traceId: trace,
        projectId: project.id,
        reason: "To\nlook"
      })
      for (const secret of [server.token, key, modelKey]) expect(server.server.error()).not.toContain(secret)

      // The span of a request carries the id that the log and the answer have.
      const spanOf = () =>
        collector.spans().find(({ attributes }) => attributes["tropism.request.id"] === "shop-7")
      yield* until(() => spanOf() !== undefined)
      expect(spanOf()).toMatchObject({
        traceId: trace,
        parentId: "b7ad6b7169203331",
        kind: 2,
        status: 1,
        name: "PUT /api/projects/:projectId/kill-switch",
        attributes: { "http.request.method": "PUT", "http.response.status_code": 200 }
      })
      // Spans may come in another order than that in which they ended.
      const runsSpan = () => collector.spans().find(({ name }) => name === "invoke_agent helper")
      yield* until(() => runsSpan() !== undefined)
      expect(runsSpan()?.traceId).toBe(ofRun.traceId)
    }).pipe(Effect.scoped),
  120_000
)
