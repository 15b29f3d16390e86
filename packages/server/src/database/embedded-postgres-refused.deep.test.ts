/**
 * What is said when the own PostgreSQL cannot start, and that nothing is left behind.
 */
import * as nodeFs from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { dataFolders, holding, ordinary, refused, run, settings } from "../../testing/data-folders.ts"
import { startDatabaseProcess } from "../../testing/database-process.ts"
import { embedded, type EmbeddedOptions } from "./embedded-postgres.ts"

const { copyOfMadeFolder, newFolder } = dataFolders("refused")

const refusal = (options: EmbeddedOptions) => Effect.flip(Effect.scoped(embedded({ settings, ...options })))

describe("a start is refused", () => {
  it.live("while another program holds the folder, naming its process", () =>
    run(
      Effect.gen(function* () {
        const dataFolder = yield* copyOfMadeFolder
        const first = yield* startDatabaseProcess({ dataFolder })
        yield* holding(first)
        const said = yield* refused(yield* startDatabaseProcess({ dataFolder }))
        assert.strictEqual(said.reason, "folderHeld")
        assert.include(said.message, dataFolder)
        assert.match(said.message, new RegExp(`\\b${first.pid}\\b.* \\d{4}-\\d\\d-\\d\\d`))
        yield* first.end("SIGTERM")
      })
    )
  )

  it.live("where the folder may not be written", () =>
    run(
      Effect.gen(function* () {
        const dataFolder = yield* newFolder("unwritable")
        nodeFs.chmodSync(dataFolder, 0o555)
        const inside = yield* refused(yield* startDatabaseProcess({ dataFolder, ...ordinary }))
        assert.strictEqual(inside.reason, "folderUnusable")
        const below = yield* refused(
          yield* startDatabaseProcess({ dataFolder: `${dataFolder}/.tropism`, ...ordinary })
        )
        assert.strictEqual(below.reason, "folderUnusable")
        assert.include(below.message, "TROPISM_DATA")
      })
    )
  )

  it.live("to a copied record whose cluster another program holds", () =>
    run(
      Effect.gen(function* () {
        const dataFolder = yield* copyOfMadeFolder
        yield* embedded({ dataFolder, settings })
        const copied = yield* newFolder("copied")
        const record = JSON.parse(nodeFs.readFileSync(`${dataFolder}/database.json`, "utf8"))
        nodeFs.writeFileSync(
          `${copied}/database.json`,
          JSON.stringify({ ...record, cluster: `${dataFolder}/postgres` })
        )
        const said = yield* refusal({ dataFolder: copied })
        assert.strictEqual(said.reason, "folderHeld")
      })
    )
  )

  it.live("where the record is missing, damaged, or names a cluster that is gone", () =>
    run(
      Effect.gen(function* () {
        const dataFolder = yield* copyOfMadeFolder
        const file = `${dataFolder}/database.json`
        const text = nodeFs.readFileSync(file, "utf8")
        nodeFs.rmSync(file)
        assert.strictEqual((yield* refusal({ dataFolder })).reason, "recordDamaged")
        nodeFs.writeFileSync(file, text.slice(0, 40))
        assert.strictEqual((yield* refusal({ dataFolder })).reason, "recordDamaged")
        nodeFs.writeFileSync(file, text)
        nodeFs.rmSync(`${dataFolder}/postgres`, { recursive: true })
        const said = yield* refusal({ dataFolder })
        assert.strictEqual(said.reason, "clusterForeign")
        assert.include(said.message, `${dataFolder}/postgres`)
      })
    )
  )

  it.live("to a cluster of another version of PostgreSQL", () =>
    run(
      Effect.gen(function* () {
        const dataFolder = yield* copyOfMadeFolder
        nodeFs.writeFileSync(`${dataFolder}/postgres/PG_VERSION`, "17\n")
        const said = yield* refusal({ dataFolder })
        assert.strictEqual(said.reason, "clusterForeign")
        const words = said.message.replaceAll(dataFolder, "")
        assert.match(words, /\b17\b/)
        assert.match(words, /\b18\b/)
      })
    )
  )

  it.live("with PostgreSQL's own words when it does not start", () =>
    run(
      Effect.gen(function* () {
        const dataFolder = yield* copyOfMadeFolder
        const said = yield* refusal({ dataFolder, settings: { shared_buffers: "1kB" } })
        assert.strictEqual(said.reason, "startFailed")
        assert.include(said.message, "shared_buffers")
        assert.include(said.message, `${dataFolder}/postgres.log`)
      })
    )
  )
})
