/**
 * A server in which something happens exactly when it passes a named place.
 */
import { Context, Effect, Layer, type Logger } from "effect"
import { CrashPoint, type CrashPointName } from "../src/crash-point.ts"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { freshDatabase } from "./fresh-database.ts"
import { newProject, startServer } from "./platform.ts"

/** Whoever is held inside of a transaction is none that stands still: a busy machine takes its time for what is done meanwhile. */
export const patiently = (access: PostgresAccess): PostgresAccess => ({
  ...access,
  serverStartupParameters: {
    ...access.serverStartupParameters,
    idle_in_transaction_session_timeout: "60000"
  }
})

export const interposedServer = Effect.fn("interposedServer")(function* (
  access: PostgresAccess,
  loggers: ReadonlyArray<Logger.Logger<unknown, unknown>> = []
) {
  let planned: { readonly place: CrashPointName; readonly act: Effect.Effect<void> } | undefined
  const hit = (name: CrashPointName): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (name !== planned?.place) return Effect.void
      const { act } = planned
      planned = undefined
      return act
    })
  const doors = yield* Effect.provideService(startServer(patiently(access), loggers), CrashPoint, { hit })
  return {
    doors,
    /** Whoever passes the place next does not go on before this is done. */
    interpose: (place: CrashPointName, act: Effect.Effect<void>) =>
      Effect.sync(() => void (planned = { place, act }))
  }
})

/** One such server for the stories of a file. */
export class Interposed extends Context.Service<
  Interposed,
  { readonly server: Effect.Success<ReturnType<typeof interposedServer>>; readonly access: PostgresAccess }
>()("@tropism/server/testing/Interposed") {
  static readonly layer = Layer.effect(
    Interposed,
    Effect.gen(function* () {
      const access = yield* freshDatabase
      return { server: yield* interposedServer(access), access }
    })
  )
}

/** A project of one's own in it. */
export const newInterposedStory = Effect.flatMap(Interposed, ({ access, server }) =>
  newProject(server.doors, access)
)
