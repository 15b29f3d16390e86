/**
 * A foreign MCP server: where a project's tools come from beside the built-in ones.
 *
 * A definition names secrets and never holds one. What a server lists is pinned
 * when a person looks at it: agents see the pinned words, and a tool that says
 * something else later is not called until somebody has looked again.
 */
import { Schema } from "effect"
import { EventSource } from "./event-source.ts"
import { McpServerId, Timestamp } from "./ids.ts"
import { allows } from "./tool-pattern.ts"

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

/** What the operator's environment may be asked for: nothing else of it is within a definition's reach. */
export const secretPrefix = "TROPISM_SECRET_"

export const mcpServerBounds = {
  defaultCallTimeoutMs: 30_000,
  maxCallTimeoutMs: 600_000,
  maxPatterns: 200,
  maxArgs: 100,
  maxEntries: 50,
  maxScopes: 50,
  /** What providers take as the name of a tool. */
  offeredNameMaxChars: 64
} as const

/** It stands before `__` in what the model sees, so it neither has that nor ends in half of it. */
export const McpServerName = Schema.String.check(
  Schema.isPattern(/^[A-Za-z](?:[A-Za-z0-9-]|_(?=[A-Za-z0-9-])){0,29}$/, {
    message:
      "A server's name has 1 to 30 letters, digits, dashes or single underscores, begins with a letter and ends with none"
  })
)

/** A value of the operator's environment, named and not said. */
export const SecretReference = Schema.Struct({
  secret: Schema.String.check(
    Schema.isPattern(/^TROPISM_SECRET_[A-Z0-9_]{1,100}$/, {
      message: `A secret is named by an environment variable of the server that begins with ${secretPrefix}`
    })
  ),
  /** Stands before the value: `Bearer `, for one. */
  prefix: opt(Schema.String.check(Schema.isPattern(/^[\x20-\x7e]{0,50}$/)))
}).annotate({ identifier: "SecretReference" })
export type SecretReference = typeof SecretReference.Type

const Value = Schema.Union([
  Schema.String.check(Schema.isPattern(/^[^\0\r\n]{0,4000}$/, { message: "A value is one line of text" })),
  SecretReference
])
export type SecretOrText = typeof Value.Type

const Text = Schema.String.check(
  Schema.isPattern(/^[^\0]{1,4000}$/, { message: "Expected 1 to 4000 characters and no NUL" })
)

const entries = (key: RegExp, message: string) =>
  Schema.Record(Schema.String.check(Schema.isPattern(key, { message })), Value).check(
    Schema.isMaxProperties(mcpServerBounds.maxEntries)
  )

export const StdioTransport = Schema.Struct({
  type: Schema.Literal("stdio"),
  /** The program, run on the machine of the server, without a shell. */
  command: Text,
  args: opt(Schema.Array(Text).check(Schema.isMaxLength(mcpServerBounds.maxArgs))),
  env: opt(entries(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/, "Expected the name of an environment variable"))
}).annotate({ identifier: "StdioTransport" })

export const HttpTransport = Schema.Struct({
  type: Schema.Literal("http"),
  /** Speaks Streamable HTTP. */
  url: Schema.String.check(
    Schema.isPattern(/^https?:\/\/[^\s]{1,2000}$/, { message: "Expected an http or https address" })
  ),
  headers: opt(entries(/^[A-Za-z0-9-]{1,100}$/, "Expected the name of an HTTP header"))
}).annotate({ identifier: "HttpTransport" })

export const McpTransport = Schema.Union([StdioTransport, HttpTransport])
export type McpTransport = typeof McpTransport.Type

/** A server that wants OAuth: who signs in to it, and as which client. */
export const OAuthAuthorization = Schema.Struct({
  type: Schema.Literal("oauth"),
  /** `server` (the default): an admin signs in once, for every run. `member`: each member signs in, for runs that work for them. */
  per: opt(Schema.Literals(["server", "member"])),
  /** A client that its authorization server knows already; absent registers one. */
  clientId: opt(
    Schema.String.check(Schema.isPattern(/^[\x20-\x7e]{1,2000}$/, { message: "Expected a client id" }))
  ),
  clientSecret: opt(SecretReference),
  /** Absent: what the server asks for. */
  scopes: opt(
    Schema.Array(
      Schema.String.check(
        Schema.isPattern(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, { message: "Expected the name of a scope" })
      )
    ).check(Schema.isMaxLength(mcpServerBounds.maxScopes))
  )
}).annotate({ identifier: "OAuthAuthorization" })
export type OAuthAuthorization = typeof OAuthAuthorization.Type

/** Names of tools as the server lists them, with * as a wildcard. */
const ToolNames = Schema.Array(
  Schema.String.check(
    Schema.isPattern(/^[^\0\s]{1,200}$/, { message: "Expected a tool's name, or a pattern with *" })
  )
).check(Schema.isMaxLength(mcpServerBounds.maxPatterns))

