/**
 * Faults in what agents have earned: at least one for each checker of `check-trust.ts`.
 */
import type { Plant } from "./plant.ts"

/** What undos took back of what an agent's version had done to objects. */
const takenBack = `select distinct event.project_id, run.agent_id, run.agent_version,
    case event.type when 'deleted' then 'create' else 'update' end as operation, event.object_type
  from kb.graph_events event join kb.graph_events made on made.entity_id = event.entity_id and made.actor_type = 'agent'
    and made.type = case event.type when 'deleted' then 'created' else 'updated' end
  join kb.agent_runs run on run.id = made.run_id
  where event.project_id = $1 and event.entity_type = 'graphObject' and event.type <> 'created' and run.agent_id = any(event.undoes)`

const oneUsed = `select promotion_id from kb.tool_calls where project_id = $1 and promotion_id is not null order by id limit 1`

export const trustPlants: ReadonlyArray<Plant> = [
  {
    checker: "trustUsed",
    fault: "an agent that was not sure did something by no promotion",
    sql: [`update kb.tool_calls set promotion_id = null where project_id = $1 and promotion_id is not null`]
  },
  {
    checker: "trustUsed",
    fault: "a call names a promotion for something else",
    sql: [
      `insert into kb.review_records (project_id, agent_id, agent_version, operation, object_type)
        select project_id, agent_id, agent_version, operation, 'Other' from kb.promotions where project_id = $1 and id = (${oneUsed})`,
      `update kb.promotions set object_type = 'Other' where project_id = $1 and id = (${oneUsed})`
    ]
  },
  {
    checker: "trustEarned",
    fault: "a promotion had no reviews",
    sql: [`update kb.promotions set reviews = 0 where project_id = $1`]
  },
  {
    checker: "trustEarned",
    fault: "a promotion stands whose task was rejected",
    sql: [
      `update kb.tasks set status = 'rejected' where project_id = $1 and id in (select task_id from kb.promotions where ended_at is null)`
    ]
  },
  {
    checker: "reviewsCounted",
    fault: "a decision is counted twice",
    sql: [`update kb.review_records set accepted = accepted + 1 where project_id = $1`]
  },
  {
    checker: "trustLost",
    fault: "an agent is trusted for what a person took back",
    sql: [
      `insert into kb.review_records (project_id, agent_id, agent_version, operation, object_type) ${takenBack} on conflict do nothing`,
      `insert into kb.promotions (id, project_id, agent_id, agent_version, operation, object_type, reviews, acceptance_rate, task_id, promoted_at)
        select gen_random_uuid(), taken.*, 1, 1, gen_random_uuid(), timestamptz 'epoch' from (${takenBack}) taken on conflict do nothing`
    ]
  },
  {
    checker: "trustWithdrawn",
    fault: "something was done by a promotion that was taken back",
    sql: [],
    testimony: ({ calls }) => ({
      distrusted: calls.flatMap(({ promotionId }) =>
        promotionId === null ? [] : [{ promotionId, calls: [] }]
      )
    })
  }
]
