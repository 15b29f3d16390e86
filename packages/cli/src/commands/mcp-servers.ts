/**
 * `tropism mcp-servers`: where agents' foreign tools come from; added, looked at again, changed and removed.
 *
 * A secret is named and never typed: `NAME=secret:TROPISM_SECRET_X` is the
 * variable of the server's environment.
 */
import type { EventSource } from "@tropism/domain/event-source"
import {
  isHeard,
  type McpServer,
  type McpServerInput,
  McpServerInput as Input,
  McpServerPatch,
  type McpSignIn,
  type SecretOrText,
  wantsSignIn,
  wasReached
} from "@tropism/domain/mcp-server"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Access, inProject, readPages } from "../access.ts"
import { exitCodes } from "../exit-codes.ts"
import { limits } from "../limits.ts"
import { failure } from "../failure.ts"
import { printFacts, printOr, printRecords } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"
import { typed } from "../typed-input.ts"

const server = Argument.String("server").pipe(Argument.withDescription("The server's name or id"))

const read = (access: Access) =>
  readPages((query) => access.client.mcpServers.list({ params: access.params, query }), Infinity)

const find = (access: Access, reference: string) =>
  Effect.gen(function* () {
    const { items } = yield* read(access)
    const found = items.find(({ id }) => id === reference) ?? items.find(({ name }) => name === reference)
    if (found) return found
    const names = items.map(({ name }) => name).join(", ")
    return yield* failure(
      `MCP server not found: "${printable(reference)}". ${names === "" ? `Add one with "tropism mcp-servers add".` : `Available: ${names}.`}`
    )
  })

const list = Command.make("list", {}, () =>
  inProject((access) =>
    Effect.gen(function* () {
      const { items } = yield* read(access)
      yield* printRecords({
        records: items,
        nothing: `The project has no MCP servers. Add one with "tropism mcp-servers add NAME -- COMMAND".`,
        columns: [
          { title: "SERVER", cell: (one) => one.name },
          { title: "TOOLS", align: "right", cell: toolCount },
          { title: "STATE", cell: stateOf },
          { title: "FROM", cell: placeOf, shrinks: "end" }
        ]
      })
    })
  )
).pipe(Command.withDescription("List the project's MCP servers"))

/** Of the tools that are listed those that agents may be given. */
const toolCount = ({ tools }: McpServer): string =>
  `${tools.filter(({ isAllowed }) => isAllowed).length} of ${tools.length}`

const stateOf = (one: McpServer): string => {
  const { enabled, lastError, tools } = one
  if (!enabled) return "disabled"
  const changed = tools.filter(({ changedAt }) => changedAt !== null).length
  if (changed > 0) return `${changed} changed: review, then refresh`
  if (wantsSignIn(one)) return "signed out: sign in"
  if (hasBadList(one)) return isHeard(one) ? "events heard, bad list of tools" : "bad list of tools"
  if (!wasReached(one))
    return isHeard(one) ? "events connected, tools failed at the last attempt" : "not reached"
  return lastError === null ? "pinned" : "pinned, some tools left out"
}

/** Whether the server answered when it was last tried, and its list of tools could not be used. */
const hasBadList = ({ lastError }: McpServer): boolean =>
  lastError?.startsWith("The server did not list its tools: ") === true

/** What an admin has said of its trust; nothing where it is trusted. */
const trustOf = ({ allowUntrusted, untrusted }: McpServer): string =>
  [
    ...(untrusted === true ? ["its results"] : []),
    ...(allowUntrusted === true ? ["can be called by untrusted runs"] : [])
  ].join("; ")

const placeOf = ({ transport }: McpServer): string =>
  transport.type === "http" ? transport.url : [transport.command, ...(transport.args ?? [])].join(" ")

const show = Command.make("show", { server }, ({ server }) =>
  inProject((access) => Effect.flatMap(find(access, server), print))
).pipe(
  Command.withDescription("Show a server and everything it listed at the last check"),
  Command.withShortDescription("Show a server, its tools and its events")
)

