/**
 * Stores a project's foreign servers: definitions and pinned tools.
 *
 * Database rows only, no connections. A change names the version it was made from, so the second of two concurrent
 * changes is refused.
 */
import type { McpServerId, ProjectId, UserId } from "@tropism/domain/ids"
import {
  isAllowedTool,
  type McpServer,
  McpServerConfig,
  type McpSignIn,
  oauthOf,
  offeredBy,
  PinnedTool,
  wantsSignIn
} from "@tropism/domain/mcp-server"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { brokenUniqueKey, lastId, orDie, ProjectTransaction } from "../../database/database.ts"
import { Notifier } from "../../outbox/notifier.ts"
import { lineOf } from "./faults.ts"
import { externalLimits } from "./limits.ts"

/** A stored server. */
export interface KeptServer {
  readonly id: McpServerId
  readonly projectId: ProjectId
  readonly version: number
  readonly config: McpServerConfig
  readonly tools: ReadonlyArray<PinnedTool>
  /** Why it, or some of its tools, could not be used at the last try. */
  readonly lastError: string | null
}

/** The result of probing a server. */
export interface Look {
  /** The listed tools; absent when unknown, and the former pins stay. */
  readonly tools?: ReadonlyArray<PinnedTool>
  /** Why some or all of its tools are unknown. */
  readonly error: string | null
}

/** Why a server is not stored. */
export class McpServerRefused extends Schema.TaggedError<McpServerRefused>()("McpServerRefused", {
  reason: Schema.Literals(["invalid", "nameTaken", "version", "state"]),
  pointer: Schema.String,
  detail: Schema.String
}) {}

type Read<A> = Effect.Effect<A, never, ProjectTransaction>
type Written<A> = Effect.Effect<A, McpServerRefused, ProjectTransaction>

export class McpServers extends Context.Service<
  McpServers,
  {
    readonly create: (
      id: McpServerId,
      config: McpServerConfig,
      look: Look | undefined,
      by: UserId
    ) => Written<McpServer>
    /** Stores a definition and its probe's result in place of the version it was made from. */
    readonly replace: (
      before: KeptServer,
      config: McpServerConfig,
      look: Look | undefined,
      viewer: UserId
    ) => Written<McpServer>
    /** Marks the tools that differ from their pins. */
    readonly markChanged: (server: KeptServer, names: ReadonlyArray<string>) => Read<void>
    /** Stores the server's last error; null when it can be used. */
    readonly noteError: (server: KeptServer, error: string | null) => Read<void>
    /** False when there is no such server. */
    readonly delete: (id: McpServerId) => Read<boolean>
    /** The server as `viewer` sees it, with the viewer's sign-in where each member signs in. */
    readonly get: (id: McpServerId, viewer: UserId) => Read<McpServer | undefined>
    readonly find: (id: McpServerId) => Read<KeptServer | undefined>
    /** The servers that are enabled. */
    readonly enabled: Read<ReadonlyArray<KeptServer>>
    /** Newest first. */
    readonly list: (
      before: string | undefined,
      limit: number,
      viewer: UserId
    ) => Read<ReadonlyArray<McpServer>>
  }
