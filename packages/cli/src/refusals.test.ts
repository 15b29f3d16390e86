/**
 * What a server refuses: the problem that it answered goes with the failure, whichever command tells it.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem, Path } from "effect"
import { fakeServer } from "../testing/fake-server.ts"
import { invoke } from "../testing/invoke.ts"
import { agent, id, task } from "../testing/records.ts"

const root = `/api/projects/${id("project", 1)}`
const forbidden = { type: "/problems/forbidden", status: 403, title: "Not you" }
const invalid = {
  type: "/problems/invalid-input",
  status: 422,
  title: "Wrong",
  errors: [{ pointer: "/agents/0/prompt", message: "Too long" }]
}

const refused = [
  { path: "export", body: forbidden, args: ["export"] },
  { path: "dump", body: forbidden, args: ["dump", "-o", "-"] },
  { path: "import", body: forbidden, args: ["import", "FOLDER/guard.jsonl"] },
  { path: "agents/apply", body: invalid, args: ["agents", "apply", "-f", "FOLDER/guard.yaml"] },
  { path: `agents/${id("agent", 1)}`, body: forbidden, args: ["agents", "disable", "guard"] },
  { path: `tasks/${id("task", 1)}/approve`, body: forbidden, args: ["tasks", "approve", id("task", 1)] },
  {
    path: `tasks/${id("task", 1)}/reject`,
    body: forbidden,
    args: ["tasks", "reject", id("task", 1), id("task", 1)]
  }
]

const withFiles = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* files.makeTempDirectoryScoped()
  yield* files.writeFileString(path.join(folder, "guard.jsonl"), '{"type":"Person","key":"ada"}\n')
  yield* files.writeFileString(
    path.join(folder, "guard.yaml"),
    "name: guard\nprompt: Do it\ntriggerType: manual\n"
  )
  return folder
})

describe("A refusal of the server", () => {
  it.live.each(refused)("of $path has its problem", ({ args, body, path }) =>
    Effect.gen(function* () {
      const folder = yield* withFiles
      const server = yield* fakeServer({
        agents: [agent(1, { name: "guard" })],
        tasks: [task(1)],
        failing: new Map([[`${root}/${path}`, { status: body.status, body }]])
      })
      const given = args.map((arg) => arg.replace("FOLDER", folder))
      const { error, exitCode } = yield* invoke(server, ...given, "--json")
      expect(exitCode).toBe(1)
      expect(JSON.parse(error)).toMatchObject({
        error: { exitCode: 1, problem: { ...body, title: expect.any(String) } }
      })
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("asks nothing of it where more is named than one command may decide", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks: [task(1)] })
      const many = Array.from({ length: 201 }, () => id("task", 1))
      const { error, exitCode } = yield* invoke(server, "tasks", "approve", ...many)
      expect([exitCode, error]).toEqual([2, expect.stringMatching(/\b200\b.*\b201\b/)])
      expect(server.requests.filter(({ line }) => line.startsWith("POST"))).toEqual([])
    })
  )
})
