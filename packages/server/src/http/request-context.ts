/**
 * What becomes known of one request while it is answered.
 *
 * Begun by `edge.ts`; whoever finds out more notes it here. It is believed for
 * counting and telling, and never for letting anybody in.
 */
import { Context } from "effect"

export interface Visit {
  /** By which the request is spoken of: the client's own where it gave one. */
  readonly id: string
  /** The SHA-256 of the credential that was found to be good, and who it is that asks by it. */
  admitted: { readonly credential: string; readonly holder: string } | undefined
  /** The path of the route that it took, as the contract has it; undefined where it took none. */
  route: string | undefined
}

/** The request under way; undefined outside any. */
export class CurrentRequest extends Context.Reference<Visit | undefined>(
  "@tropism/server/http/CurrentRequest",
  {
    defaultValue: () => undefined
  }
) {}
