/**
 * The words in which stories speak of foreign MCP servers.
 */
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createMcpHandler } from "@modelcontextprotocol/server"
import { Effect } from "effect"
import { makeStoryServer } from "./mcp-tools.ts"
import type { Json, Story } from "./platform.ts"

/** A folder in which a story's MCP server writes down what it was asked, until the scope ends. */
export interface Diary {
  readonly calls: string
  readonly overlay: string
  readonly gate: string
  /** What was called so far, oldest first. */
  readonly called: Effect.Effect<ReadonlyArray<{ readonly tool: string; readonly arguments: Json }>>
  /** The process ids of the programs that were started, and of what they started. */
  readonly started: Effect.Effect<ReadonlyArray<number>>
  /** The names of the variables that the program began with. */
  readonly environment: Effect.Effect<ReadonlyArray<string>>
  /** Changes what the server says of its tools. */
  readonly say: (tools: Record<string, object | null>) => Effect.Effect<void>
  /** Lets calls with `wait` be answered. */
  readonly open: Effect.Effect<void>
}

export const newDiary = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tropism-mcp-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder): Diary => {
    const calls = join(folder, "calls")
    const lines = Effect.sync((): ReadonlyArray<Json> =>
      existsSync(calls)
        ? readFileSync(calls, "utf8")
            .trim()
            .split("\n")
            .map((line) => JSON.parse(line))
        : []
    )
    return {
      calls,
      overlay: join(folder, "overlay"),
      gate: join(folder, "gate"),
      called: Effect.map(lines, (all) => all.filter((line) => "tool" in line)),
      started: Effect.map(lines, (all) => all.flatMap((line) => line.started ?? line.child ?? [])),
      environment: Effect.map(lines, ([first]) => first.environment),
      say: (tools) => Effect.sync(() => writeFileSync(join(folder, "overlay"), JSON.stringify(tools))),
      open: Effect.sync(() => writeFileSync(join(folder, "gate"), ""))
    }
  }
)

/** The transport of the story server as a program. */
export const program = (diary: Diary, env: Record<string, unknown> = {}) => ({
  type: "stdio",
  command: process.execPath,
  args: [join(import.meta.dirname, "mcp-stdio-server.ts")],
  env: { CALLS: diary.calls, OVERLAY: diary.overlay, GATE: diary.gate, ...env }
})

/** Adds a server to a project; all of its tools are allowed unless something else is said. */
export const addServer = (
  story: Story,
  transport: Record<string, unknown>,
  overrides: Record<string, unknown> = {}
): Effect.Effect<Json> =>
  story.post("/mcp-servers", { name: "shop", transport, allowedTools: ["*"], ...overrides })

/** One request that an HTTP server has got. */
export interface Heard {
  readonly method: string
  readonly headers: Record<string, string>
  readonly body: Json
}

/** The story server over Streamable HTTP, until the scope ends. */
export const httpServer = (
  diary: Diary,
  { isOld = false, port = 0 }: { readonly isOld?: boolean; readonly port?: number } = {}
) =>
  Effect.gen(function* () {
    const heard: Array<Heard> = []
    const handler = createMcpHandler(
      () =>
        makeStoryServer({
          note: (line) => appendFileSync(diary.calls, `${JSON.stringify(line)}\n`),
          overlay: diary.overlay,
          gate: diary.gate,
          secret: "nothing"
        }),
      {}
    )
    const answer = (request: Request): Promise<Response> =>
      request
        .clone()
        .text()
        .then((body) => {
          const parsed = body === "" ? null : JSON.parse(body)
          heard.push({ method: request.method, headers: Object.fromEntries(request.headers), body: parsed })
          // A server of the revision before knows no such question.
          if (isOld && parsed?.method === "server/discover")
            return Response.json({
              jsonrpc: "2.0",
              id: parsed.id,
              error: { code: -32601, message: "Method not found" }
            })
          return handler.fetch(request)
        })
    const server = yield* Effect.acquireRelease(
      Effect.sync(() => Bun.serve({ port, hostname: "127.0.0.1", idleTimeout: 0, fetch: answer })),
      (running) => Effect.promise(() => running.stop(true))
    )
    return { url: `http://127.0.0.1:${server.port}/mcp`, heard }
  })

/** Whether a process is there. */
export const isThere = (pid: number): Effect.Effect<boolean> =>
  Effect.sync(() => {
    const stat = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, "utf8") : ""
    return stat !== "" && !/\) [ZX]/.test(stat)
  })