const print = (one: McpServer) =>
  printOr(
    one,
    Effect.gen(function* () {
      const { paint, print } = yield* Screen
      yield* printFacts([
        ["server", one.name],
        ["from", placeOf(one)],
        ["state", stateOf(one)],
        ["sign-in", one.signIn === null ? "" : signInText(one.signIn)],
        ["problem", one.lastError ?? "", paint.bad],
        ["allowed", one.allowedTools.join(", ") || "no tools"],
        ["events", (one.allowedEvents ?? []).join(", ") || "none"],
        ["pinned", one.pinnedAt ?? "never"],
        ["untrusted", trustOf(one)]
      ])
      for (const source of one.eventSources) yield* print(sourceText(source))
      for (const { changedAt, description, isAllowed, offeredName } of one.tools) {
        const mark = isAllowed ? (changedAt === null ? paint.good("+") : paint.bad("!")) : "-"
        const words = (description ?? "").split("\n", 1)[0] ?? ""
        yield* print(`${mark} ${printable(offeredName)}  ${paint.dim(printable(beginningOf(words, 120)))}`)
      }
    })
  )

const signInText = ({ detail, per, signedInBy, status }: McpSignIn): string =>
  [
    status === "signedIn" ? `signed in by ${signedInBy ?? ""}` : "signed out",
    ...(per === "member" ? ["each member signs in"] : []),
    ...(detail === null ? [] : [detail])
  ].join("; ")

/** One line of what agents listen to. */
const sourceText = ({
  agents,
  arguments: args,
  lastFault,
  lastOccurrence,
  name,
  status
}: EventSource): string =>
  printable(
    [
      `${name} ${JSON.stringify(args)}: ${status}, received by ${agents.join(", ")}`,
      ...(lastOccurrence === null ? [] : [`last event ${lastOccurrence.id} at ${lastOccurrence.createdAt}`]),
      ...(lastFault === null ? [] : [lastFault])
    ].join("; ")
  )

/** What a look at a server came to; one that was not reached is kept all the same, and is no success. */
const printLook = (one: McpServer) =>
  Effect.andThen(
    print(one),
    wasReached(one)
      ? Effect.void
      : failure(
          `The MCP server ${one.name} ${hasBadList(one) ? "answered, and its list of tools was bad" : "was not reached"}: ${printable(one.lastError ?? "")}. The server is still added: "tropism mcp-servers ${wantsSignIn(one) ? "sign-in" : "refresh"} ${one.name}" ${wantsSignIn(one) ? "signs in to it" : "tries again"}.`
        )
  )

const repeated = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description), Flag.between(0, 50))

const allow = repeated("allow", "<tool>", "Allow a tool for agents; * is a wildcard; repeatable")

const events = repeated("events", "<event>", "Allow an event for agents; * is a wildcard; repeatable")

const idempotent = repeated(
  "idempotent",
  "<tool>",
  "A tool that is safe to retry when the outcome of a call is unknown"
)

const untrusted = Flag.Boolean("untrusted").pipe(
  Flag.withDescription("Mark results as untrusted: runs that read them can only suggest"),
  Flag.optional
)

const allowUntrusted = Flag.Boolean("allow-untrusted").pipe(
  Flag.withDescription("Allow runs that have read untrusted content to call its tools"),
  Flag.optional
)

const timeout = Flag.Int("timeout").pipe(
  Flag.withMetavar("<ms>"),
  Flag.withDescription("Timeout of a call in milliseconds (default: 30000)"),
  Flag.withSchema(Input.fields.callTimeoutMs),
  Flag.optional
)

/** How a server at an address is signed in to. */
const signInFlags = {
  perMember: Flag.Boolean("per-member").pipe(
    Flag.withDescription("Each member signs in (OAuth); runs use the account of the member they run for"),
    Flag.optional
  ),
  clientId: Flag.String("client-id").pipe(
    Flag.withMetavar("<id>"),
    Flag.withDescription("The OAuth client id (default: register one automatically)"),
    Flag.optional
  ),
  clientSecret: Flag.String("client-secret").pipe(
    Flag.withMetavar("<variable>"),
    Flag.withDescription("The name of the client secret: TROPISM_SECRET_X"),
    Flag.optional
  ),
  scope: repeated("scope", "<scope>", "An OAuth scope, overriding the scopes the server names")
}

