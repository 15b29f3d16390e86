/**
 * The browsers in which somebody is signed in, and ending that.
 *
 * Whoever asks is told of those sessions of theirs that reach no further than the
 * credential with which they ask: a token of one project tells of no other.
 */
import { Timestamp, TokenId } from "@tropism/domain/ids"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Page, PageQuery } from "./page.ts"
import { InvalidInput, NotFound } from "./problems.ts"

export const Session = Schema.Struct({
  id: TokenId,
  /** What the browser called itself; null where it did not. */
  browser: Schema.NullOr(Schema.String),
  /** Whether this request came in by it. */
  isCurrent: Schema.Boolean,
  createdAt: Timestamp,
  expiresAt: Schema.NullOr(Timestamp),
  /** To the hour. */
  lastUsedAt: Schema.NullOr(Timestamp)
}).annotate({ identifier: "Session" })
export type Session = typeof Session.Type

export class SessionsApi extends HttpApiGroup.make("sessions")
  .add(
    /** Your own, newest first. */
    HttpApiEndpoint.get("list", "/sessions", {
      query: PageQuery,
      success: Page(Session),
      error: [InvalidInput]
    }),
    /** Signs you out everywhere but here, and ends the streams that are open there. */
    HttpApiEndpoint.delete("endOthers", "/sessions", {
      success: Schema.Struct({ ended: Schema.Int })
    }),
    /** Signs you out of one browser, and ends its open streams. */
    HttpApiEndpoint.delete("end", "/sessions/:sessionId", {
      params: { sessionId: TokenId },
      success: HttpApiSchema.NoContent,
      error: [NotFound]
    })
  )
  .prefix("/api/me")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
