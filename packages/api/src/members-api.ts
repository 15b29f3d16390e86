/**
 * Who belongs to a project, and the tokens that let them in.
 *
 * A member has one role in the project. A token is of one member and may do what
 * both its own role and the member's allow; with the membership end the tokens.
 * The secret of a token is told once, in the answer that made it.
 */
import { ProjectId, Timestamp, TokenId, UserId } from "@tropism/domain/ids"
import { NameText } from "@tropism/domain/name-text"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Authorization, RequestJudgement, Role } from "./authorization.ts"
import { Instant } from "./instant.ts"
import { Page, PageQuery } from "./page.ts"
import { Conflict, Forbidden, InvalidInput, NotFound } from "./problems.ts"

const project = { projectId: ProjectId }
/** The id under which somebody acts: a name, an address, or the subject of your identity provider. */
const NewUserId = UserId.check(
  Schema.isPattern(/^(?!\.{1,2}$)[^\s\p{Cc}\p{Cf}](?:[^\p{Cc}\p{Cf}]*[^\s\p{Cc}\p{Cf}])?$/u, {
    message:
      "A user's id begins and ends with a visible character and has no control characters; it is not . or .."
  })
)

const member = { ...project, userId: NewUserId }

export const Member = Schema.Struct({
  userId: UserId,
  role: Role,
  /** Who let them in, and who gave them the role that they have. */
  addedBy: Schema.NullOr(UserId),
  changedBy: Schema.NullOr(UserId),
  createdAt: Timestamp,
  updatedAt: Timestamp
}).annotate({ identifier: "Member" })
export type Member = typeof Member.Type

export const MemberInput = Schema.Struct({ userId: NewUserId, role: Role })
export type MemberInput = typeof MemberInput.Type

/** Signs one browser in, once. */
const LoginLink = Schema.Struct({ url: Schema.String, expiresAt: Timestamp })

export class MembersApi extends HttpApiGroup.make("members")
  .add(
    HttpApiEndpoint.get("list", "/members", {
      params: project,
      query: PageQuery,
      success: Page(Member),
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.post("add", "/members", {
      params: project,
      payload: MemberInput,
      success: Member.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    HttpApiEndpoint.get("get", "/members/:userId", {
      params: member,
      success: Member,
      error: [NotFound]
    }),
    /** Holds from the next request of theirs on. */
    HttpApiEndpoint.patch("change", "/members/:userId", {
      params: member,
      payload: Schema.Struct({ role: Role }),
      success: Member,
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    /** Ends their tokens of this project and their open streams. Anybody may leave but the only admin. */
    HttpApiEndpoint.delete("remove", "/members/:userId", {
      params: member,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden, Conflict]
    }),
    /** A link that signs one browser in as this member, once. */
    HttpApiEndpoint.post("invite", "/members/:userId/login-link", {
      params: member,
      success: LoginLink.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

export const Token = Schema.Struct({
  id: TokenId,
  name: Schema.NullOr(Schema.String),
  userId: UserId,
  /** What the token may do at most; its member's role may allow less. */
  role: Role,
  /** The projects that it reaches, of those that you see; none where it reaches every project of the server. */
  projectIds: Schema.Array(ProjectId),
  createdBy: Schema.NullOr(UserId),
  createdAt: Timestamp,
  /** Null is never. */
  expiresAt: Schema.NullOr(Timestamp),
  /** To the hour. */
  lastUsedAt: Schema.NullOr(Timestamp)
}).annotate({ identifier: "Token" })
export type Token = typeof Token.Type

export const tokenBounds = { nameMaxChars: 100, projectsMax: 100, perProjectMax: 1_000 } as const

export const TokenInput = Schema.Struct({
  name: NameText("A token's name", tokenBounds.nameMaxChars),
  /** By itself what its member may do, and never more than you. */
  role: Schema.optional(Schema.NullOr(Role)),
  /** A member; yourself by itself. Only admins make tokens for others. */
  userId: Schema.optional(Schema.NullOr(UserId)),
  /** When it ends; it has no end by itself. */
  expiresAt: Schema.optional(Schema.NullOr(Instant)),
  /** Further projects of which both you and they are members. */
  projectIds: Schema.optional(
    Schema.NullOr(Schema.Array(ProjectId).check(Schema.isMaxLength(tokenBounds.projectsMax)))
  )
})
export type TokenInput = typeof TokenInput.Type

/** A token with the secret that nobody is told again. */
export const NewToken = Schema.Struct({ ...Token.fields, token: Schema.String }).annotate({
  identifier: "NewToken"
})

export class TokensApi extends HttpApiGroup.make("tokens")
  .add(
    /** Admins see those of all members, everybody else their own. */
    HttpApiEndpoint.get("list", "/tokens", {
      params: project,
      query: PageQuery,
      success: Page(Token),
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.post("create", "/tokens", {
      params: project,
      payload: TokenInput,
      success: NewToken.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    /** Ends a token in this project, and its open streams. */
    HttpApiEndpoint.delete("revoke", "/tokens/:tokenId", {
      params: { ...project, tokenId: TokenId },
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

/** A token that reaches every project: for what watches or runs the server. */
export const ServerTokenInput = Schema.Struct({
  name: TokenInput.fields.name,
  role: Role,
  userId: NewUserId,
  expiresAt: TokenInput.fields.expiresAt
})

/** Tokens of the server as a whole, which its admin makes. The one in the data folder is none of them. */
export class ServerTokensApi extends HttpApiGroup.make("serverTokens")
  .add(
    HttpApiEndpoint.get("list", "/tokens", {
      query: PageQuery,
      success: Page(Token),
      error: [Forbidden, InvalidInput]
    }),
    HttpApiEndpoint.post("create", "/tokens", {
      payload: ServerTokenInput,
      success: NewToken.pipe(HttpApiSchema.status(201)),
      error: [Forbidden, Conflict, InvalidInput]
    }),
    HttpApiEndpoint.delete("revoke", "/tokens/:tokenId", {
      params: { tokenId: TokenId },
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden]
    }),
    /** A link like the one that the server prints at its start; for who acts under the name of the server's admin alone. */
    HttpApiEndpoint.post("loginLink", "/login-link", {
      success: LoginLink.pipe(HttpApiSchema.status(201)),
      error: [Forbidden, Conflict]
    })
  )
  .prefix("/api")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
