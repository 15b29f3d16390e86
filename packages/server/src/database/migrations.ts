/** Lists every migration of the schema, in order. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { statements as house } from "./migrations/0001-house.ts"
import { statements as graph } from "./migrations/0002-graph.ts"
import { statements as imports } from "./migrations/0003-imports.ts"
import { statements as agents } from "./migrations/0004-agents.ts"
import { statements as reactions } from "./migrations/0005-reactions.ts"
import { statements as chains } from "./migrations/0006-chains.ts"
import { statements as safeguards } from "./migrations/0007-safeguards.ts"
import { statements as schedules } from "./migrations/0008-schedules.ts"
import { statements as beginnings } from "./migrations/0009-beginnings.ts"
import { statements as runEngine } from "./migrations/0010-run-engine.ts"
import { statements as contexts } from "./migrations/0011-contexts.ts"
import { statements as progress } from "./migrations/0012-progress.ts"
import { statements as snapshots } from "./migrations/0013-snapshots.ts"
import { statements as memory } from "./migrations/0014-memory.ts"
import { statements as contextList } from "./migrations/0015-context-list.ts"
import { statements as review } from "./migrations/0016-review.ts"
import { statements as wall } from "./migrations/0017-wall.ts"
import { statements as undo } from "./migrations/0018-undo.ts"
import { statements as autonomy } from "./migrations/0019-autonomy.ts"
import { statements as taint } from "./migrations/0020-taint.ts"
import { statements as backtests } from "./migrations/0021-backtests.ts"
import { statements as todos } from "./migrations/0022-todos.ts"
import { statements as conversations } from "./migrations/0023-conversations.ts"
import { statements as mcpExtensions } from "./migrations/0024-mcp-extensions.ts"
import { statements as people } from "./migrations/0026-people.ts"
import { statements as talks } from "./migrations/0027-talks.ts"
import { statements as chat } from "./migrations/0029-chat.ts"
import { statements as assistant } from "./migrations/0030-assistant.ts"
import { statements as mcpSources } from "./migrations/0031-mcp-sources.ts"
import { statements as mcpListeners } from "./migrations/0035-mcp-listeners.ts"
import { statements as tenancy } from "./migrations/0040-tenancy.ts"
import { statements as requestKeys } from "./migrations/0041-request-keys.ts"
import { statements as jwt } from "./migrations/0043-jwt.ts"
import { statements as retention } from "./migrations/0044-retention.ts"
import { statements as sessions } from "./migrations/0045-sessions.ts"
import { statements as restores } from "./migrations/0047-restores.ts"
import { statements as runWords } from "./migrations/0048-run-words.ts"
import { statements as chosenObjects } from "./migrations/0049-chosen-objects.ts"
import { statements as moreGauges } from "./migrations/0050-more-gauges.ts"
import { statements as cluster } from "./migrations/0051-cluster.ts"
import { statements as pausedRuns } from "./migrations/0052-paused-runs.ts"
import { statements as unwantedRuns } from "./migrations/0053-unwanted-runs.ts"
import { statements as objectNames } from "./migrations/0054-object-names.ts"
import { statements as countingRows } from "./migrations/0055-counting-rows.ts"
import { statements as keysByProject } from "./migrations/0056-keys-by-project.ts"
import { statements as runsAtWork } from "./migrations/0057-runs-at-work.ts"
import { statements as connectionsAndStoppedQueues } from "./migrations/0058-connections-and-stopped-queues.ts"
import { statements as propertyNames } from "./migrations/0059-property-names.ts"
import { statements as handedBack } from "./migrations/0060-handed-back.ts"
import { statements as whoCancelled } from "./migrations/0061-who-cancelled.ts"
import { statements as whoIsAtAnAddress } from "./migrations/0062-who-is-at-an-address.ts"
import { statements as heldTokens } from "./migrations/0063-held-tokens.ts"
import { statements as standingGauges } from "./migrations/0064-standing-gauges.ts"
import { statements as heldBySwitches } from "./migrations/0065-what-a-kill-switch-holds.ts"
import { statements as unheard } from "./migrations/0066-what-nobody-hears-of.ts"
import { statements as wholeRestores } from "./migrations/0067-whole-restores.ts"
import { statements as endingMemberships } from "./migrations/0068-what-ends-with-a-membership.ts"
import { statements as pagesOfDumps } from "./migrations/0069-pages-of-dumps.ts"
import { statements as keptPlans } from "./migrations/0070-writes-that-keep-their-plan.ts"
import { statements as askedBy } from "./migrations/0071-who-asked-for-what-waits.ts"
import { statements as reducers } from "./migrations/0072-reducers-of-agents.ts"
import { statements as sessionsOfContexts } from "./migrations/0073-sessions-of-contexts.ts"
import { statements as pastGrace } from "./migrations/0074-runs-past-their-grace.ts"
import { statements as noProgress } from "./migrations/0075-progress.ts"
import { statements as clientTools } from "./migrations/0076-client-tools.ts"
import { statements as providerOutages } from "./migrations/0077-provider-outages.ts"
import { statements as modelAnswers } from "./migrations/0078-model-answers.ts"
import { statements as responses } from "./migrations/0079-responses.ts"
import { statements as usageDetails } from "./migrations/0080-usage-details.ts"
import { statements as oauth } from "./migrations/0081-oauth.ts"
import { statements as probesThatAsk } from "./migrations/0082-probes-that-ask.ts"
import { statements as graphBatches } from "./migrations/0083-graph-batches.ts"
import { statements as deathsOfRuns } from "./migrations/0084-deaths-of-runs.ts"

const run = (statements: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    for (const statement of statements) yield* sql.unsafe(statement)
  })

/** Every migration, in order; a released one is never edited. */
export const migrations = {
  "0001_house": run(house),
  "0002_graph": run(graph),
  "0003_imports": run(imports),
  "0004_agents": run(agents),
  "0005_reactions": run(reactions),
  "0006_chains": run(chains),
  "0007_safeguards": run(safeguards),
  "0008_schedules": run(schedules),
  "0009_beginnings": run(beginnings),
  "0010_run_engine": run(runEngine),
  "0011_contexts": run(contexts),
  "0012_progress": run(progress),
  "0013_snapshots": run(snapshots),
  "0014_memory": run(memory),
  "0015_context_list": run(contextList),
  "0016_review": run(review),
  "0017_wall": run(wall),
  "0018_undo": run(undo),
  "0019_autonomy": run(autonomy),
  "0020_taint": run(taint),
  "0021_backtests": run(backtests),
  "0022_todos": run(todos),
  "0023_conversations": run(conversations),
  "0024_mcp_extensions": run(mcpExtensions),
  "0026_people": run(people),
  "0027_talks": run(talks),
  "0029_chat": run(chat),
  "0030_assistant": run(assistant),
  "0031_mcp_sources": run(mcpSources),
  "0035_mcp_listeners": run(mcpListeners),
  "0040_tenancy": run(tenancy),
  "0041_request_keys": run(requestKeys),
  "0043_jwt": run(jwt),
  "0044_retention": run(retention),
  "0045_sessions": run(sessions),
  "0047_restores": run(restores),
  "0048_run_words": run(runWords),
  "0049_chosen_objects": run(chosenObjects),
  "0050_more_gauges": run(moreGauges),
  "0051_cluster": run(cluster),
  "0052_paused_runs": run(pausedRuns),
  "0053_unwanted_runs": run(unwantedRuns),
  "0054_object_names": run(objectNames),
  "0055_counting_rows": run(countingRows),
  "0056_keys_by_project": run(keysByProject),
  "0057_runs_at_work": run(runsAtWork),
  "0058_connections_and_stopped_queues": run(connectionsAndStoppedQueues),
  "0059_property_names": run(propertyNames),
  "0060_handed_back": run(handedBack),
  "0061_who_cancelled": run(whoCancelled),
  "0062_who_is_at_an_address": run(whoIsAtAnAddress),
  "0063_held_tokens": run(heldTokens),
  "0064_standing_gauges": run(standingGauges),
  "0065_what_a_kill_switch_holds": run(heldBySwitches),
  "0066_what_nobody_hears_of": run(unheard),
  "0067_whole_restores": run(wholeRestores),
  "0068_what_ends_with_a_membership": run(endingMemberships),
  "0069_pages_of_dumps": run(pagesOfDumps),
  "0070_writes_that_keep_their_plan": run(keptPlans),
  "0071_who_asked_for_what_waits": run(askedBy),
  "0072_reducers_of_agents": run(reducers),
  "0073_sessions_of_contexts": run(sessionsOfContexts),
  "0074_runs_past_their_grace": run(pastGrace),
  "0075_progress": run(noProgress),
  "0076_client_tools": run(clientTools),
  "0077_provider_outages": run(providerOutages),
  "0078_model_answers": run(modelAnswers),
  "0079_responses": run(responses),
  "0080_usage_details": run(usageDetails),
  "0081_oauth": run(oauth),
  "0082_probes_that_ask": run(probesThatAsk),
  "0083_graph_batches": run(graphBatches),
  "0084_deaths_of_runs": run(deathsOfRuns)
}

/** The newest migration of this program. */
export const schemaVersion = Math.max(...Object.keys(migrations).map((name) => Number.parseInt(name, 10)))
