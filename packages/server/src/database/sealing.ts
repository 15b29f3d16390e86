/**
 * Seals secrets that have to be kept as they are, with the key that all programs on one database share.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * The operator gives the keys; the database knows by which name the current one
 * goes. A program that does not have that key seals nothing, so no two programs
 * ever write what the other cannot read.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { ProjectId } from "@tropism/domain/ids"
import { onlyRow, orDie, ProjectTransaction } from "./database.ts"
import { opened, sealed, type SealingKey } from "./sealed-text.ts"

/** The keys of this program: the first seals, all open. Empty where the operator gave none. */
export class SealingKeys extends Context.Reference<ReadonlyArray<SealingKey>>(
  "@tropism/server/database/SealingKeys",
  { defaultValue: () => [] }
) {}

/** Nothing can be sealed here: this program has no key, or another than the database's secrets are sealed with. */
export class SealingRefused extends Schema.TaggedError<SealingRefused>()("SealingRefused", {
  reason: Schema.Literals(["noKey", "otherKey"])
}) {}

export class Sealing extends Context.Service<
  Sealing,
  {
    /** The keys that this program can open with. */
    readonly keyIds: ReadonlyArray<string>
    /** Seals a secret for a place, with the key of the database; that stays the key until the transaction ends. */
    readonly seal: (
      place: string,
      secret: string
    ) => Effect.Effect<string, SealingRefused, ProjectTransaction>
    /** What a sealed secret says; undefined where this program cannot open it at this place. */
    readonly open: (place: string, sealedSecret: string) => string | undefined
    /** Makes this program's first key that of the database; answers the key that it is then, null before anything was sealed. */
    readonly adopt: Effect.Effect<string | null>
    /** Projects in which a secret is not sealed with the first key. */
    readonly unsealed: Effect.Effect<ReadonlyArray<ProjectId>>
  }
>()("@tropism/server/database/Sealing") {
  static readonly layer = Layer.effect(
    Sealing,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const keys = yield* SealingKeys
      const keyIds = keys.map(({ id }) => id)
      const [first] = keys

      const seal = Effect.fn("Sealing.seal")(function* (place: string, secret: string) {
        yield* ProjectTransaction
        if (first === undefined) return yield* new SealingRefused({ reason: "noKey" })
        const { keyId } = yield* Effect.flatMap(
          sql<{ readonly keyId: string }>`select kb.hold_sealing_key(${first.id}) as key_id`,
          onlyRow
        ).pipe(orDie)
        const key = keys.find(({ id }) => id === keyId)
        return key === undefined
          ? yield* new SealingRefused({ reason: "otherKey" })
          : sealed(key, place, secret)
      })

      const adopt = Effect.gen(function* () {
        if (first === undefined) return null
        const { keyId } = yield* Effect.flatMap(
          sql<{
            readonly keyId: string | null
          }>`select kb.adopt_sealing_key(${first.id}, ${keyIds}::text[]) as key_id`,
          onlyRow
        )
        return keyId
      }).pipe(orDie)

      const unsealed = Effect.gen(function* () {
        if (first === undefined) return []
        const rows = yield* sql<{
          readonly projectId: ProjectId
        }>`select project_id from kb.projects_with_unsealed_secrets(${first.id}) as project_id`
        return rows.map(({ projectId }) => projectId)
      }).pipe(orDie)

      return Sealing.of({
        keyIds,
        seal,
        open: (place, sealedSecret) => opened(keys, place, sealedSecret),
        adopt,
        unsealed
      })
    })
  )
}
