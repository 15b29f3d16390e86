/**
 * Every layer of the server, in the order in which an event travels.
 *
 * Flow: http → graph → outbox → dispatch → run → tool → task
 *
 * Here, and only here, the ports that look leftward are filled: the graph learns
 * what an agent may do, and a tool learns whether its run may still write. The
 * platform holds no logic; to add a stage is to add a line.
 */
import { Effect, Layer } from "effect"
import { Agents } from "./agent/agents.ts"
import { Attachments } from "./agent/attachments.ts"
import { agentAuthority } from "./agent/authorities.ts"
import { Contexts } from "./agent/contexts.ts"
import { Declarations } from "./agent/declarations.ts"
import { Passages } from "./agent/passages.ts"
import { PassingWords } from "./agent/passing-words.ts"
import { TodoAssistants } from "./agent/todo-assistants.ts"
import { Versions } from "./agent/versions.ts"
import type { Alone } from "./cluster/cluster.ts"
import { Lookout } from "./cluster/lookout.ts"
import { every, Sweeps } from "./cluster/sweeps.ts"
import { Database } from "./database/database.ts"
import { Dumper } from "./database/dumper.ts"
import { IdempotencyKeys } from "./database/idempotency-keys.ts"
import { KeyBells } from "./database/key-bells.ts"
import { Members } from "./database/members.ts"
import { Projects } from "./database/projects.ts"
import { Restorer } from "./database/restorer.ts"
import { Sealing } from "./database/sealing.ts"
import { Chains } from "./dispatch/chain-reading.ts"
import { Backtester } from "./dispatch/backtester.ts"
import { BacktestReading } from "./dispatch/backtest-reading.ts"
import { Backtests } from "./dispatch/backtests.ts"
import { Chatting } from "./chat/chatting.ts"
import { BroughtContexts } from "./chat/brought-contexts.ts"
import { Completions } from "./chat/completions.ts"
import { Conversations } from "./chat/conversations.ts"
import { Messages } from "./chat/messages.ts"
import { Responses } from "./chat/responses.ts"
import { Speaking } from "./chat/speaking.ts"
import { Turns } from "./chat/turns.ts"
import { Comparisons } from "./dispatch/comparisons.ts"
import { ContextBeginnings } from "./dispatch/context-beginnings.ts"
import { Admission } from "./run/admission.ts"
import { Deliveries } from "./dispatch/deliveries.ts"
import { BatchTriggers } from "./dispatch/batch-triggers.ts"
import { Dispatcher } from "./dispatch/dispatcher.ts"
import { PendingEvents } from "./dispatch/pending-events.ts"
import { Releaser } from "./dispatch/releaser.ts"
import { Explanations } from "./dispatch/explanations.ts"
import { AgentHealths } from "./dispatch/agent-health.ts"
import { ReactionQueues } from "./dispatch/reaction-queues.ts"
import { Retries } from "./dispatch/retries.ts"
import { SourcePoller } from "./dispatch/source-poller.ts"
import { Scheduler } from "./dispatch/scheduler.ts"
import { Reruns } from "./dispatch/reruns.ts"
import { Resumptions } from "./dispatch/resumptions.ts"
import { Triggers } from "./dispatch/triggers.ts"
import { Webhooks } from "./dispatch/webhooks.ts"
import { Authorities } from "./graph/authority.ts"
import { Exporter } from "./graph/exporter.ts"
import { Gateway } from "./graph/gateway.ts"
import { ImportBatch } from "./graph/import-batch.ts"
import { ImportLookup } from "./graph/import-lookup.ts"
import { ImportTurns } from "./graph/import-turns.ts"
import { Importer } from "./graph/importer.ts"
import { Imports } from "./graph/imports.ts"
import { LineImporter } from "./graph/line-importer.ts"
import { Inspector } from "./graph/inspector.ts"
import { Moments } from "./graph/moments.ts"
import { Neighborhoods } from "./graph/neighborhoods.ts"
import { Objects } from "./graph/objects.ts"
import { Provenances } from "./graph/provenance.ts"
import { Purges } from "./graph/purges.ts"
import { Relationships } from "./graph/relationships.ts"
import { Closing } from "./http/closing.ts"
import { Permits } from "./http/permits.ts"
import { Readiness } from "./http/readiness.ts"
import { LiveLogs } from "./http/live-logs.ts"
import { IssuedTokens } from "./http/issued-tokens.ts"
import { Sessions } from "./http/sessions.ts"
import { tokenLimits } from "./http/token-limits.ts"
import { Tokens } from "./http/tokens.ts"
import { DeclinedInputs } from "./mcp/declined-inputs.ts"
import { Callbacks } from "./mcp/callbacks.ts"
import { EventDeliverer } from "./mcp/event-deliverer.ts"
import { EventSubscribing } from "./mcp/event-subscribing.ts"
import { EventSubscriptions } from "./mcp/event-subscriptions.ts"
import { EventReading } from "./mcp/event-reading.ts"
import { EventStreams } from "./mcp/event-streams.ts"
import { ResourceReaders } from "./mcp/resource-readers.ts"
import { ResourceUpdates } from "./mcp/resource-updates.ts"
import { RunTasks } from "./mcp/run-tasks.ts"
import { SessionSubscriptions } from "./mcp/session-subscriptions.ts"
import { FeedSearch } from "./outbox/feed-search.ts"
import { agentDesk } from "./mcp/agent-desk.ts"
import { Outbox } from "./outbox/outbox.ts"
import { WakeUps } from "./outbox/wake-ups.ts"
import { Actor } from "./run/actor.ts"
import { AgentDays } from "./run/agent-days.ts"
import { Attendance } from "./run/attendance.ts"
import { childRuns } from "./run/children.ts"
import { Descendants } from "./run/descendants.ts"
import { Endings } from "./run/endings.ts"
import { KillSwitches } from "./run/kill-switches.ts"
import { ModelCallReading } from "./run/model-call-reading.ts"
import { OpenRequestReading } from "./run/open-request-reading.ts"
import { ModelCalls } from "./run/model-calls.ts"
import { RunAppends } from "./run/run-appends.ts"
import { Presence } from "./run/presence.ts"
import { ProcessingLog } from "./run/processing-log.ts"
import { ClientResults } from "./run/client-results.ts"
import { Answers, questions } from "./run/questions.ts"
import { Runs } from "./run/runs.ts"
import { RunObjectReading } from "./run/run-objects.ts"
import { StepReading } from "./run/step-reading.ts"
import { Verifier } from "./run/verifier.ts"
import { WaitingEntries } from "./run/waiting-entries.ts"
import { ProviderWaits } from "./run/provider-waits.ts"
import { Worker } from "./run/worker.ts"
import { Autonomy } from "./task/autonomy.ts"
import { QuestionTasks } from "./task/question-tasks.ts"
import { Todos } from "./task/todos.ts"
import { Tasks } from "./task/tasks.ts"
import { Undos } from "./task/undos.ts"
import { Denials } from "./tool/denials.ts"
import { ForeignCalls } from "./tool/foreign-calls.ts"
import { ForeignEvents } from "./tool/foreign-events.ts"
import { ForeignConnections } from "./tool/foreign-connections.ts"
import { ForeignOffers } from "./tool/foreign-offers.ts"
import { GraphEffects } from "./tool/graph-effects.ts"
import { TodoEffects } from "./tool/todo-effects.ts"
import { McpServers } from "./tool/mcp-servers.ts"
import { OAuthGrants } from "./tool/oauth-grants.ts"
import { PersonTools } from "./tool/person-tools.ts"
import { AttemptLost, RunGuard } from "./tool/principal.ts"
import { ServerRegistry } from "./tool/server-registry.ts"
import { SignIns } from "./tool/sign-ins.ts"
import { ToolCalls } from "./tool/tool-calls.ts"
import { ToolServers } from "./tool/tool-servers.ts"
import { Toolbox } from "./tool/toolbox.ts"

