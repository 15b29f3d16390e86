/**
 * The contract: one value from which server, client, OpenAPI and docs derive.
 *
 * Unknown fields are refused, not dropped: a misspelt safety setting that was
 * silently ignored would be worse than an error.
 */
import { HttpApi, OpenApi } from "effect/http-api"
import { AgentsApi } from "./agents-api.ts"
import { sayHeaders } from "./answer-headers.ts"
import { AttachmentsApi } from "./attachments-api.ts"
import { AutonomyApi } from "./autonomy-api.ts"
import { RequestProblems } from "./authorization.ts"
import { BacktestsApi } from "./backtests-api.ts"
import { ChainsApi } from "./chains-api.ts"
import { ChatApi, ConversationsApi } from "./chat-api.ts"
import { ComparisonsApi } from "./comparisons-api.ts"
import { DenialsApi } from "./denials-api.ts"
import { DumpsApi } from "./dumps-api.ts"
import { ExplanationsApi } from "./explanations-api.ts"
import { DefinitionsApi } from "./definitions-api.ts"
import { FeedApi, ObjectsApi, RelationshipsApi } from "./graph-api.ts"
import { sayKeys } from "./idempotency.ts"
import { HealthApi } from "./health-api.ts"
import { KillSwitchApi } from "./kill-switch-api.ts"
import { McpServersApi } from "./mcp-servers-api.ts"
import { ModelsApi } from "./models-api.ts"
import { MembersApi, ServerTokensApi, TokensApi } from "./members-api.ts"
import { MetricsApi } from "./metrics-api.ts"
import { ProcessingApi } from "./processing-api.ts"
import { RunRecordsApi } from "./run-records-api.ts"
import { ContextsApi } from "./contexts-api.ts"
import { RunsApi } from "./runs-api.ts"
import { sayOperations } from "./said-operations.ts"
import { SessionsApi } from "./sessions-api.ts"
import { ProjectsApi, SystemApi } from "./system-api.ts"
import { TasksApi } from "./tasks-api.ts"
import { DeliveriesApi, WebhooksApi } from "./webhooks-api.ts"
import { ToolCallsApi } from "./tool-calls-api.ts"
import { TransferApi } from "./transfer-api.ts"
import { UndosApi } from "./undos-api.ts"
import { VerificationApi } from "./verification-api.ts"

export class Api extends HttpApi.make("tropism")
  .add(SystemApi)
  .add(MetricsApi)
  .add(ProjectsApi)
  .add(MembersApi)
  .add(TokensApi)
  .add(ServerTokensApi)
  .add(SessionsApi)
  .add(KillSwitchApi)
  .add(HealthApi)
  .add(ObjectsApi)
  .add(RelationshipsApi)
  .add(FeedApi)
  .add(ChainsApi)
  .add(TransferApi)
  .add(DumpsApi)
  .add(ExplanationsApi)
  .add(AgentsApi)
  .add(AutonomyApi)
  .add(ProcessingApi)
  .add(DefinitionsApi)
  .add(McpServersApi)
  .add(RunsApi)
  .add(ModelsApi)
  .add(RunRecordsApi)
  .add(ContextsApi)
  .add(ChatApi)
  .add(ComparisonsApi)
  .add(ConversationsApi)
  .add(BacktestsApi)
  .add(AttachmentsApi)
  .add(TasksApi)
  .add(DenialsApi)
  .add(ToolCallsApi)
  .add(UndosApi)
  .add(WebhooksApi)
  .add(DeliveriesApi)
  .add(VerificationApi)
  .middleware(RequestProblems)
  .annotate(HttpApi.ParseOptions, { onExcessProperty: "error", errors: "all" })
  .annotate(HttpApi.HeadersParseOptions, {})
  .annotate(HttpApi.SuccessParseOptions, {})
  .annotate(HttpApi.ErrorParseOptions, {})
  .annotateMerge(
    OpenApi.annotations({
      title: "Tropism",
      version: "0.1.0",
      description: "Agents that act on a shared knowledge graph when it changes."
    })
  )
  .annotate(OpenApi.Transform, (specification) => sayHeaders(sayKeys(sayOperations(specification)))) {}
