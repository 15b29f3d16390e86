/**
 * A run of an agent that is disabled or deleted is no probe of its provider: it ends without asking, and the breaker stayed open.
 */
import { waking } from "./0077-provider-outages.ts"

export const statements: ReadonlyArray<string> = waking(
  ` and (outage.is_open is not true or exists (
    select from kb.agents agent where agent.id = run.agent_id and agent.enabled and agent.deleted_at is null))`
).map((statement) => statement.replace(/^create function/, "create or replace function"))