/** The graph asks the agents what one of them may do. */
const authorities = Layer.effect(
  Authorities,
  Effect.map(agentAuthority, (of) => ({ of }))
)

/** A tool asks the runs whether an attempt may still write. */
const runGuard = Layer.effect(
  RunGuard,
  Effect.map(Runs, (runs) => ({
    hold: ({ runId, attemptToken }) =>
      Effect.mapError(runs.hold({ id: runId, attemptToken }), () => new AttemptLost({ runId }))
  }))
)

/** Who waits under a key is woken as others are. */
const keyBells = Layer.effect(
  KeyBells,
  Effect.map(WakeUps, ({ listen, signal }) => ({
    ring: (keyHash) => signal(`key:${keyHash}`),
    listen: (keyHash) => listen(`key:${keyHash}`)
  }))
)

const database = Layer.mergeAll(Database.layer, WakeUps.layer, Sealing.layer)
const ground = Layer.provideMerge(
  Layer.mergeAll(
    Projects.layer,
    Layer.provideMerge(IdempotencyKeys.layer, keyBells),
    Dumper.layer,
    Restorer.layer,
    Outbox.layer,
    FeedSearch.layer,
    Tokens.layer,
    IssuedTokens.layer,
    Sessions.layer,
    Members.layer,
    KillSwitches.layer,
    Layer.provideMerge(LiveLogs.layer, Layer.merge(Closing.layer, Permits.layer)),
    Readiness.layer,
    PassingWords.layer,
    BroughtContexts.layer
  ),
  database
)
const agents = Layer.provideMerge(
  Layer.mergeAll(Versions.layer, Declarations.layer, TodoAssistants.layer),
  Layer.provideMerge(
    Layer.mergeAll(Agents.layer, Contexts.layer, Passages.layer, Attachments.layer, authorities),
    ground
  )
)
const reads = Layer.provideMerge(Layer.mergeAll(Objects.layer, Relationships.layer, Moments.layer), agents)
const graph = Layer.provideMerge(
  Layer.mergeAll(Gateway.layer, Inspector.layer, Neighborhoods.layer, Provenances.layer, Purges.layer),
  reads
)
const imports = Layer.provideMerge(
  Layer.mergeAll(ImportBatch.layer, Imports.layer, ImportTurns.layer),
  Layer.provideMerge(ImportLookup.layer, graph)
)
const transfer = Layer.mergeAll(Importer.layer, LineImporter.layer, Exporter.layer).pipe(
  Layer.provideMerge(imports)
)
const records = Layer.provideMerge(
  Layer.mergeAll(
    Tasks.layer,
    Autonomy.layer,
    Undos.layer,
    QuestionTasks.layer,
    Todos.layer,
    Runs.layer,
    AgentDays.layer,
    ModelCalls.layer,
    RunAppends.layer,
    ModelCallReading.layer,
    OpenRequestReading.layer,
    RunObjectReading.layer,
    StepReading.layer,
    ProcessingLog.layer,
    WaitingEntries.layer,
    Verifier.layer,
    Admission.layer
  ),
  Layer.provideMerge(Layer.merge(ToolCalls.layer, Denials.layer), transfer)
)
const tools = Layer.provideMerge(
  Layer.mergeAll(
    GraphEffects.layer,
    TodoEffects.layer,
    runGuard,
    childRuns,
    questions,
    Answers.layer,
    ClientResults.layer,
    Descendants.layer
  ),
  Layer.provideMerge(Layer.provideMerge(Endings.layer, Attendance.layer), records)
)
const foreignTools = Layer.mergeAll(
  ForeignCalls.layer,
  ForeignEvents.layer,
  ForeignOffers.layer,
  ServerRegistry.layer,
  SignIns.layer
).pipe(
  Layer.provideMerge(
    Layer.provideMerge(ForeignConnections.layer, Layer.merge(McpServers.layer, OAuthGrants.layer))
  ),
  Layer.provideMerge(tools)
)
const toolServers = Layer.provideMerge(ToolServers.layer, Layer.provideMerge(Toolbox.layer, foreignTools))
const runs = Layer.provideMerge(
  Worker.layer,
  Layer.provideMerge(
    Layer.merge(Actor.layer, Presence.layer),
    Layer.provideMerge(ProviderWaits.layer, toolServers)
  )
)
const dispatch = Layer.mergeAll(
  Dispatcher.layer,
  Releaser.layer,
  Scheduler.layer,
  SourcePoller.layer,
  Backtester.layer,
  Backtests.layer,
  BacktestReading.layer,
  Triggers.layer,
  Resumptions.layer,
  ContextBeginnings.layer,
  Layer.provide(Comparisons.layer, Layer.mergeAll(Triggers.layer, ContextBeginnings.layer)),
  Retries.layer,
  AgentHealths.layer,
  ReactionQueues.layer,
  PendingEvents.layer,
  BatchTriggers.layer,
  Reruns.layer,
  Chains.layer,
  Explanations.layer,
  Webhooks.layer,
  Deliveries.layer,
  Lookout.layer,
  Sweeps.layer
)

const chat = Layer.mergeAll(Chatting.layer, Completions.layer, Responses.layer).pipe(
  Layer.provideMerge(Layer.mergeAll(Conversations.layer, Messages.layer, Speaking.layer, Turns.layer)),
  Layer.provideMerge(Layer.provideMerge(dispatch, runs))
)

/** What the MCP door offers beside tools: runs as tasks, the graph as a source of events, and what changes in resources. */
const mcp = Layer.mergeAll(
  RunTasks.layer,
  ResourceUpdates.layer,
  EventStreams.layer,
  EventSubscribing.layer,
  EventDeliverer.layer
).pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      EventReading.layer,
      DeclinedInputs.layer,
      Callbacks.layer,
      EventSubscriptions.layer,
      ResourceReaders.layer,
      SessionSubscriptions.layer
    )
  ),
  Layer.provideMerge(PersonTools.layer.pipe(Layer.provideMerge(agentDesk), Layer.provideMerge(chat)))
)

/** Every service; it needs SQL, models, ids and keys. */
export const platformLayer = mcp

/** The loops that move events along, until the scope ends; where servers work together some go on at one of them alone. */
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
  const { run: looking } = yield* Lookout
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
  // The others listen by then to what it finds first.
  yield* fork("lookout", looking)
})