>()("@tropism/server/tool/McpServers") {
  static readonly layer = Layer.effect(
    McpServers,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const notifier = yield* Notifier

      const create = Effect.fn("McpServers.create")(function* (
        id: McpServerId,
        config: McpServerConfig,
        look: Look | undefined,
        by: UserId
      ) {
        const { projectId } = yield* ProjectTransaction
        yield* checkRoom(projectId)
        const { error, isPinned, tools } = columnsOf(look)
        const [row] = yield* sql<ServerRow>`
          insert into kb.mcp_servers (id, project_id, name, config, enabled, tools, pinned_at, last_error, created_by)
          values (${id}, ${projectId}, ${config.name}, ${JSON.stringify(config)}::text::jsonb, ${config.enabled}, ${tools}::text::jsonb,
            case when ${isPinned} then now() end, ${error}, ${by})
          on conflict (project_id, name) do nothing returning *, ${sourcesOf(sql, "mcp_servers")} as event_sources, ${grantOf(sql, by)} as granted`
        return row ? yield* toServer(row) : yield* nameTaken(config.name)
      }, orDie)

      /** Locks the project's row, so that two requests cannot both take the last place. */
      const checkRoom = Effect.fnUntraced(function* (projectId: ProjectId) {
        yield* sql`select 1 from kb.projects where id = ${projectId} for no key update`
        const [kept] = yield* sql<{ count: number }>`
          select count(*)::int as count from kb.mcp_servers where project_id = ${projectId}`
        if ((kept?.count ?? 0) >= externalLimits.serversPerProject)
          return yield* new McpServerRefused({
            reason: "state",
            pointer: "",
            detail: `The project has ${externalLimits.serversPerProject} MCP servers, as many as it may have: remove one first`
          })
      })

      const replace = Effect.fn("McpServers.replace")(function* (
        before: KeptServer,
        config: McpServerConfig,
        look: Look | undefined,
        viewer: UserId
      ) {
        const { projectId } = yield* ProjectTransaction
        const { error, isPinned, tools } = columnsOf(look)
        const [row] = yield* sql<ServerRow>`
          update kb.mcp_servers set name = ${config.name}, config = ${JSON.stringify(config)}::text::jsonb, enabled = ${config.enabled},
            version = version + 1, updated_at = now(),
            tools = case when ${isPinned} then ${tools}::text::jsonb else tools end,
            pinned_at = case when ${isPinned} then now() else pinned_at end,
            last_error = case when ${look !== undefined} then ${error} else last_error end
          where id = ${before.id} and project_id = ${projectId} and version = ${before.version}
          returning *, ${sourcesOf(sql, "mcp_servers")} as event_sources, ${grantOf(sql, viewer)} as granted`.pipe(
          Effect.catchIf(
            (error) => brokenUniqueKey(error) === "mcp_servers_name",
            () => nameTaken(config.name)
          )
        )
        return row ? yield* toServer(row) : yield* changedMeanwhile()
      }, orDie)

      const markChanged = Effect.fn("McpServers.markChanged")(function* (
        { id, version }: KeptServer,
        names: ReadonlyArray<string>
      ) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`
          update kb.mcp_servers server set updated_at = now(), tools = (
            select coalesce(jsonb_agg(case when tool->>'name' = any(${names}::text[]) and tool->>'changedAt' is null
              then tool || jsonb_build_object('changedAt', to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) else tool end
              order by place), '[]')
            from jsonb_array_elements(server.tools) with ordinality as listed(tool, place))
          where id = ${id} and project_id = ${projectId} and version = ${version}`
      }, orDie)

      const noteError = Effect.fn("McpServers.noteError")(function* (
        { id, version }: KeptServer,
        error: string | null
      ) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`
          update kb.mcp_servers set updated_at = now(), last_error = ${error}
          where id = ${id} and project_id = ${projectId} and version = ${version} and last_error is distinct from ${error}`
      }, orDie)

      const remove = Effect.fn("McpServers.delete")(function* (id: McpServerId) {
        const { projectId } = yield* ProjectTransaction
        const rows =
          yield* sql`delete from kb.mcp_servers where id = ${id} and project_id = ${projectId} returning id`
        yield* sql.afterCommit(notifier.signal(`server:${id}`))
        return rows.length > 0
      }, orDie)

      const row = Effect.fnUntraced(function* (id: McpServerId, viewer: string) {
        const { projectId } = yield* ProjectTransaction
        const [found] = yield* sql<ServerRow>`
          select *, ${sourcesOf(sql, "mcp_servers")} as event_sources, ${grantOf(sql, viewer)} as granted from kb.mcp_servers where id = ${id} and project_id = ${projectId}`
        return found
      }, orDie)

      const get = (id: McpServerId, viewer: UserId) =>
        Effect.flatMap(row(id, viewer), (found) => (found ? toServer(found) : Effect.succeed(undefined)))

      const find = (id: McpServerId) =>
        Effect.flatMap(row(id, ""), (found) => (found ? toKept(found) : Effect.succeed(undefined)))

      const enabled = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<ServerRow>`
          select * from kb.mcp_servers where project_id = ${projectId} and enabled order by name`
        return yield* Effect.forEach(rows, toKept)
      }).pipe(orDie)

      const list = Effect.fn("McpServers.list")(function* (
        before: string | undefined,
        limit: number,
        viewer: UserId
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<ServerRow>`
          select *, ${sourcesOf(sql, "mcp_servers")} as event_sources, ${grantOf(sql, viewer)} as granted
          from kb.mcp_servers where project_id = ${projectId} and id < ${before ?? lastId} order by id desc limit ${limit}`
        return yield* Effect.forEach(rows, toServer)
      }, orDie)

      return McpServers.of({
        create,
        replace,
        markChanged,
        noteError,
        delete: remove,
        get,
        find,
        enabled,
        list
      })
    })
  )
}

