/**
 * Facts about one request that are found while it is answered.
 *
 * `edge.ts` creates it and later stages fill it in. It serves metrics and logs and never authorizes anything.
 */
import { Context } from "effect"

export interface Visit {
  /** The request id: the client's own where it sent one. */
  readonly id: string
  /** The SHA-256 of the credential that was found to be valid, and its holder. */
  admitted: { readonly credential: string; readonly holder: string } | undefined
  /** The path template of its route, as in the contract; undefined where there is none. */
  route: string | undefined
}

/** The current request; undefined outside any. */
export class CurrentRequest extends Context.Reference<Visit | undefined>(
  "@tropism/server/http/CurrentRequest",
  {
    defaultValue: () => undefined
  }
) {}
