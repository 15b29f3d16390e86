/**
 * All routes of the server: the contract's, the pages, and 404 for the rest.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { OpenAiApi } from "@tropism/api/openai-api"
import { ByteSize, Layer } from "effect"
import { HttpIncomingMessage } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { httpLimits } from "../limits.ts"
import { agentsHandlers } from "./agents-handlers.ts"
import { attachmentsHandlers } from "./attachments-handlers.ts"
import { autonomyHandlers } from "./autonomy-handlers.ts"
import { denialsHandlers } from "./denials-handlers.ts"
import { backtestsHandlers } from "./backtests-handlers.ts"
import { chatHandlers } from "./chat-handlers.ts"
import { chainsHandlers } from "./chains-handlers.ts"
import { comparisonsHandlers } from "./comparisons-handlers.ts"
import { conversationsHandlers } from "./conversations-handlers.ts"
import { dumpsHandlers } from "./dumps-handlers.ts"
import { layerAuthorization } from "./authorization.ts"
import { explanationsHandlers } from "./explanations-handlers.ts"
import { definitionsHandlers } from "./definitions-handlers.ts"
import { feedHandlers } from "./feed-handlers.ts"
import { objectsHandlers } from "./graph-handlers.ts"
import { healthHandlers } from "./health-handlers.ts"
import { killSwitchHandlers } from "./kill-switch-handlers.ts"
import { mcpServersHandlers } from "./mcp-servers-handlers.ts"
import { membersHandlers } from "./members-handlers.ts"
import { metricsHandlers } from "./metrics-handlers.ts"
import { completionsHandlers, projectCompletionsHandlers } from "./openai-handlers.ts"
import { layerOpenAiAuthorization, layerOpenAiErrors, layerOpenAiMissing } from "./openai-middleware.ts"
import { layerPages } from "./pages.ts"
import { relationshipsHandlers } from "./relationships-handlers.ts"
import { layerRequestJudgement } from "./request-judgement.ts"
import { layerRequestProblems } from "./request-problems.ts"
import { modelsHandlers } from "./models-handlers.ts"
import { processingHandlers } from "./processing-handlers.ts"
import { runRecordsHandlers } from "./run-records-handlers.ts"
import { contextsHandlers } from "./contexts-handlers.ts"
import { runsHandlers } from "./runs-handlers.ts"
import { projectsHandlers, systemHandlers } from "./system-handlers.ts"
import { tasksHandlers } from "./tasks-handlers.ts"
import { deliveriesHandlers, webhooksHandlers } from "./webhooks-handlers.ts"
import { undosHandlers } from "./undos-handlers.ts"
import { sessionsHandlers } from "./sessions-handlers.ts"
import { serverTokensHandlers, tokensHandlers } from "./tokens-handlers.ts"
import { toolCallsHandlers } from "./tool-calls-handlers.ts"
import { transferHandlers } from "./transfer-handlers.ts"
import { verificationHandlers } from "./verification-handlers.ts"

const handlers = Layer.mergeAll(
  systemHandlers,
  metricsHandlers,
  projectsHandlers,
  membersHandlers,
  tokensHandlers,
  serverTokensHandlers,
  sessionsHandlers,
  killSwitchHandlers,
  healthHandlers,
  objectsHandlers,
  relationshipsHandlers,
  feedHandlers,
  chainsHandlers,
  transferHandlers,
  dumpsHandlers,
  explanationsHandlers,
  agentsHandlers,
  autonomyHandlers,
  denialsHandlers,
  toolCallsHandlers,
  processingHandlers,
  definitionsHandlers,
  mcpServersHandlers,
  runsHandlers,
  modelsHandlers,
  runRecordsHandlers,
  chatHandlers,
  contextsHandlers,
  comparisonsHandlers,
  conversationsHandlers,
  backtestsHandlers,
  attachmentsHandlers,
  tasksHandlers,
  undosHandlers,
  webhooksHandlers,
  deliveriesHandlers,
  verificationHandlers
)

/** The door for OpenAI's clients, whose contract lies beside it. */
const layerOpenAi = Layer.mergeAll(
  HttpApiBuilder.layer(OpenAiApi, { openapiPath: "/v1/openapi.json" }).pipe(
    Layer.provide([completionsHandlers, projectCompletionsHandlers]),
    Layer.provide([layerOpenAiAuthorization, layerOpenAiErrors])
  ),
  layerOpenAiMissing
)

/** The routes; `consoleFolder` is where the built console lies. */
export const layerRoutes = (consoleFolder: string | undefined) =>
  Layer.mergeAll(
    HttpApiBuilder.layer(Api, { openapiPath: "/openapi.json" }).pipe(
      Layer.provide(handlers),
      Layer.provide([layerAuthorization, layerRequestJudgement, layerRequestProblems])
    ),
    layerOpenAi,
    layerPages(consoleFolder)
  ).pipe(
    Layer.provide(Layer.succeed(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(httpLimits.bodyMaxBytes)))
  )