interface ServerRow {
  readonly id: McpServerId
  readonly projectId: ProjectId
  readonly version: number
  readonly config: unknown
  readonly tools: unknown
  readonly pinnedAt: Date | null
  readonly lastError: string | null
  readonly eventSources: McpServer["eventSources"]
  readonly granted: Omit<McpSignIn, "per"> | null
  readonly createdBy: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** The event sources of a server that enabled agents listen to, with their status. */
const sourcesOf = (sql: SqlClient.SqlClient, server: string) => {
  const instant = (of: string) =>
    sql.literal(`to_char(${of} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`)
  return sql`coalesce((
    select jsonb_agg(jsonb_build_object('name', source.name, 'arguments', source.arguments,
      'status', case when source.failures > 0 then 'failing' when source.cursor is null then 'beginning' else 'listening' end,
      'agents', heard.agents, 'polledAt', ${instant("source.polled_at")}, 'nextPollAt', ${instant("source.due_at")},
      'failedSince', ${instant("source.failed_since")}, 'lastFault', source.last_fault, 'truncatedAt', ${instant("source.truncated_at")},
      'lastOccurrence', last.told) order by source.name, source.arguments_digest)
    from kb.mcp_event_sources source
    cross join lateral (
      select jsonb_agg(agent.name order by agent.name) as agents from kb.agent_mcp_events listening
      join kb.agents agent on agent.id = listening.agent_id
      where listening.source_id = source.id and agent.enabled and agent.deleted_at is null
    ) heard
    left join lateral (
      select jsonb_build_object('id', told.id, 'eventId', told.event_id, 'createdAt', ${instant("told.created_at")}) as told
      from kb.mcp_occurrences told where told.source_id = source.id order by told.number desc limit 1
    ) last on true
    where source.project_id = ${sql.literal(server)}.project_id and source.server_name = ${sql.literal(server)}.name
      and source.due_at is not null and heard.agents is not null), '[]')`
}

/** The grant that applies to a server, or to one of its members. */
const grantOf = (sql: SqlClient.SqlClient, viewer: string) => {
  const instant = (of: string) =>
    sql.literal(`to_char(${of} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`)
  return sql`(
    select jsonb_build_object('status', case when held.sealed is null then 'signedOut' else 'signedIn' end,
      'detail', held.detail, 'issuer', held.issuer, 'scopes', held.scopes, 'signedInBy', held.signed_in_by,
      'signedInAt', ${instant("held.signed_in_at")}, 'expiresAt', ${instant("held.expires_at")})
    from kb.mcp_grants held
    where held.project_id = mcp_servers.project_id and held.server_id = mcp_servers.id
      and held.url = mcp_servers.config #>> '{transport,url}'
      and held.user_id = case when mcp_servers.config #>> '{authorization,per}' = 'member' then ${viewer} else '' end)`
}

/** The sign-in status; null when none is known to be needed. */
const signInOf = ({ config, lastError }: KeptServer, granted: ServerRow["granted"]): McpSignIn | null => {
  const oauth = oauthOf(config)
  if (oauth === undefined) return null
  const per = oauth.per ?? "server"
  if (granted !== null) return { per, ...granted }
  return config.authorization === undefined && !wantsSignIn({ lastError }) ? null : { per, ...nobodySignedIn }
}

const nobodySignedIn = {
  status: "signedOut",
  detail: null,
  issuer: null,
  scopes: null,
  signedInBy: null,
  signedInAt: null,
  expiresAt: null
} as const

const nameTaken = (name: string) =>
  new McpServerRefused({
    reason: "nameTaken",
    pointer: "/name",
    detail: `There is already an MCP server named ${name}`
  })

/** A newer version is stored than the one that a change was made from. */
export const changedMeanwhile = () =>
  new McpServerRefused({
    reason: "version",
    pointer: "",
    detail: "Somebody else has changed this server meanwhile: read it again"
  })

const columnsOf = (look: Look | undefined) => ({
  isPinned: look?.tools !== undefined,
  tools: JSON.stringify(look?.tools ?? []),
  error: typeof look?.error === "string" ? lineOf(look.error) : null
})

const decodeConfig = Schema.decodeUnknownEffect(McpServerConfig)
const decodeTools = Schema.decodeUnknownEffect(Schema.Array(PinnedTool))

const toKept = Effect.fnUntraced(function* (row: ServerRow): Effect.fn.Return<KeptServer> {
  const config = yield* Effect.orDie(decodeConfig(row.config))
  const tools = yield* Effect.orDie(decodeTools(row.tools))
  return {
    id: row.id,
    projectId: row.projectId,
    version: row.version,
    config,
    // A pin has the server's name at the time of its listing.
    tools: tools.map(offeredBy(config.name)),
    lastError: row.lastError
  }
})

const toServer = (row: ServerRow): Effect.Effect<McpServer> =>
  Effect.map(toKept(row), (kept) => toView(row, kept))

const toView = (row: ServerRow, kept: KeptServer): McpServer => {
  const { config, tools } = kept
  return {
    id: row.id,
    version: row.version,
    ...config,
    tools: tools.map((tool) => ({ ...tool, isAllowed: isAllowedTool(config, tool.name) })),
    pinnedAt: row.pinnedAt?.toISOString() ?? null,
    lastError: row.lastError,
    signIn: signInOf(kept, row.granted),
    eventSources: row.eventSources,
    createdBy: row.createdBy,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString()
  }
}
