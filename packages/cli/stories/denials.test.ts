/**
 * Denials by the command line.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { newProject, startServer } from "../../server/testing/platform.ts"
import { handingOver, worker } from "../../server/testing/sub-agent-words.ts"
import { invokeWith } from "../testing/invoke.ts"

describe("Requirement: tropism denials", () => {
  it.live("lists who tried what and why not, of an agent or a run", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      const tropism = (...args: ReadonlyArray<string>) =>
        invokeWith({ TROPISM_TOKEN: story.token }, "denials", ...args, "--url", story.url)
      expect((yield* tropism("--json")).out).toEqual(["[]"])

      const create = { tool: "create_object", arguments: { type: "Person", properties: {} } }
      const clerk = worker("clerk", handingOver(create, create), {
        capabilities: { canCreateObjects: false }
      })
      const agent = yield* story.post("/agents", clerk)
      const run = yield* story.post(`/agents/${agent.id}/trigger`)
      const listed = (yield* tropism()).out.join("\n")
      expect(listed).toMatch(/AGENT +INTERFACE +BY +TOOL +REASON +RUN +AGE/)
      expect(listed).toMatch(/clerk +run +admin +create_object .*\bcanCreateObjects\b/)

      const inRun = JSON.parse((yield* tropism("--run", run.id, "--json")).out.join("\n"))
      expect(JSON.stringify(inRun)).toContain(run.id)
      expect((yield* tropism("--agent", "clerk", "--limit", "1")).out.join("\n")).toContain("clerk")
      expect((yield* tropism("--agent", "nobody")).exitCode).toBe(1)
      expect((yield* tropism("--run", "x")).exitCode).toBe(2)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