const fields = {
  name: McpServerName,
  transport: McpTransport,
  /** How a server at an address is signed in to; without it and without an `Authorization` header an admin signs in once where the server wants OAuth. */
  authorization: opt(OAuthAuthorization),
  /** Tools that agents may be given; [] is none. */
  allowedTools: opt(ToolNames),
  /** Tools that may be called again when nobody knows whether they were called. */
  idempotentTools: opt(ToolNames),
  /** Events that agents may listen to, with * as a wildcard; [] is none. */
  allowedEvents: opt(ToolNames),
  /** How long one call may take, in milliseconds. */
  callTimeoutMs: opt(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: mcpServerBounds.maxCallTimeoutMs }))
  ),
  /** What its tools answer comes from untrusted sources. */
  untrusted: opt(Schema.Boolean),
  /** Runs that have read something untrusted may call its tools all the same. */
  allowUntrusted: opt(Schema.Boolean),
  enabled: opt(Schema.Boolean)
}

/** What a caller sends to add a server. */
export const McpServerInput = Schema.Struct(fields).annotate({ identifier: "McpServerInput" })
export type McpServerInput = typeof McpServerInput.Type

/** The fields that change; null sets an optional one back to its default. */
export const McpServerPatch = Schema.Struct({
  ...fields,
  name: Schema.optionalKey(McpServerName),
  transport: Schema.optionalKey(McpTransport)
}).annotate({ identifier: "McpServerPatch" })
export type McpServerPatch = typeof McpServerPatch.Type

/** A definition as it is kept, every default said. */
export const McpServerConfig = Schema.Struct({
  name: Schema.String,
  transport: McpTransport,
  authorization: Schema.optionalKey(OAuthAuthorization),
  allowedTools: Schema.Array(Schema.String),
  idempotentTools: Schema.Array(Schema.String),
  allowedEvents: Schema.optionalKey(Schema.Array(Schema.String)),
  callTimeoutMs: Schema.Int,
  untrusted: Schema.optionalKey(Schema.Boolean),
  allowUntrusted: Schema.optionalKey(Schema.Boolean),
  enabled: Schema.Boolean
})
export type McpServerConfig = typeof McpServerConfig.Type

/** One tool as the server listed it when somebody looked. */
export const PinnedTool = Schema.Struct({
  /** As the server calls it. */
  name: Schema.String,
  /** As a model sees it: `server__tool`. */
  offeredName: Schema.String,
  description: Schema.NullOr(Schema.String),
  inputSchema: Schema.JsonObject,
  /** The server says that it changes nothing. */
  isReadOnly: Schema.Boolean,
  /** The server says that calling it twice does what calling it once does. */
  isIdempotent: Schema.Boolean,
  /** SHA-256 of everything above that the server said, and of its outputSchema, which is not kept. */
  hash: Schema.String,
  /** When the server was first seen to say something else; then it is not called. */
  changedAt: Schema.NullOr(Timestamp)
}).annotate({ identifier: "PinnedTool" })
export type PinnedTool = typeof PinnedTool.Type

/** Whether a server that wants OAuth is signed in to. */
export const McpSignIn = Schema.Struct({
  per: Schema.Literals(["server", "member"]),
  /** Of `per: member` that of whoever asks. */
  status: Schema.Literals(["signedIn", "signedOut"]),
  /** Why the last sign-in has ended; null where there was none, or somebody signed out. */
  detail: Schema.NullOr(Schema.String),
  /** Who gave the tokens: the issuer of the authorization server. */
  issuer: Schema.NullOr(Schema.String),
  scopes: Schema.NullOr(Schema.String),
  signedInBy: Schema.NullOr(Schema.String),
  signedInAt: Schema.NullOr(Timestamp),
  /** When the access token ends; it is renewed before. */
  expiresAt: Schema.NullOr(Timestamp)
}).annotate({ identifier: "McpSignIn" })
export type McpSignIn = typeof McpSignIn.Type

/** A server as the API answers it. */
export const McpServer = Schema.Struct({
  id: McpServerId,
  /** Another one with each change of what it is said to be, and with each look that was asked for. */
  version: Schema.Int,
  ...McpServerConfig.fields,
  /** Everything that the server listed; `isAllowed` says which of it agents may be given. */
  tools: Schema.Array(Schema.Struct({ ...PinnedTool.fields, isAllowed: Schema.Boolean })),
  pinnedAt: Schema.NullOr(Timestamp),
  /** Why it could not be reached, or some of its tools not be offered, when that was last tried. */
  lastError: Schema.NullOr(Schema.String),
  /** Whether it is signed in to; null where it wants no sign-in, as far as anybody knows. */
  signIn: Schema.NullOr(McpSignIn),
  /** What agents listen to, and how that goes. */
  eventSources: Schema.Array(EventSource),
  createdBy: Schema.String,
  createdAt: Timestamp,
  updatedAt: Timestamp
}).annotate({ identifier: "McpServer" })
export type McpServer = typeof McpServer.Type

