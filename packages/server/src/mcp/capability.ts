/**
 * The contract between the MCP endpoint and its capability modules.
 *
 * A module is created once, holds its services and returns an offer per caller; the endpoint builds one server from all offers.
 * **Invariant**: the caller comes from the endpoint alone, never from an argument. Every failure of a module is a `ProtocolError`; a defect
 * is logged and returned as an internal error.
 */
import type {
  CallToolResult,
  GetPromptResult,
  InputRequiredResult,
  Prompt,
  ProtocolError,
  ReadResourceResult,
  Resource,
  ResourceTemplateType,
  Server,
  ServerCapabilities,
  ServerContext,
  Tool
} from "@modelcontextprotocol/server"
import type { Principal } from "@tropism/api/authorization"
import type { PageRequest } from "@tropism/api/page"
import { InvalidInput } from "@tropism/api/problems"
import type { ProjectId } from "@tropism/domain/ids"
import { Effect, Schema, type Scope } from "effect"
import type { PersonPrincipal } from "../tools/person-tools.ts"
import { ToolFailed } from "../tools/tool-calls.ts"

/** The caller and the project, from the token and the address, never from a message. */
export interface McpCaller {
  readonly principal: Principal
  readonly projectId: ProjectId
  /** SHA-256 of the token, hexadecimal: work that goes on after the request ends with the token. */
  readonly tokenHash: string
}

/** The result of a module. */
export type Answering<A> = Effect.Effect<A, ProtocolError>

/** A tool and its handler. A call continues when its client disconnects; only reads may stop then (`server.ts`). */
export interface CapabilityTool {
  readonly listed: Tool
  readonly call: (
    args: { readonly [name: string]: Schema.Json },
    context: ServerContext
  ) => Answering<CallToolResult | InputRequiredResult>
}

/** A call of a tool, which may be repeated with other arguments. */
export interface CapabilityCall {
  readonly name: string
  readonly args: { readonly [name: string]: Schema.Json }
  /** Whether it requests a task, as only a client of 2025-11-25 can. */
  readonly asksForTask: boolean
  readonly make: (args: {
    readonly [name: string]: Schema.Json
  }) => Answering<CallToolResult | InputRequiredResult>
}

export interface CapabilityPrompt {
  readonly listed: Prompt
  readonly get: (
    args: { readonly [name: string]: string },
    context: ServerContext
  ) => Answering<GetPromptResult | InputRequiredResult>
}

export interface CapabilityResources {
  /** One page; the cursor belongs to the module. */
  readonly list: (
    cursor: string | undefined
  ) => Answering<{ readonly resources: ReadonlyArray<Resource>; readonly nextCursor?: string | undefined }>
  readonly templates: ReadonlyArray<ResourceTemplateType>
  /** Undefined: the module does not know this kind of address. */
  readonly read: (uri: string, context: ServerContext) => Answering<ReadResourceResult | undefined>
  /** Subscribes a session to changes of a resource, or ends that; without it, no resource can be subscribed to. */
  readonly subscribe?: (uri: string, sessionId: string) => Answering<void>
  readonly unsubscribe?: (uri: string, sessionId: string) => Answering<void>
}

/** The argument that a client asks completions for. */
export interface Completing {
  readonly ref:
    | { readonly type: "ref/prompt"; readonly name: string }
    | { readonly type: "ref/resource"; readonly uri: string }
  readonly argument: { readonly name: string; readonly value: string }
  readonly given: { readonly [name: string]: string }
}

/** What a client of 2026-07-28 wants to listen to. The fields differ by module, so each reads its own. */
export interface ListenFilter {
  readonly toolsListChanged?: boolean | undefined
  readonly promptsListChanged?: boolean | undefined
  readonly resourcesListChanged?: boolean | undefined
  readonly resourceSubscriptions?: ReadonlyArray<string> | undefined
  readonly taskIds?: ReadonlyArray<string> | undefined
}

/** Sends a notification on the stream that it belongs to. */
export type Notify = (method: string, params?: Readonly<Record<string, unknown>>) => Effect.Effect<void>

/** The notifications of a module to one listening client. */
export interface Telling {
  /** The accepted part of the filter, which the client receives first. */
  readonly honored: ListenFilter
  /** Sends notifications until there can be no more. */
  readonly tell: (notify: Notify) => Effect.Effect<void>
}

/** The capabilities of a module for one caller. */
export interface Offer {
  readonly tools?: ReadonlyArray<CapabilityTool>
  readonly prompts?: ReadonlyArray<CapabilityPrompt>
  readonly resources?: CapabilityResources
  /** Completions for an argument of one of the module's prompts or templates; undefined for those of other modules. */
  readonly complete?: (completing: Completing) => Answering<ReadonlyArray<string> | undefined>
  /** Answers a call of any module's tool in a different form; undefined leaves it to the tool. */
  readonly answerCall?: (
    call: CapabilityCall,
    context: ServerContext
  ) => Answering<CallToolResult | InputRequiredResult> | undefined
  /**
   * Starts notifications of everything from this moment on; undefined where the filter requests nothing of this module. The scope is the
   * stream's.
   */
  readonly listen?: (
    filter: ListenFilter,
    context: ServerContext
  ) => Effect.Effect<Telling | undefined, ProtocolError, Scope.Scope>
  /** Additional capabilities, such as extensions. */
  readonly capabilities?: ServerCapabilities
  /** Capabilities for clients of 2026-07-28 only; others do not see them. */
  readonly newerCapabilities?: ServerCapabilities
  /** Registers handlers of additional methods. */
  readonly extend?: (server: Server, run: RunForServer) => void
}

/** Runs a module's effect for the SDK; a defect is logged and returned as an internal error. */
export type RunForServer = <A>(effect: Answering<A>) => Promise<A>

export interface McpCapability {
  readonly name: string
  readonly offerTo: (caller: McpCaller) => Offer
}

// Failures of tool calls, as the caller sees them.

/** Accepts null as absent: many models send null for what they leave out. */
export const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

/** The arguments of every list. */
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

/** The default number of items of a list. */
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

/** The result schema of a page. */
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

/** Every refusal in one form: the sentence, the reason code, and the argument at fault. */
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

/** The same answer for what is missing, deleted, of another project or of another person. */
export const missing = (what: string): ToolFailed =>
  new ToolFailed({ result: { error: `There is no such ${what}`, reason: "notFound" } })

export const known =
  (what: string) =>
  <A, E, R>(found: Effect.Effect<A | undefined, E, R>): Effect.Effect<A, E | ToolFailed, R> =>
    Effect.flatMap(found, (one) => (one === undefined ? Effect.fail(missing(what)) : Effect.succeed(one)))

/** A schema's value as JSON. */
export const asJson = (value: object): Schema.Json => value as Schema.Json

/** A person as the principal of HTTP endpoints, so that every endpoint applies the same rights. */
export const principalOf = ({ projectId, role, userId }: PersonPrincipal): Principal => ({
  userId,
  role,
  projectIds: [projectId],
  roles: null
})
