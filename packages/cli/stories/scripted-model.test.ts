/**
 * The example in the document of the scripted model does what the document says.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem, Path } from "effect"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { type Json, newProject, startServer } from "../../server/testing/platform.ts"
import { endedRuns } from "../../server/testing/story-words.ts"
import { invokeWith } from "../testing/invoke.ts"

const document = new URL("../../../docs/models.md", import.meta.url)

describe("docs/models.md", () => {
  it.live(
    "the example can be applied, marks what it knows, fails on what it is told to, and says what it does not know",
    () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const path = yield* Path.Path
        const text = yield* files.readFileString(yield* path.fromFileUrl(document))
        const example = /^````yaml\n([\s\S]*?)^````$/m.exec(text)?.[1] ?? ""
        const file = path.join(yield* files.makeTempDirectoryScoped(), "tea-taster.yaml")
        yield* files.writeFileString(file, example)
        const access = yield* freshDatabase
        const story = yield* newProject(yield* startServer(access), access)
        const applied = yield* invokeWith(
          { TROPISM_TOKEN: story.token },
          "agents",
          "apply",
          "-f",
          file,
          "--url",
          story.url
        )
        expect([applied.error, applied.exitCode]).toEqual(["", 0])
        const [agent] = (yield* story.get("/agents")).items
        const teas: Array<Json> = []
        for (const key of ["Sencha", "Coffee", "Rooibos"])
          teas.push(yield* story.post("/objects", { type: "Tea", key, properties: {} }))
        const runs = yield* endedRuns(story, agent, 3)
        expect(runs.map(({ status, summary }) => `${status}: ${summary}`).toSorted()).toEqual([
          "completed: I do not know Rooibos.",
          "completed: The colour is noted.",
          expect.stringMatching(/^failed: /)
        ])
        expect(JSON.stringify(runs)).toContain("The cup fell down")
        expect((yield* story.get(`/objects/${teas[0]?.id}`)).properties).toEqual({ colour: "green" })
      }).pipe(Effect.provide(NodeServices.layer))
  )
})
