/**
 * Keeps the secrets of event subscribers so that the database alone tells nobody what they are.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * A secret is sealed for its subscription: moved to another row it opens no more.
 * One that a program of before has written down as it is, or under a key that was
 * replaced, is sealed anew when a program starts that can open it.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { keyIdOf } from "../database/sealed-text.ts"
import { Sealing } from "../database/sealing.ts"
import { eventLimits } from "./event-limits.ts"

interface SecretRow {
  readonly id: string
  readonly handle: string
  readonly secret: string
  readonly previousSecret: string | null
}

const placeOf = (projectId: ProjectId, handle: string): string => `event subscription ${projectId} ${handle}`

/** What seals and opens the secrets of subscriptions. */
export const makeEventSecrets = Effect.map(Sealing, ({ keyIds, open, seal }) => ({
  keyIds,
  seal: (handle: string, secret: string) =>
    Effect.flatMap(ProjectTransaction, ({ projectId }) => seal(placeOf(projectId, handle), secret)),
  /** Undefined where it was sealed with a key that this program does not have, or for another subscription. */
  open: (projectId: ProjectId, handle: string, kept: string): string | undefined =>
    keyIdOf(kept) === undefined ? kept : open(placeOf(projectId, handle), kept)
}))

/** Seals with the current key what is not; a program calls it when it starts. */
export const sealEventSecrets = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database
  const sealing = yield* Sealing
  const secrets = yield* makeEventSecrets

  const sealBatch = Effect.fnUntraced(function* (after: string) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<SecretRow>`
      select id, handle, secret, previous_secret from kb.event_subscriptions
      where project_id = ${projectId} and id > ${after}::uuid
      order by id limit ${eventLimits.sealedTogether} for no key update`
    const sealed: Array<object> = []
    for (const { handle, id, previousSecret, secret } of rows) {
      const again = (kept: string | null) => {
        const text = kept === null ? undefined : secrets.open(projectId, handle, kept)
        return text === undefined ? Effect.succeed(kept) : secrets.seal(handle, text)
      }
      sealed.push({ id, secret: yield* again(secret), previous: yield* again(previousSecret) })
    }
    yield* sql`
      update kb.event_subscriptions kept set secret = row.secret, previous_secret = row.previous
      from jsonb_to_recordset(${JSON.stringify(sealed)}::text::jsonb) as row(id uuid, secret text, previous text)
      where kept.project_id = ${projectId} and kept.id = row.id`
    return rows.length < eventLimits.sealedTogether ? undefined : rows.at(-1)?.id
  }, orDie)

  for (const projectId of yield* sealing.unsealed) {
    let after: string | undefined = "00000000-0000-0000-0000-000000000000"
    while (after !== undefined) after = yield* database.inProject(projectId, sealBatch(after))
  }
})