const add = Command.make(
  "add",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("The name for agents: tools are named NAME.tool"),
      Argument.withSchema(Input.fields.name)
    ),
    command: Argument.String("command").pipe(
      Argument.withDescription("The program and its arguments, after --"),
      Argument.variadic()
    ),
    url: Flag.String("address").pipe(
      Flag.withAlias("a"),
      Flag.withMetavar("<address>"),
      Flag.withDescription("The URL of a Streamable HTTP server, instead of a program"),
      Flag.optional
    ),
    env: repeated(
      "env",
      "<NAME=value>",
      "An environment variable; NAME=secret:TROPISM_SECRET_X uses a secret"
    ),
    header: repeated(
      "header",
      "<Name=value>",
      "A request header; Authorization=Bearer secret:TROPISM_SECRET_X"
    ),
    ...signInFlags,
    allow,
    events,
    idempotent,
    timeout,
    untrusted,
    allowUntrusted
  },
  ({ command, env, header, name, url, ...flags }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const [program, ...args] = command
        if (Option.isSome(url) === (program !== undefined))
          return yield* failure("Give either a program after --, or a URL with --address.", exitCodes.usage)
        const transport: McpServerInput["transport"] = Option.isSome(url)
          ? { type: "http", url: url.value, headers: yield* entriesOf("header", header) }
          : { type: "stdio", command: program ?? "", args, env: yield* entriesOf("env", env) }
        const payload = yield* typed(Input, {
          name,
          transport,
          authorization: authorizationOf(flags),
          allowedTools: flags.allow,
          idempotentTools: flags.idempotent,
          allowedEvents: flags.events,
          callTimeoutMs: Option.getOrNull(flags.timeout),
          untrusted: Option.getOrNull(flags.untrusted),
          allowUntrusted: Option.getOrNull(flags.allowUntrusted)
        })
        yield* printLook(yield* access.client.mcpServers.create({ params: access.params, payload }))
      })
    )
).pipe(
  Command.withDescription("Add a server, connect to it and pin its tools"),
  Command.withExamples([
    {
      command:
        "tropism mcp-servers add files --allow 'read_*' -- npx -y @modelcontextprotocol/server-filesystem /srv",
      description: "A program, with its read tools allowed"
    },
    {
      command:
        "tropism mcp-servers add crm -a https://crm.example/mcp --header 'Authorization=Bearer secret:TROPISM_SECRET_CRM'",
      description: "A server at a URL; no tools are allowed yet"
    }
  ])
)

/** How a server is signed in to, as the flags change it; null where no flag says anything. */
const authorizationOf = (
  flags: {
    readonly perMember: Option.Option<boolean>
    readonly clientId: Option.Option<string>
    readonly clientSecret: Option.Option<string>
    readonly scope: ReadonlyArray<string>
  },
  before?: McpServer["authorization"]
) => {
  const { clientId, clientSecret, perMember, scope } = flags
  const isSaid =
    Option.isSome(perMember) || Option.isSome(clientId) || Option.isSome(clientSecret) || scope.length > 0
  if (!isSaid) return null
  return {
    type: "oauth",
    per: Option.match(perMember, {
      onNone: () => before?.per ?? "server",
      onSome: (isPerMember) => (isPerMember ? "member" : "server")
    }),
    clientId: Option.getOrElse(clientId, () => before?.clientId ?? null),
    clientSecret: Option.match(clientSecret, {
      // The secret of one client is none of another's.
      onNone: () => (Option.isSome(clientId) ? null : (before?.clientSecret ?? null)),
      onSome: (secret) => ({ secret: secret.replace(/^secret:/, "") })
    }),
    scopes: scope.length === 0 ? (before?.scopes ?? null) : scope
  }
}

/** Reads `NAME=value`, where a value may end in `secret:VARIABLE`. */
const entriesOf = Effect.fnUntraced(function* (flag: string, texts: ReadonlyArray<string>) {
  const entries: Record<string, SecretOrText> = {}
  for (const text of texts) {
    const at = text.indexOf("=")
    if (at < 1)
      return yield* failure(
        `--${flag} wants NAME=value, and "${printable(text)}" has no name.`,
        exitCodes.usage
      )
    const value = text.slice(at + 1)
    const named = /^(.*?)secret:([A-Z0-9_]+)$/.exec(value)
    const prefix = named?.[1] ?? ""
    entries[text.slice(0, at)] = named
      ? { secret: named[2] ?? "", ...(prefix === "" ? {} : { prefix }) }
      : value
  }
  return entries
})

const refresh = Command.make("refresh", { server }, ({ server }) =>
  inProject((access) =>
    Effect.gen(function* () {
      const { id } = yield* find(access, server)
      yield* printLook(
        yield* access.client.mcpServers.refresh({ params: { ...access.params, mcpServerId: id } })
      )
    })
  )
).pipe(Command.withDescription("Reconnect and pin the current tools"))