/** Fills in every default. */
export const defineMcpServer = (input: McpServerInput): McpServerConfig => ({
  name: input.name,
  transport: input.transport,
  ...(input.authorization ? { authorization: input.authorization } : {}),
  allowedTools: input.allowedTools ?? [],
  idempotentTools: input.idempotentTools ?? [],
  allowedEvents: input.allowedEvents ?? [],
  callTimeoutMs: input.callTimeoutMs ?? mcpServerBounds.defaultCallTimeoutMs,
  untrusted: input.untrusted ?? false,
  allowUntrusted: input.allowUntrusted ?? false,
  enabled: input.enabled ?? true
})

/** Absent fields stay, null goes back to the default. */
export const patchMcpServer = (config: McpServerConfig, patch: McpServerPatch): McpServerConfig =>
  defineMcpServer({ ...config, ...patch })

/** How `lastError` begins where a server was reached and some of its tools cannot be offered. */
export const leftOutWords = "Left out, for nobody could offer them:"

/** Whether the last look at a server found one. */
export const wasReached = ({ lastError }: Pick<McpServer, "lastError">): boolean =>
  lastError === null || lastError.startsWith(leftOutWords)

/** How the reason begins why a server that wants a sign-in was not called. */
export const signedOutText = "Signed out: sign in"

/** Whether the last try came to nothing because somebody has to sign in. */
export const wantsSignIn = ({ lastError }: Pick<McpServer, "lastError">): boolean =>
  lastError?.startsWith(signedOutText) === true

/** How a server may be signed in to; undefined for programs, and where the definition brings its own credentials. */
export const oauthOf = ({
  authorization,
  transport
}: Pick<McpServerConfig, "authorization" | "transport">): OAuthAuthorization | undefined => {
  if (transport.type !== "http") return undefined
  const hasOwn = Object.keys(transport.headers ?? {}).some((name) => /^authorization$/i.test(name))
  return authorization ?? (hasOwn ? undefined : { type: "oauth" })
}

/** Whether a server has told what happened since its tools were tried last. */
export const isHeard = ({
  eventSources,
  updatedAt
}: Pick<McpServer, "eventSources" | "updatedAt">): boolean =>
  eventSources.some(
    ({ polledAt, status }) =>
      status === "listening" && polledAt !== null && Date.parse(polledAt) > Date.parse(updatedAt)
  )

/** What a model sees of a foreign tool: both names, in the characters that every provider takes. */
export const offeredNameOf = (server: string, tool: string): string =>
  `${server}__${tool.replace(/[^A-Za-z0-9_-]/g, "_")}`.slice(0, mcpServerBounds.offeredNameMaxChars)

/** A tool as a model sees it by the name that its server has now. */
export const offeredBy =
  (server: string) =>
  (tool: PinnedTool): PinnedTool => ({ ...tool, offeredName: offeredNameOf(server, tool.name) })

/** A server's tool as an agent's list of tools names it: `server.tool`. */
export const patternedNameOf = (server: string, tool: string): string =>
  `${server}.${offeredNameOf(server, tool).slice(server.length + 2)}`

export const isAllowedTool = (
  { allowedTools }: Pick<McpServerConfig, "allowedTools">,
  tool: string
): boolean => allows(allowedTools, tool)

/** Whether agents may listen to an event of a server. */
export const isAllowedEvent = (
  { allowedEvents }: Pick<McpServerConfig, "allowedEvents">,
  event: string
): boolean => allows(allowedEvents ?? [], event)

/** Whether a call may be made again when nobody knows whether it was made. */
export const mayCallAgain = (
  { idempotentTools }: Pick<McpServerConfig, "idempotentTools">,
  tool: Pick<PinnedTool, "name" | "isIdempotent" | "isReadOnly">
): boolean => tool.isIdempotent || tool.isReadOnly || allows(idempotentTools, tool.name)

/** Two allowed tools that a model could not tell apart. */
export const findCollision = (
  config: Pick<McpServerConfig, "allowedTools">,
  tools: ReadonlyArray<Pick<PinnedTool, "name" | "offeredName">>
): readonly [string, string] | undefined => {
  const seen = new Map<string, string>()
  for (const { name, offeredName } of tools) {
    if (!isAllowedTool(config, name)) continue
    const other = seen.get(offeredName)
    if (other !== undefined) return [other, name]
    seen.set(offeredName, name)
  }
  return undefined
}
