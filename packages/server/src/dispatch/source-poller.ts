/**
 * Asks foreign servers what happened, for the agents that listen.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * A claim is a transaction, the question is none, and keeping the answer is
 * another one that the claim guards. So a program may die anywhere, and two never
 * tell the same. A slow server holds up nobody: questions are asked side by side,
 * a bounded number, of one project too, and projects take turns.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { isAllowedEvent } from "@tropism/domain/mcp-server"
import { Context, Effect, Layer } from "effect"
import { CrashPoint } from "../crash-point.ts"
import { Database } from "../database/database.ts"
import { throughOutages } from "../outbox/outages.ts"
import { makePlaces } from "../outbox/places.ts"
import { drive, share, untilWoken, WakeUps } from "../outbox/wake-ups.ts"
import { ForeignEvents } from "../tool/foreign-events.ts"
import { answered } from "../tool/foreign-fault.ts"
import { type KeptServer, McpServers } from "../tool/mcp-servers.ts"
import { sourceLimits } from "../tool/source-limits.ts"
import { type ClaimedSource, makeEventSources } from "./event-sources.ts"
import { makeTelling } from "./telling.ts"

export class SourcePoller extends Context.Service<
  SourcePoller,
  {
    /** Asks for ever. */
    readonly run: Effect.Effect<never>
  }
>()("@tropism/server/dispatch/SourcePoller") {
  static readonly layer = Layer.effect(
    SourcePoller,
    Effect.gen(function* () {
      const database = yield* Database
      const wakeUps = yield* WakeUps
      const foreign = yield* ForeignEvents
      const servers = yield* McpServers
      const sources = yield* makeEventSources
      const { tell } = yield* makeTelling

      const ask = Effect.fnUntraced(function* (source: ClaimedSource, server: KeptServer | undefined) {
        const { name, serverName } = source
        if (server === undefined)
          return yield* answered(`The project has no MCP server named ${serverName} that is enabled`)
        if (!isAllowedEvent(server.config, name))
          return yield* answered(`The allowedEvents of ${serverName} do not name ${name} any more`)
        // A cursor of another server of the same name says nothing to this one.
        const cursor = source.serverId === server.id ? source.cursor : null
        // What happens elsewhere is told to agents, and to no member.
        const whom = { ...server, member: null }
        const telling = yield* foreign.ask(whom, { name, arguments: source.arguments, cursor })
        return { serverId: server.id, telling }
      })

      /** One question, and what comes of it; whoever leaves in the middle lets others ask at once. */
      const turn = Effect.fnUntraced(
        function* (projectId: ProjectId, source: ClaimedSource, server: KeptServer | undefined) {
          yield* CrashPoint.hit("source.afterClaim")
          const answer = yield* Effect.result(ask(source, server))
          yield* CrashPoint.hit("source.beforeKeep")
          if (answer._tag === "Failure")
            yield* throughOutages(
              database.inProject(projectId, sources.noteFault(source, answer.failure.message))
            )
          else
            yield* throughOutages(
              database.inProject(projectId, tell(source, answer.success.serverId, answer.success.telling))
            )
          yield* CrashPoint.hit("source.afterCommit")
          return 1
        },
        (work, projectId, source) =>
          Effect.onInterrupt(work, () => database.inProject(projectId, sources.release(source)))
      )

      const take = (limit: number) =>
        Effect.gen(function* () {
          const claimed = yield* sources.claim(limit)
          const known = claimed.length === 0 ? [] : yield* servers.enabled
          return claimed.map((source) => ({
            source,
            server: known.find(({ config }) => config.name === source.serverName)
          }))
        })

      const run = Effect.gen(function* () {
        const { occupy, round } = yield* makePlaces({
          places: sourceLimits.concurrentPolls,
          sparePlaces: sourceLimits.sparePolls,
          placesPerProject: sourceLimits.pollsPerProject
        })
        // Whatever is taken is under way behind it, so that whoever leaves lets it go.
        const begin = Effect.fnUntraced(function* (projectId: ProjectId, atMost: number) {
          const taken = yield* database.inProject(projectId, take(atMost))
          for (const { server, source } of taken)
            yield* occupy(
              projectId,
              Effect.andThen(
                share("Source poller", projectId, turn(projectId, source, server)),
                // Its place is free, and there may be more to ask.
                wakeUps.signal("sources")
              )
            )
          return taken.length
        }, Effect.uninterruptible)
        const asking = Effect.flatMap(sources.due, (due) =>
          round(due, (projectId, atMost) => share("Source poller", projectId, begin(projectId, atMost)))
        )
        return yield* drive("Source poller", "sources", untilWoken, asking)
      }).pipe(Effect.scoped, Effect.provideService(WakeUps, wakeUps))

      return SourcePoller.of({ run })
    })
  )
}
