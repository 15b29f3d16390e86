/**
 * What stands behind the MCP door: parts that are made once and asked for each caller.
 *
 * A part holds the services that it needs and answers what it offers to one
 * caller; the door makes one server of all parts' offers. Nobody but the door
 * knows who calls, and no part reads it from an argument. Every fault of a part
 * is a `ProtocolError`; what it did not foresee is logged and told as one.
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

/** Who calls, and in which project: both from the token and the address, never from a message. */
export interface McpCaller {
  readonly principal: Principal
  readonly projectId: ProjectId
  /** SHA-256 of the token, hexadecimal: what goes on after the request ends with it. */
  readonly tokenHash: string
}

/** Something that a part answers. */
export type Answering<A> = Effect.Effect<A, ProtocolError>

/** A tool, and what a call of it does. A client that goes away does not end a call: only what reads may heed that it has gone (`streams.ts`). */
export interface CapabilityTool {
  readonly listed: Tool
  readonly call: (
    args: { readonly [name: string]: Schema.Json },
    context: ServerContext
  ) => Answering<CallToolResult | InputRequiredResult>
}

/** A call of a tool, which may be made with other arguments. */
export interface CapabilityCall {
  readonly name: string
  readonly args: { readonly [name: string]: Schema.Json }
  /** Whether it asks for a task, as only a client of 2025-11-25 can. */
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
  /** One page; the cursor is the part's own. */
  readonly list: (
    cursor: string | undefined
  ) => Answering<{ readonly resources: ReadonlyArray<Resource>; readonly nextCursor?: string | undefined }>
  readonly templates: ReadonlyArray<ResourceTemplateType>
  /** Undefined: this address is of no kind that the part knows. */
  readonly read: (uri: string, context: ServerContext) => Answering<ReadResourceResult | undefined>
  /** Lets a session be told when a resource changes, and ends that; where there is none, no resource can be subscribed to. */
  readonly subscribe?: (uri: string, sessionId: string) => Answering<void>
  readonly unsubscribe?: (uri: string, sessionId: string) => Answering<void>
}

/** What is being written when a client asks how it may go on. */
export interface Completing {
  readonly ref:
    | { readonly type: "ref/prompt"; readonly name: string }
    | { readonly type: "ref/resource"; readonly uri: string }
  readonly argument: { readonly name: string; readonly value: string }
  readonly given: { readonly [name: string]: string }
}

/** What a client of 2026-07-28 asks to be told, as far as its shape can be known: a part reads the fields that it has. */
export interface ListenFilter {
  readonly toolsListChanged?: boolean | undefined
  readonly promptsListChanged?: boolean | undefined
  readonly resourcesListChanged?: boolean | undefined
  readonly resourceSubscriptions?: ReadonlyArray<string> | undefined
  readonly taskIds?: ReadonlyArray<string> | undefined
}

/** Says something on a stream; it is known by it which stream that is. */
export type Notify = (method: string, params?: Readonly<Record<string, unknown>>) => Effect.Effect<void>

/** What a part tells one client that listens. */
export interface Telling {
  /** What of the filter it will tell, as the client is told before anything else. */
  readonly honored: ListenFilter
  /** Tells until there is nothing left that could be told. */
  readonly tell: (notify: Notify) => Effect.Effect<void>
}

/** What a part offers to one caller. */
export interface Offer {
  readonly tools?: ReadonlyArray<CapabilityTool>
  readonly prompts?: ReadonlyArray<CapabilityPrompt>
  readonly resources?: CapabilityResources
  /** Values for an argument of one of the part's prompts or templates; undefined for those of others. */
  readonly complete?: (completing: Completing) => Answering<ReadonlyArray<string> | undefined>
  /** Answers a call of any part's tool in another form than the tool does; undefined leaves it to the tool. */
  readonly answerCall?: (
    call: CapabilityCall,
    context: ServerContext
  ) => Answering<CallToolResult | InputRequiredResult> | undefined
  /** What it tells a client that listens, of all that happens once this is answered; undefined where the filter asks for nothing of this part. The scope is the stream's. */
  readonly listen?: (
    filter: ListenFilter,
    context: ServerContext
  ) => Effect.Effect<Telling | undefined, ProtocolError, Scope.Scope>
  /** Capabilities beyond those that follow from the above, such as extensions. */
  readonly capabilities?: ServerCapabilities
  /** Those that only a client of 2026-07-28 can use; nobody else is told of them. */
  readonly newerCapabilities?: ServerCapabilities
  /** Handlers of methods beyond those above. */
  readonly extend?: (server: Server, run: RunForServer) => void
}

/** Runs a part's effect for the SDK; a defect is logged and told as an internal error. */
export type RunForServer = <A>(effect: Answering<A>) => Promise<A>

export interface McpCapability {
  readonly name: string
  readonly offerTo: (caller: McpCaller) => Offer
}

// Says what was not done to whoever called a tool.
//

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
