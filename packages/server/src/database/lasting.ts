/**
 * What would outlive the program, and how each of it is ended without waiting for anything else.
 *
 * The scope of a server ends everything in good order, and that may take long. Whoever ends
 * the program sooner ends these first and waits for them: a PostgreSQL that nobody stopped
 * would hold its folder. Each of them has a bound of its own.
 */
import { Context, Effect, type Scope } from "effect"

/** Everything that lasts now; whoever may end the program early provides a set of its own. */
export class Lasting extends Context.Reference<Set<Effect.Effect<void>>>("@tropism/server/database/Lasting", {
  defaultValue: () => new Set<Effect.Effect<void>>()
}) {}

/** Has this ended before the program exits early, until the scope ends. */
export const endBeforeExit = (atOnce: Effect.Effect<void>): Effect.Effect<void, never, Scope.Scope> =>
  Effect.flatMap(Lasting, (lasting) =>
    Effect.acquireRelease(
      Effect.sync(() => void lasting.add(atOnce)),
      () => Effect.sync(() => void lasting.delete(atOnce))
    )
  )
