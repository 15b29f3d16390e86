/** All routes of the server: the contract's, the pages, and 404 for the rest. */
import { Api } from "@tropism/api/api"
import { OpenAiApi } from "@tropism/api/openai-api"
import { ByteSize, Layer } from "effect"
import { HttpIncomingMessage } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { httpLimits } from "../limits.ts"
import {
  agentsHandlers,
  autonomyHandlers,
  backtestsHandlers,
  definitionsHandlers,
  processingHandlers
} from "./agents-routes.ts"
import { layerAuthorization } from "./authentication.ts"
import { attachmentsHandlers, chatHandlers, conversationsHandlers } from "./chat-routes.ts"
import { comparisonsHandlers, contextsHandlers } from "./contexts-routes.ts"
import {
  chainsHandlers,
  explanationsHandlers,
  feedHandlers,
  objectsHandlers,
  relationshipsHandlers,
  undosHandlers
} from "./graph-routes.ts"
import {
  completionsHandlers,
  projectCompletionsHandlers,
  layerOpenAiAuthorization,
  layerOpenAiErrors,
  layerOpenAiMissing
} from "./openai/endpoint.ts"
import {
  denialsHandlers,
  healthHandlers,
  metricsHandlers,
  modelsHandlers,
  verificationHandlers
} from "./operations-routes.ts"
import { layerPages } from "./pages.ts"
import { layerRequestJudgement, layerRequestProblems } from "./request-validation.ts"
import { tasksHandlers } from "./review-routes.ts"
import { killSwitchHandlers, runRecordsHandlers, runsHandlers, toolCallsHandlers } from "./runs-routes.ts"
import {
  membersHandlers,
  projectsHandlers,
  systemHandlers,
  sessionsHandlers,
  serverTokensHandlers,
  tokensHandlers
} from "./tenancy-routes.ts"
import { mcpServersHandlers } from "./tools-routes.ts"
import { dumpsHandlers, transferHandlers } from "./transfer-routes.ts"
import { deliveriesHandlers, webhooksHandlers } from "./webhook-routes.ts"

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

/** The OpenAI endpoint, which has its own contract. */
const layerOpenAi = Layer.mergeAll(
  HttpApiBuilder.layer(OpenAiApi, { openapiPath: "/v1/openapi.json" }).pipe(
    Layer.provide([completionsHandlers, projectCompletionsHandlers]),
    Layer.provide([layerOpenAiAuthorization, layerOpenAiErrors])
  ),
  layerOpenAiMissing
)

/** The routes; `consoleFolder` has the built console. */
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
