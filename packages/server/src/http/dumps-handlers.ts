/**
 * Whole projects that come and go: dumps and restores.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal } from "@tropism/api/authorization"
import type { RestoreLine } from "@tropism/api/dumps-api"
import { Conflict, Unauthorized } from "@tropism/api/problems"
import type { ProjectId } from "@tropism/domain/ids"
import { Effect, Exit, Queue, Scope, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Dumper } from "../database/dumper.ts"
import { type JudgedDump, judgeDump, receiveDump } from "../database/dump-file.ts"
import { Projects } from "../database/projects.ts"
import { Restorer, type RestoreWish } from "../database/restorer.ts"
import { senderLost } from "../graph/import-source.ts"
import { Ids } from "../ids.ts"
import { looking, requireServerAdmin } from "./access.ts"
import { currentLoss, currentServerLoss } from "./permits.ts"
import { invalid, keepable } from "./refusals.ts"
import { refuseRest } from "./request-judgement.ts"

export const dumpsHandlers = HttpApiBuilder.group(Api, "dumps", (handlers) =>
  handlers
    .handleRaw(
      "dump",
      Effect.fn("http.dump")(function* ({ params: { projectId } }) {
        const dumper = yield* Dumper
        const { userId } = yield* looking(projectId, "admin", Effect.succeed)
        const rows = yield* dumper.count(projectId)
        const lost = yield* currentLoss(projectId)
        return HttpServerResponse.stream(dumper.lines(projectId, userId, lost), {
          contentType: "application/x-ndjson",
          headers: { "cache-control": "no-store", "tropism-rows": String(rows) }
        })
      })
    )
    .handle(
      "restoreDump",
      Effect.fn("http.restoreDump")(function* ({ payload, query }) {
        const principal = yield* CurrentPrincipal
        yield* requireServerAdmin(principal)
        yield* keepable(query)
        const projectId = query.id ?? ((yield* (yield* Ids).next) as ProjectId)
        if (query.id !== undefined) yield* checkFree(query.id)
        const lost = yield* currentServerLoss
        const scope = yield* Scope.make()
        const dump = yield* receiveDump(payload).pipe(
          Effect.flatMap(judgeDump),
          Effect.mapError(({ detail }) => invalid("", detail)),
          Effect.raceFirst(Effect.andThen(lost, refuseRest(lostToken))),
          Scope.provide(scope),
          Effect.onError(() => Scope.close(scope, Exit.void))
        )
        const { restore } = yield* Restorer
        const wish: RestoreWish = { projectId, name: query.name, by: principal.userId }
        return restoring(restore, dump, wish, lost).pipe(Stream.ensuring(Scope.close(scope, Exit.void)))
      })
    )
)

const idTaken = "There is a project of this id already: if an earlier restore was to make it, it did"

const checkFree = Effect.fnUntraced(function* (id: ProjectId) {
  const projects = yield* Projects
  const [found] = yield* projects.list([id], undefined, 1)
  if (found) return yield* new Conflict({ reason: "idTaken", detail: idTaken })
})

/** What whoever sends a dump is told who may restore none any more. */
const lostToken = new Unauthorized({
  detail: "Your token is not good any more, or has another role by now: nothing of what you sent was restored"
})

/** What a restore says, until its sender may restore no more; whoever reads slowly misses some of the progress and holds nothing up. */
const restoring = (
  restore: Restorer["Service"]["restore"],
  dump: JudgedDump,
  wish: RestoreWish,
  lost: Effect.Effect<void>
): Stream.Stream<RestoreLine> =>
  Stream.callback<RestoreLine>(
    (queue) => {
      const tell = (done: number) => Queue.offer(queue, { type: "progress", done, total: dump.rows })
      return restore(dump, wish, tell).pipe(
        Effect.map((restored): RestoreLine => ({ type: "finished", ...restored })),
        Effect.catchTag("DumpRefused", ({ detail }) => Effect.succeed(failed(detail))),
        Effect.catchTag("ProjectIdTaken", () => Effect.succeed(failed(`${idTaken}.`))),
        Effect.raceFirst(Effect.as(lost, failed(`${senderLost.detail}. ${wholeOrNot(wish)}`))),
        Effect.catchCause((cause) =>
          Effect.as(
            Effect.logError("A restore failed", cause),
            failed(`The server failed; its log says why. ${wholeOrNot(wish)}`)
          )
        ),
        Effect.flatMap((line) => Queue.offer(queue, line)),
        Effect.andThen(Queue.end(queue))
      )
    },
    { bufferSize: 4, strategy: "sliding" }
  )

const wholeOrNot = ({ projectId }: RestoreWish): string =>
  `The restore was done as a whole or not at all: look whether there is a project ${projectId}`

const failed = (message: string): RestoreLine => ({ type: "failed", message })
