/**
 * A row that refers to a row of its own table comes back, whichever of the two is written first.
 *
 * A run's id has the time of the server that made it, and a context the moment at
 * which its transaction began: neither says which of two was there first.
 */
import { createHash } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { endLineOf } from "@tropism/domain/dump"
import { Effect } from "effect"
import { dumpLimits } from "../../server/src/database/limits.ts"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { ask } from "../../server/testing/owner-rows.ts"
import { type Json, newProject, startServer, type Story, storyIn } from "../../server/testing/platform.ts"
import { folder, json, tropism } from "../testing/dump-words.ts"

/** A run whose clock was ahead, and one that it spawned on a server whose clock was not. */
const [parent, child] = ["0190ffff-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000001"]

/** So many that no batch has them all. */
const between = dumpLimits.batchRows + 100

/** Runs and contexts of which those that came of another one are first by all that they are put in order by. */
const families = Effect.fnUntraced(function* (story: Story) {
  const agent = yield* story.post("/agents", { name: "teller", prompt: "Tell.", triggerType: "manual" })
  const insert = (table: string, columns: string, rows: string) =>
    ask(
      story.access,
      `insert into kb.${table} (project_id, agent_id, ${columns}) select $1::uuid, $2::uuid, ${rows}`,
      [story.projectId, agent.id]
    )
  const runs = (rows: string) =>
    insert(
      "agent_runs",
      "id, agent_version, status, trigger, depth, completed_at, context_name, parent_run_id, ancestors, spawn_depth",
      rows
    )
  const of = `1, 'completed', '{"type": "manual"}', 0, now()`
  yield* runs(`'${parent}', ${of}, 'parent', null, '{}', 0`)
  yield* runs(`'${child}', ${of}, 'child', '${parent}', '{${parent}}', 1`)
  yield* runs(
    `('01900001-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, ${of}, 'run-' || n, null, '{}', 0 from generate_series(1, ${between}) n`
  )
  const contexts = (rows: string) => insert("contexts", "name, created_at, forked_from, forked_at", rows)
  yield* contexts(`'forked', now(), null, null`)
  yield* contexts(`'fork', now() - interval '2 hours', 'forked', 0`)
  yield* contexts(
    `'context-' || n, now() - interval '1 hour', null, null from generate_series(1, ${between}) n`
  )
})

const isA = (table: string) => (line: string) =>
  line.includes(table === "agent_runs" ? '"parent_run_id": ' : '"forked_from": ')

/** The lines of a dump with its rows changed, and with the last line that they need. */
const forged = (file: string, change: (rows: ReadonlyArray<string>) => ReadonlyArray<string>) => {
  const [head = "", ...rows] = readFileSync(file, "utf8").split("\n").slice(0, -2)
  const text = `${[head, ...change(rows)].join("\n")}\n`
  const sha256 = createHash("sha256").update(text).digest("hex")
  writeFileSync(file, text + endLineOf({ rows: rows.length, sha256 }))
}

/** Runs as they were dumped before they came in the order of their families. */
const inOrderOfIds = (rows: ReadonlyArray<string>) => {
  const first = rows.findIndex(isA("agent_runs"))
  const runs = rows.filter(isA("agent_runs"))
  const idOf = (row: string): string => JSON.parse(row).id
  const sorted = runs.toSorted((one, other) => (idOf(one) < idOf(other) ? -1 : 1))
  return [...rows.slice(0, first), ...sorted, ...rows.slice(first + runs.length)]
}

describe("Requirement: a project comes back whatever the clocks of its servers said", () => {
  it.live("its runs below those that spawned them, and its forks below what they were forked from", () =>
    Effect.gen(function* () {
      const here = yield* freshDatabase
      const story = yield* newProject(yield* startServer(here), here)
      yield* families(story)
      const file = join(yield* folder, "families.dump")
      yield* json(story, "dump", "--project", story.projectId, "-o", file)
      const ids = readFileSync(file, "utf8")
        .split("\n")
        .filter(isA("agent_runs"))
        .map((line): string => JSON.parse(line).id)
      expect(ids.indexOf(parent)).toBeLessThan(ids.indexOf(child))
      // A dump of the version before has them as their ids are.
      forged(file, inOrderOfIds)

      const other = yield* freshDatabase
      const elsewhere = yield* startServer(other)
      const moved = yield* json(elsewhere, "restore", file)
      const there = storyIn(elsewhere, other, moved.project.id)
      expect(moved.keptIds).toBe(true)
      expect((yield* there.get(`/runs?parentRunId=${parent}`)).items).toMatchObject([
        { id: child, parentRunId: parent }
      ])
      expect((yield* there.get("/contexts/fork")).forkedFrom).toEqual({ name: "forked", at: 0 })

      // What refers to a row that is not there is refused as before.
      const gone = child.replace("01900000", "01900009")
      forged(file, (rows) =>
        rows.map((row) => row.replaceAll(`"parent_run_id": "${parent}"`, `"parent_run_id": "${gone}"`))
      )
      const { error, exitCode } = yield* tropism(elsewhere, "restore", file)
      expect(exitCode).toBe(1)
      expect(error).toContain("agent_runs_parent_run_id_fkey")
      expect((yield* json(elsewhere, "projects")).map(({ id }: Json) => id)).toEqual([moved.project.id])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
