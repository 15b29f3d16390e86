/**
 * Stacks the server's modules in the order of their dependencies.
 *
 * **Invariant**: ports that point up the stack are implemented here and nowhere else: the graph learns an agent's rights, a tool whether
 * its run may still write, and a waiting request that the work under its key has ended.
 */
import { Effect, Layer } from "effect"
import { agentAuthority } from "./agents/authority.ts"
import { agentsLayer } from "./agents/layer.ts"
import { BroughtContexts } from "./chat/conversations.ts"
import { chatLayer } from "./chat/layer.ts"
import type { Alone } from "./cluster/cluster.ts"
import { clusterLayer } from "./cluster/layer.ts"
import { every, Sweeps } from "./cluster/sweeps.ts"
import { WorkPoller } from "./cluster/work-poller.ts"
import { contextsLayer } from "./contexts/layer.ts"
import { TextDeltas } from "./contexts/text-deltas.ts"
import { Database } from "./database/database.ts"
import { Sealing } from "./database/sealing.ts"
import { Authorities } from "./graph/authority.ts"
import { graphLayer } from "./graph/layer.ts"
import { httpLayer } from "./http/layer.ts"
import { tokenLimits } from "./http/limits.ts"
import { Readiness } from "./http/listener.ts"
import { Tokens } from "./http/tokens.ts"
import { EventDeliverer } from "./mcp/event-delivery.ts"
import { mcpLayer } from "./mcp/layer.ts"
import { agentToolsPort } from "./mcp/people-tools.ts"
import { outboxLayer } from "./outbox/layer.ts"
import { Notifier } from "./outbox/notifier.ts"
import { Backtester } from "./reactions/backtests.ts"
import { Dispatcher } from "./reactions/dispatcher.ts"
import { SourcePoller } from "./reactions/external-events.ts"
import { reactionsLayer } from "./reactions/layer.ts"
import { Releaser } from "./reactions/releases.ts"
import { Scheduler } from "./reactions/schedules.ts"
import { reviewLayer } from "./review/layer.ts"
import { KillSwitches } from "./runs/kill-switches.ts"
import { runEngine, runPorts, runRecords } from "./runs/layer.ts"
import { ProviderWaits } from "./runs/provider-waits.ts"
import { Runs } from "./runs/run-store.ts"
import { Descendants } from "./runs/sub-runs.ts"
import { Worker } from "./runs/worker.ts"
import { KeyNotifications } from "./tenancy/idempotency-keys.ts"
import { tenancyLayer } from "./tenancy/layer.ts"
import { toolEffects, toolRecords, toolsLayer } from "./tools/layer.ts"
import { PersonTools } from "./tools/person-tools.ts"
import { AttemptLost, RunGuard } from "./tools/principal.ts"

/** Gives the graph the rights of an agent. */
const authorities = Layer.effect(
  Authorities,
  Effect.map(agentAuthority, (of) => ({ of }))
)

/** Lets a tool check whether an attempt may still write. */
const runGuard = Layer.effect(
  RunGuard,
  Effect.map(Runs, (runs) => ({
    hold: ({ runId, attemptToken }) =>
      Effect.mapError(runs.hold({ id: runId, attemptToken }), () => new AttemptLost({ runId }))
  }))
)

/** Lets the notifier wake a request that waits under an idempotency key. */
const keyNotifications = Layer.effect(
  KeyNotifications,
  Effect.map(Notifier, ({ listen, signal }) => ({
    ring: (keyHash) => signal(`key:${keyHash}`),
    listen: (keyHash) => listen(`key:${keyHash}`)
  }))
)

/** Every service; it requires SQL, models, ids and keys. */
export const platformLayer = mcpLayer.pipe(
  Layer.provideMerge(Layer.provideMerge(PersonTools.layer, agentToolsPort)),
  Layer.provideMerge(chatLayer),
  Layer.provideMerge(clusterLayer),
  Layer.provideMerge(reactionsLayer),
  Layer.provideMerge(runEngine),
  Layer.provideMerge(toolsLayer),
  Layer.provideMerge(Layer.mergeAll(runPorts, toolEffects, runGuard)),
  Layer.provideMerge(Layer.merge(reviewLayer, runRecords)),
  Layer.provideMerge(toolRecords),
  Layer.provideMerge(graphLayer),
  Layer.provideMerge(Layer.merge(agentsLayer, authorities)),
  Layer.provideMerge(contextsLayer),
  Layer.provideMerge(
    Layer.mergeAll(
      Layer.provideMerge(tenancyLayer, keyNotifications),
      outboxLayer,
      httpLayer,
      KillSwitches.layer,
      TextDeltas.layer,
      BroughtContexts.layer
    )
  ),
  Layer.provideMerge(Layer.mergeAll(Database.layer, Notifier.layer, Sealing.layer))
)

/** The background loops, until the scope ends; in a cluster some run on one server only. */
export const loops = Effect.fnUntraced(function* (alone: Alone | undefined) {
  const { run: dispatching } = yield* Dispatcher
  const { run: releasing } = yield* Releaser
  const { run: scheduling } = yield* Scheduler
  const { run: asking } = yield* SourcePoller
  const { run: testing } = yield* Backtester
  const { run: working } = yield* Worker
  const { run: probing } = yield* ProviderWaits
  const { run: following } = yield* Descendants
  const { run: sweeping } = yield* Sweeps
  const { run: looking } = yield* WorkPoller
  const { run: delivering } = yield* EventDeliverer
  const { hold } = yield* Tokens
  const { depend } = yield* Readiness
  const holding = every("The admin's token", tokenLimits.holdIntervalMs, hold, (count) =>
    Effect.logInfo(`${count} tokens of the admin that no server is started with any more let nobody in now`)
  )
  const here = {
    dispatcher: dispatching,
    releaser: releasing,
    backtester: testing,
    worker: working,
    "provider waits": probing,
    deliverer: delivering,
    "admin's token": holding
  }
  const once = { scheduler: scheduling, "source poller": asking, waits: following, sweeps: sweeping }
  const fork = (name: string, loop: Effect.Effect<never>) => Effect.forkScoped(depend(name, loop))
  yield* Effect.forEach(Object.entries(here), ([name, loop]) => fork(name, loop), { discard: true })
  yield* Effect.forEach(Object.entries(once), ([name, loop]) => (alone ?? fork)(name, loop), {
    discard: true
  })
  // Last, so that the others listen before it first notifies.
  yield* fork("lookout", looking)
})
