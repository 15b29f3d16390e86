/**
 * Faults of what was only tried out, for `check-backtests.ts` to find.
 */
import type { Plant } from "../simulation/plant.ts"

const tried = `select id from kb.agent_runs where project_id = $1 and backtest_id is not null order by id limit 1`

export const backtestPlants: ReadonlyArray<Plant> = [
  {
    checker: "backtestsApart",
    fault: "a backtest's run stands behind a change",
    sql: [
      `update kb.graph_events set run_id = tried.id from (${tried}) tried where project_id = $1 and actor_type = 'agent'`
    ]
  },
  {
    checker: "backtestsApart",
    fault: "a backtest put something before people",
    sql: [
      `update kb.tasks set run_id = tried.id from (${tried}) tried where project_id = $1 and type like '%_suggestion'`
    ]
  },
  {
    checker: "backtestsApart",
    fault: "a backtest handles an event in its agent's name",
    sql: [`update kb.agent_processing_log set run_id = tried.id from (${tried}) tried where project_id = $1`]
  },
  {
    checker: "backtestsApart",
    fault: "what a backtest was refused is among the denials",
    sql: [`update kb.denials set run_id = tried.id from (${tried}) tried where project_id = $1`]
  },
  {
    checker: "backtestsWhole",
    fault: "a backtest completed and an event of it was not run",
    sql: [`update kb.backtest_events set run_id = null where project_id = $1`]
  },
  {
    checker: "backtestsWhole",
    fault: "a backtest never ended",
    sql: [
      `update kb.backtests set status = 'running' where id =
        (select id from kb.backtests where project_id = $1 and status = 'completed' order by id limit 1)`
    ]
  }
]
