/**
 * The rows of a dump on their way into another project: which ids they have there, and what of them is made anew.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * Ids stay where none is taken. Else all of them move back by one step of time,
 * so their order stays; an id is moved wherever it stands, in logs and in texts
 * as well, and what only looks like one is left alone. Hashes over ids follow them.
 */
import { createHash } from "node:crypto"
import type { DumpHead, DumpTable } from "@tropism/domain/dump"
import type { ProjectId } from "@tropism/domain/ids"
import { hasExponent } from "@tropism/domain/json-text"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Ids } from "../ids.ts"
import { orDie, ProjectTransaction } from "./database.ts"
import { DumpRefused } from "./dump-file.ts"
import { rehashed } from "./restored-digests.ts"

/** The column that has the id by which others know a row, of the tables that have one. */
export const idColumnOf = ({ columns, name }: DumpTable): string | undefined =>
  name === "graph_purges" ? "entity_id" : columns.includes("id") ? "id" : undefined

const anId = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g

const timeBits = 2 ** 48

/** The id that lies a step before another. */
export const stepBack = (id: string, stepMs: number): string => {
  const time = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
  const text = ((time - stepMs + timeBits) % timeBits).toString(16).padStart(12, "0")
  return `${text.slice(0, 8)}-${text.slice(8)}${id.slice(13)}`
}

export const makeRestoredRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids

  /** Makes texts of rows those of the copy. */
  const moved = Effect.fnUntraced(function* (
    texts: ReadonlyArray<string>,
    { head, stepMs }: { readonly head: DumpHead; readonly stepMs: number }
  ) {
    const { projectId } = yield* ProjectTransaction
    const own = texts.map((text) => text.replaceAll(head.project.id, projectId))
    if (stepMs === 0) return own
    const seen = [...new Set(own.flatMap((text) => text.match(anId) ?? []))]
    const known = yield* sql<{ id: string }>`
      select id from kb.restored_ids where project_id = ${projectId} and id = any(${seen}::uuid[])`
    const steps = new Map(known.map(({ id }) => [id, stepBack(id, stepMs)]))
    return own.map((text) => text.replace(anId, (id) => steps.get(id) ?? id))
  }, orDie)

  /** Makes what a dump does not have of a row: a webhook has a token that nobody knows, until it is rotated. */
  const completed = Effect.fnUntraced(function* (table: DumpTable, texts: ReadonlyArray<string>) {
    if (table.name !== "webhooks") return { columns: table.columns, texts }
    const made = yield* Effect.forEach(texts, (text) =>
      Effect.map(ids.secret, (secret) =>
        JSON.stringify({ ...JSON.parse(text), token_hash: createHash("sha256").update(secret).digest("hex") })
      )
    )
    return { columns: [...table.columns, "token_hash"], texts: made }
  })

  /** Writes rows of one table. */
  const write = Effect.fnUntraced(function* (
    table: DumpTable,
    texts: ReadonlyArray<string>,
    copy: { readonly head: DumpHead; readonly stepMs: number }
  ) {
    // PostgreSQL writes none; one of eight characters may take 131,072 where it is kept.
    if (texts.some(hasExponent))
      return yield* new DumpRefused({
        detail: `This dump was written by no server: a row of ${table.name} has a number with an exponent. Nothing was restored.`
      })
    const own = yield* moved(texts, copy)
    const rows = yield* completed(
      table,
      own.map((text, index) => rehashed(table, texts[index] ?? text, text))
    )
    yield* sql`select kb.restore_rows(${table.name}, ${rows.columns}::text[], ${`[${rows.texts.join(",")}]`}::text::jsonb)`
  }, orDie)

  /** Remembers which ids are those of rows that come. */
  const remember = Effect.fnUntraced(function* (found: ReadonlyArray<string>) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`insert into kb.restored_ids (project_id, id) select ${projectId}, unnest(${found}::uuid[]) on conflict do nothing`
  }, orDie)

  /** Forgets them all. */
  const forget = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    yield* sql`delete from kb.restored_ids where project_id = ${projectId}`
  }).pipe(orDie)

  return { write, remember, forget }
})

/** The id of the copy's project, and of nothing else, is another in any case. */
export const newId = (head: DumpHead, projectId: ProjectId, id: string, stepMs: number): string =>
  id === head.project.id ? projectId : stepBack(id, stepMs)
