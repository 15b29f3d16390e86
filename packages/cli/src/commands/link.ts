/**
 * `tropism link`: the link that signs a browser in, again, for whom the one that the start printed has scrolled away.
 */
import { Clock, Effect } from "effect"
import { Command } from "effect/cli"
import { onServer } from "../access.ts"
import { printFacts, printOr } from "../print-records.ts"
import { formatWait } from "../terminal/time.ts"

export const linkCommand = Command.make("link", {}, () =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const link = yield* onServer((client) => client.serverTokens.loginLink())
    yield* printOr(
      link,
      printFacts([
        ["link", link.url],
        [
          "note",
          `It signs in one browser as the server's admin, once, within ${formatWait(link.expiresAt, now)}.`
        ]
      ])
    )
  })
).pipe(
  Command.withDescription("Create a one-time login link for the admin"),
  Command.withExamples([
    { command: "tropism link", description: "Sign in to the console of the local server" }
  ])
)
