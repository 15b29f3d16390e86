/**
 * A server that is stopped and started on one database, and the graph in between.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, type Scope } from "effect"
import { direct } from "@tropism/domain/actor"
import type { Change } from "@tropism/domain/change"
import { ProjectId } from "@tropism/domain/ids"
import { Database } from "../src/database/database.ts"
import { poolLayer } from "../src/database/pool.ts"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { Gateway } from "../src/graph/gateway.ts"
import { Ids } from "../src/ids.ts"
import { Models } from "../src/models/models.ts"
import { platformLayer } from "../src/platform.ts"
import { startServer, type Story, storyIn } from "./platform.ts"

/** Tells one part of a story while a server runs; the server has ended when this has. */
export const whileServing = <A>(
  access: PostgresAccess,
  projectId: string,
  tell: (story: Story) => Effect.Effect<A, never, Scope.Scope>
): Effect.Effect<A> =>
  Effect.scoped(Effect.flatMap(startServer(access), (doors) => tell(storyIn(doors, access, projectId))))

/** Every service on a database, and no loop: nothing dispatches, works or sweeps. */
export const platformOn = (access: PostgresAccess) => {
  const pool = poolLayer({ url: access.serverUrl, startupParameters: access.serverStartupParameters })
  return platformLayer.pipe(
    Layer.provide(Layer.mergeAll(pool, Ids.layer, Models.layer)),
    Layer.provide(NodeServices.layer)
  )
}

/** Uses the services of a server that is not running. */
export const unserved = <A, E>(
  access: PostgresAccess,
  effect: Effect.Effect<A, E, Layer.Success<typeof platformLayer>>
): Effect.Effect<A> => effect.pipe(Effect.provide(platformOn(access)), Effect.orDie)

/** Commits a user's changes where no server runs: nothing dispatches them, nothing works on them. */
export const changeUnserved = (
  access: PostgresAccess,
  projectId: string,
  ...changes: ReadonlyArray<Change>
): Effect.Effect<void> =>
  unserved(
    access,
    Effect.gen(function* () {
      const database = yield* Database
      const gateway = yield* Gateway
      const actor = { actorType: "user", actorId: "admin" } as const
      for (const change of changes)
        yield* database.inProject(ProjectId.make(projectId), gateway.apply(change, { actor, cause: direct }))
    })
  )
