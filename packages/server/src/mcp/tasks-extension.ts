/**
 * What a client says with its request that it knows of the Tasks extension (SEP-2663).
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 */
import {
  MissingRequiredClientCapabilityError,
  type ProtocolError,
  ProtocolErrorCode,
  type ServerContext
} from "@modelcontextprotocol/server"
import { isJsonObject } from "@tropism/domain/json"
import { Effect, Option, Schema } from "effect"
import { fault } from "./door-server.ts"

export const tasksExtension = "io.modelcontextprotocol/tasks"

const capabilitiesKey = "io.modelcontextprotocol/clientCapabilities"

const Declared = Schema.Struct({
  [capabilitiesKey]: Schema.Struct({
    elicitation: Schema.optional(Schema.Unknown),
    extensions: Schema.optional(Schema.Record(Schema.String, Schema.Unknown))
  })
})
const readDeclared = Schema.decodeUnknownOption(Declared)

/** What the client says with this request that it can do; undefined in the revisions that say so once. */
export const declaredWith = ({ mcpReq: { envelope } }: ServerContext) =>
  Option.getOrUndefined(readDeclared(envelope))?.[capabilitiesKey]

/** Whether a call may be answered with a task of the extension. */
export const knowsTasks = (context: ServerContext): boolean =>
  declaredWith(context)?.extensions?.[tasksExtension] !== undefined

/** Whether who declares this shows forms: one that says nothing of how it asks does. */
export const showsForms = (elicitation: unknown): boolean =>
  isJsonObject(elicitation) && ("form" in elicitation || !("url" in elicitation))

const lacking = new MissingRequiredClientCapabilityError({
  requiredCapabilities: { extensions: { [tasksExtension]: {} } }
})

/** Lets only clients through that know the extension; it is of the revision 2026-07-28. */
export const requireExtension = (context: ServerContext): Effect.Effect<void, ProtocolError> => {
  if (declaredWith(context) === undefined)
    return Effect.fail(fault(ProtocolErrorCode.MethodNotFound, "Method not found"))
  return knowsTasks(context) ? Effect.void : Effect.fail(lacking)
}
