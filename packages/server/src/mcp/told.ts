/**
 * Says what was not done to whoever called a tool.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 */
import type { PageRequest } from "@tropism/api/page"
import type { Principal } from "@tropism/api/authorization"
import { InvalidInput } from "@tropism/api/problems"
import { Effect, Schema } from "effect"
import type { PersonPrincipal } from "../tool/person-tool.ts"
import { ToolFailed } from "../tool/tool-effect.ts"

/** Accepts null as absent: many models send null for what they leave out. */
export const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

/** What every list takes. */
export const pageArguments = {
  cursor: opt(
    Schema.String.check(Schema.isBetweenLength(1, 200)).annotate({
      description: "nextCursor of the page before; the other arguments stay the same"
    })
  ),
  limit: opt(
    Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
      description: "At most so many; 20 by itself"
    })
  )
}

/** How many items a list shows where nobody says. */
const shownByItself = 20

export const pageOf = (
  list: string,
  {
    cursor,
    limit
  }: { readonly cursor?: string | null | undefined; readonly limit?: number | null | undefined }
): PageRequest => ({
  ...(typeof cursor === "string" ? { cursor } : {}),
  limit: limit ?? shownByItself,
  list
})

/** A page as MCP shows it. */
export const pageShape = {
  type: "object",
  properties: {
    items: { type: "array", items: { type: "object" } },
    nextCursor: { anyOf: [{ type: "string" }, { type: "null" }] }
  },
  required: ["items", "nextCursor"]
} as const

interface Refusal {
  readonly _tag: string
  readonly detail?: string | undefined
  readonly reason?: string
}

/** A refusal of any stage in one form: the sentence, the reason for programs, and the argument at fault. */
export const failed = (refusal: Refusal): ToolFailed => {
  const place = refusal instanceof InvalidInput ? refusal.errors[0]?.pointer : undefined
  const reason =
    refusal._tag === "InvalidInput" ? "invalid" : refusal._tag === "NotFound" ? "notFound" : refusal.reason
  return new ToolFailed({
    result: {
      error: refusal.detail ?? "This cannot be done",
      ...(reason === undefined ? {} : { reason }),
      ...(place === undefined || place === "" ? {} : { pointer: place.startsWith("/") ? place : `/${place}` })
    }
  })
}

/** The same words for what is missing, deleted, another project's or another person's. */
export const missing = (what: string): ToolFailed =>
  new ToolFailed({ result: { error: `There is no such ${what}`, reason: "notFound" } })

export const known =
  (what: string) =>
  <A, E, R>(found: Effect.Effect<A | undefined, E, R>): Effect.Effect<A, E | ToolFailed, R> =>
    Effect.flatMap(found, (one) => (one === undefined ? Effect.fail(missing(what)) : Effect.succeed(one)))

/** A schema's value as JSON. */
export const asJson = (value: object): Schema.Json => value as Schema.Json

/** A person as the doors of HTTP know one: where they may look and speak is the same at every door. */
export const principalOf = ({ projectId, role, userId }: PersonPrincipal): Principal => ({
  userId,
  role,
  projectIds: [projectId],
  roles: null
})
