/**
 * Backtests: a version of an agent is run over events that happened, and nothing that it does reaches anybody.
 */
import { Backtest, BacktestInput, BacktestResult, ReportedBacktest } from "@tropism/domain/backtest"
import { AgentId, BacktestId, ProjectId } from "@tropism/domain/ids"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Page, PageQuery } from "./page.ts"
import { Conflict, Forbidden, InvalidInput, NotFound } from "./problems.ts"

const agent = { projectId: ProjectId, agentId: AgentId }
const backtest = { ...agent, backtestId: BacktestId }

export class BacktestsApi extends HttpApiGroup.make("backtests")
  .add(
    /** Answers as soon as it is queued; one of an agent at a time. */
    HttpApiEndpoint.post("begin", "/agents/:agentId/backtests", {
      params: agent,
      payload: BacktestInput,
      success: Backtest.pipe(HttpApiSchema.status(202)),
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    HttpApiEndpoint.get("list", "/agents/:agentId/backtests", {
      params: agent,
      query: PageQuery,
      success: Page(Backtest),
      error: [NotFound, InvalidInput]
    }),
    /** With its report, which is right also while it is under way. */
    HttpApiEndpoint.get("get", "/agents/:agentId/backtests/:backtestId", {
      params: backtest,
      success: ReportedBacktest,
      error: NotFound
    }),
    /** Event by event, the oldest first: what was suggested then and what is suggested now. */
    HttpApiEndpoint.get("results", "/agents/:agentId/backtests/:backtestId/results", {
      params: backtest,
      query: PageQuery,
      success: Page(BacktestResult),
      error: [NotFound, InvalidInput]
    }),
    /** Ends it, with the runs that wait or are at work; what was done stays. */
    HttpApiEndpoint.post("cancel", "/agents/:agentId/backtests/:backtestId/cancel", {
      params: backtest,
      success: Backtest,
      error: [NotFound, Forbidden, Conflict]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
