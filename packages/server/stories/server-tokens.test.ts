/**
 * Tokens that reach every project: there are as many as there may be, also when several are made at once.
 */
import { describe, expect, it } from "@effect/vitest"
import { tokenBounds } from "@tropism/api/members-api"
import { Effect, Fiber } from "effect"
import { connect } from "../src/database/postgres-access.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { ask } from "../testing/owner-rows.ts"
import { startServer } from "../testing/platform.ts"
import { whenWaiting } from "../testing/server-connections.ts"

/** Lets whoever writes a token that was asked for wait until the scope's owner lets go. */
const heldAt = [
  `create function kb.wait_for_the_story() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(42); return new; end $$`,
  `create trigger wait_for_the_story before insert on kb.api_tokens for each row when (new.created_by = 'admin')
    execute function kb.wait_for_the_story()`
]

describe("Requirement: a server has a bounded number of tokens", () => {
  it.live("of two that are made at once for the last place, one is refused", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const server = yield* startServer(access)
      yield* ask(
        access,
        `insert into kb.api_tokens (id, hash, user_id, role, name) select gen_random_uuid(), n::text, 'admin', 'viewer', 'n' from generate_series(1, $1) n`,
        [tokenBounds.perProjectMax - 1]
      )
      for (const statement of heldAt) yield* ask(access, statement)
      const owner = yield* connect(access.ownerUrl)
      yield* owner.query("select pg_advisory_lock(42)")
      const making = yield* Effect.forEach(["one", "other"], (name) =>
        Effect.forkScoped(server.send("POST", "/api/tokens", { name, userId: "eve", role: "viewer" }))
      )
      yield* whenWaiting(access, 2)
      yield* owner.query("select pg_advisory_unlock(42)")
      const statuses = yield* Effect.forEach(making, (each) =>
        Effect.map(Fiber.join(each), ({ status }) => status)
      )
      expect(statuses.toSorted()).toEqual([201, 409])
    })
  )
})