const set = Command.make(
  "set",
  {
    server,
    allow,
    events,
    idempotent,
    timeout,
    untrusted,
    allowUntrusted,
    ...signInFlags,
    resetSignIn: Flag.Boolean("reset-sign-in").pipe(
      Flag.withDescription("Reset the OAuth settings: an admin signs in if the server requires it"),
      Flag.withDefault(false)
    ),
    enabled: Flag.Boolean("enabled").pipe(
      Flag.withDescription("Enable the server for agents; --no-enabled disables it immediately"),
      Flag.optional
    )
  },
  ({ allow, allowUntrusted, enabled, events, idempotent, server, timeout, untrusted, ...flags }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const { authorization: before, id } = yield* find(access, server)
        const authorization = authorizationOf(flags, flags.resetSignIn ? undefined : before)
        const payload = yield* typed(McpServerPatch, {
          ...(allow.length === 0 ? {} : { allowedTools: allow }),
          ...(idempotent.length === 0 ? {} : { idempotentTools: idempotent }),
          ...(events.length === 0 ? {} : { allowedEvents: events }),
          ...(Option.isNone(timeout) ? {} : { callTimeoutMs: timeout.value }),
          ...(Option.isNone(untrusted) ? {} : { untrusted: untrusted.value }),
          ...(Option.isNone(allowUntrusted) ? {} : { allowUntrusted: allowUntrusted.value }),
          ...(authorization === null && !flags.resetSignIn ? {} : { authorization }),
          ...(Option.isNone(enabled) ? {} : { enabled: enabled.value })
        })
        const changed = yield* access.client.mcpServers.update({
          params: { ...access.params, mcpServerId: id },
          headers: {},
          payload
        })
        yield* print(changed)
      })
    )
).pipe(
  Command.withDescription("Change a server's allowed tools, timeout or state"),
  Command.withShortDescription("Change a server's settings")
)

const signIn = Command.make(
  "sign-in",
  {
    server,
    wait: Flag.Boolean("wait").pipe(
      Flag.withDescription("Wait for the sign-in (default); --no-wait only prints the link"),
      Flag.optional
    )
  },
  ({ server, wait }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const { print } = yield* Screen
        const before = yield* find(access, server)
        const params = { ...access.params, mcpServerId: before.id }
        const link = yield* access.client.mcpServers.signIn({ params })
        if (!Option.getOrElse(wait, () => true)) return yield* printOr(link, print(link.url))
        yield* printOr(
          link,
          print(`Open this link to sign in to ${before.name}, by ${link.expiresAt}:`, link.url)
        )
        for (let look = 0; look < limits.signInLooks; look += 1) {
          const { signIn: state } = yield* access.client.mcpServers.get({ params })
          if (state?.status === "signedIn" && state.signedInAt !== before.signIn?.signedInAt)
            return yield* printOr(state, print(`Signed in to ${before.name}.`))
          yield* Effect.sleep(limits.signInPollMs)
        }
        return yield* failure(
          `The link expired before anyone signed in to ${before.name}. Run the command again.`
        )
      })
    )
).pipe(
  Command.withDescription("Print the OAuth sign-in link of a server and wait for the sign-in"),
  Command.withShortDescription("Sign in to a server with OAuth")
)

const signOut = Command.make("sign-out", { server }, ({ server }) =>
  inProject((access) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      const { id, name } = yield* find(access, server)
      yield* access.client.mcpServers.signOut({ params: { ...access.params, mcpServerId: id } })
      yield* printOr({ signedOut: id }, screen.print(`Signed out of ${name}.`))
    })
  )
).pipe(Command.withDescription("Sign out of a server and delete its tokens"))

const remove = Command.make("remove", { server }, ({ server }) =>
  inProject((access) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      const { id, name } = yield* find(access, server)
      yield* access.client.mcpServers.remove({ params: { ...access.params, mcpServerId: id } })
      yield* printOr({ removed: id }, screen.print(`The MCP server ${name} is removed.`))
    })
  )
).pipe(Command.withDescription("Remove a server"))

export const mcpServersCommand = Command.make("mcp-servers").pipe(
  Command.withDescription("Connect agents to MCP servers"),
  Command.withAlias("tools"),
  Command.withSubcommands([list, show, add, refresh, set, signIn, signOut, remove])
)
