/** The services of the HTTP endpoints: tokens, sessions, live logs and readiness. Requires the database. */
import { Layer } from "effect"
import { Permits } from "./access.ts"
import { Sessions } from "./authentication.ts"
import { Closing, Readiness } from "./listener.ts"
import { LiveLogs } from "./live-logs.ts"
import { IssuedTokens, Tokens } from "./tokens.ts"
export const httpLayer = Layer.mergeAll(
  Tokens.layer,
  IssuedTokens.layer,
  Sessions.layer,
  Readiness.layer,
  Layer.provideMerge(LiveLogs.layer, Layer.merge(Closing.layer, Permits.layer))
)
