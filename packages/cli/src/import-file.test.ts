/**
 * The import: what is sent, what is shown, and each way in which it can end.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { fakeServer } from "../testing/fake-server.ts"
import { id } from "../testing/records.ts"
import { invoke } from "../testing/invoke.ts"

const finished = {
  type: "finished",
  created: 2,
  updated: 1,
  deleted: 0,
  unchanged: 3,
  relationshipsCreated: 4,
  relationshipsDeleted: 0
}
const progress = (done: number) => ({ type: "progress", done, total: 8 })

const lockfile = (text: string) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const file = yield* files.makeTempFileScoped({ suffix: "package-lock.json" })
    yield* files.writeFileString(file, text)
    return file
  })

describe("tropism import", () => {
  it.live("sends the file as it is, and prints a line for each quarter and what changed", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({
        importLines: [progress(1), progress(2), progress(3), progress(8), finished]
      })
      const file = yield* lockfile('{"lockfileVersion":3}')
      const { exitCode, out } = yield* invoke(server, "import", file)
      expect(exitCode).toBe(0)
      expect(out.map((line) => line.replace(/Importing \S+/, "Importing"))).toEqual([
        "Importing 2 of 8",
        "Importing 8 of 8",
        "Objects: 2 created, 1 updated, 3 unchanged. Relationships: 4 created."
      ])
      expect(server.requests.at(-1)).toEqual({
        line: expect.stringMatching(/^POST \/api\/projects\/[^/]+\/import\?format=package-lock&name=[^&]+$/),
        body: '{"lockfileVersion":3}'
      })
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("prints nothing but the record with --json", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ importLines: [progress(4), finished] })
      const { out } = yield* invoke(server, "import", yield* lockfile("{}"), "--json")
      expect(JSON.parse(out.join("\n"))).toEqual(finished)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  const endings = [
    {
      name: "the server stops it",
      importLines: [progress(1), { type: "failed", message: "The disk is full" }],
      said: "The import stopped: The disk is full"
    },
    {
      name: "the answer ends early",
      importLines: [progress(1)],
      said: "The connection broke during the import. Run the same command again"
    },
    {
      name: "the answer is cut in a line",
      importLines: [progress(1), '{"type":"prog'],
      said: "The connection broke during the import. Run the same command again"
    }
  ]
  it.live.each(endings)("fails with a sentence when $name", ({ importLines, said }) =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ importLines })
      const { error, exitCode } = yield* invoke(server, "import", yield* lockfile("{}"))
      expect(error).toContain(said)
      expect(exitCode).toBe(1)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("says what the server found wrong in the file", () =>
    Effect.gen(function* () {
      const problem = {
        type: "/problems/invalid-input",
        status: 422,
        title: "Something in the request is wrong",
        errors: [{ pointer: "", message: "This is no JSON" }]
      }
      const server = yield* fakeServer({
        failing: new Map([[`/api/projects/${id("project", 1)}/import`, { status: 422, body: problem }]])
      })
      const { error, exitCode } = yield* invoke(server, "import", yield* lockfile("{"))
      expect({ error, exitCode }).toEqual({ error: "This is no JSON.", exitCode: 1 })
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("sends nothing for a file that is none", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer()
      expect((yield* invoke(server, "import", "/nowhere/package-lock.json")).error).toBe(
        "There is no file /nowhere/package-lock.json. Give the path of a package-lock.json."
      )
      expect((yield* invoke(server, "import", "/")).error).toBe(
        "/ is not a file. Give the path of a package-lock.json."
      )
      expect(server.requests.filter(({ line }) => line.startsWith("POST"))).toEqual([])
    })
  )
})
