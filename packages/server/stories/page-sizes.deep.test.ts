/**
 * What is read at once of an export or a dump is bounded in bytes, whatever came before.
 */
import { describe, expect, layer } from "@effect/vitest"
import { ProjectId, UserId } from "@tropism/domain/ids"
import { Effect, Stream } from "effect"
import { dumpLimits } from "../src/database/limits.ts"
import { Dumper } from "../src/tenancy/dump.ts"
import { Exporter } from "../src/graph/exporter.ts"
import { transferLimits } from "../src/limits.ts"
import { filledBy } from "../testing/filled-database.ts"

const project = ProjectId.make("01990000-0000-7000-8000-000000000001")

/** So many small ones that the reads have become long, and then large ones. */
const [small, large] = [400, 20]
const all = small + large
const largeBytes = 250_000

const sqlId = (kind: number): string => `('0199000${kind}-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`
const properties = `jsonb_build_object('text', repeat('x', case when n <= ${small} then 1 else ${largeBytes} end))`

const filling: ReadonlyArray<string> = [
  `insert into kb.projects (id, name, created_by) values ('${project}', 'x', 'ada')`,
  `insert into kb.graph_objects (id, project_id, type, properties, version, actor_type, actor_id)
    select ${sqlId(1)}, '${project}', 'Note', ${properties}, 1, 'user', 'ada' from generate_series(1, ${all}) n`,
  `insert into kb.graph_relationships (id, project_id, type, from_id, to_id, properties, version, actor_type, actor_id)
    select ${sqlId(2)}, '${project}', 'NEXT', ${sqlId(1)}, '01990001-0000-7000-8000-000000000001', ${properties}, 1, 'user', 'ada'
    from generate_series(2, ${all}) n`,
  `insert into kb.graph_object_versions (object_id, version, project_id, type, properties, actor_type, actor_id, event_id)
    select id, 1, project_id, 'created', properties, actor_type, actor_id, id from kb.graph_objects`,
  `insert into kb.graph_relationship_versions (relationship_id, version, project_id, type, properties, actor_type, actor_id, event_id)
    select id, 1, project_id, 'created', properties, actor_type, actor_id, id from kb.graph_relationships`
]

/** How many bytes were handed over at once, and the number of lines: only the last piece of them is no whole piece. */
const pagesOf = (lines: Stream.Stream<Uint8Array>) =>
  Stream.runFold(
    lines,
    () => ({ pages: [] as Array<number>, bytes: 0, lines: 0 }),
    ({ bytes, lines, pages }, piece) => {
      const sum = bytes + piece.length
      const isOver = piece.length < dumpLimits.pieceBytes
      return {
        pages: isOver ? [...pages, sum] : pages,
        bytes: isOver ? 0 : sum,
        lines: lines + Buffer.from(piece).toString("latin1").split("\n").length - 1
      }
    }
  )

layer(filledBy(filling), { excludeTestServices: true, timeout: "2 minutes" })((it) => {
  describe("What is read at once", () => {
    it.effect.each(["now", "then"])("of an export of %s", (when) =>
      Effect.gen(function* () {
        const exporter = yield* Exporter
        const asOf = when === "now" ? undefined : new Date()
        const { lines, pages } = yield* pagesOf(
          exporter.lines(project, { types: undefined, asOf }, Effect.never)
        )
        expect(lines).toBe(2 * all - 1)
        expect(Math.max(...pages)).toBeLessThan(transferLimits.exportPageBytes + 2 * largeBytes)
        // Nothing is read row by row for that.
        expect(pages.length).toBeLessThan(all / 2)
      })
    )

    it.effect("of a dump", () =>
      Effect.gen(function* () {
        const dumper = yield* Dumper
        const { lines, pages } = yield* pagesOf(dumper.lines(project, UserId.make("ada"), Effect.never))
        expect(lines).toBeGreaterThanOrEqual(4 * all)
        expect(Math.max(...pages)).toBeLessThan(dumpLimits.pageBytes + 2 * largeBytes)
        expect(pages.length).toBeLessThan(all)
      })
    )
  })
})
