/**
 * A file of the largest size comes back of a dump, byte for byte.
 */
import { createHash, randomBytes } from "node:crypto"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { attachmentMaxBytes } from "@tropism/api/attachments-api"
import { Effect } from "effect"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { newProject, startServer, type Story, storyIn } from "../../server/testing/platform.ts"
import { folder, json } from "../testing/dump-words.ts"

const beginning = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const picture = new Uint8Array(Buffer.concat([beginning, randomBytes(attachmentMaxBytes - beginning.length)]))

const digestOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")

const download = (from: Story, digest: string) =>
  Effect.promise(() =>
    fetch(`${from.url}/api/projects/${from.projectId}/attachments/${digest}`, {
      headers: { authorization: `Bearer ${from.token}` }
    }).then((response) => response.bytes())
  )

describe("Requirement: whatever may be kept can be dumped and restored", () => {
  it.live("an attachment of the largest size, beside its original under ids of its own, and elsewhere", () =>
    Effect.gen(function* () {
      const [here, other] = [yield* freshDatabase, yield* freshDatabase]
      const story = yield* newProject(yield* startServer(here), here)
      const sent = yield* story.send(
        "POST",
        `/api/projects/${story.projectId}/attachments?type=image/png`,
        picture,
        { "content-type": "application/octet-stream" }
      )
      expect(sent.status).toBe(201)
      yield* story.post("/objects", { type: "Picture", key: "one", properties: { of: sent.body.digest } })
      const file = join(yield* folder, "large.dump")
      yield* json(story, "dump", "--project", story.projectId, "-o", file)

      const beside = yield* json(story, "restore", file, "--name", "A copy")
      const elsewhere = yield* startServer(other)
      const moved = yield* json(elsewhere, "restore", file)
      expect([beside.keptIds, moved.keptIds]).toEqual([false, true])
      const copies = [storyIn(story, here, beside.project.id), storyIn(elsewhere, other, moved.project.id)]
      for (const copy of copies)
        expect(digestOf(yield* download(copy, sent.body.digest))).toBe(digestOf(picture))
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
