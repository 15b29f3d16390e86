/**
 * The ways in which `npm run mutants` breaks the server.
 *
 * Each takes away one promise that nothing else keeps. What two places keep is
 * not here, as long as one of them is enough: that a run writes nothing under a
 * kill switch (its claim, its token and what asks for due projects), that a call
 * is made once (its row has a unique key), that agents who undo each other's
 * work come to an end (oscillations and the bounds of chains). Nor is what keeps
 * a server busy until there is no memory left, as a fork that reads on behind the
 * event at which it was made.
 */
import type { Edit } from "./mutated.ts"

export interface Mutant {
  /** What the broken server does. */
  readonly fault: string
  readonly edits: ReadonlyArray<Edit>
}

const server = (file: string, from: string, to: string): Edit => ({
  file: `packages/server/src/${file}`,
  from,
  to
})

const domain = (file: string, from: string, to: string): Edit => ({
  file: `packages/domain/src/${file}`,
  from,
  to
})

export const mutants: ReadonlyArray<Mutant> = [
  {
    fault: "an attempt writes although another has the run",
    edits: [server("runs/fencing.ts", " and attempt_token = ${run.attemptToken}", "")]
  },
  {
    fault: "a run whose model hangs counts as making progress",
    edits: [server("runs/worker.ts", "progress.look(nowMs, 2 * runLimits.heartbeatIntervalMs)", "0")]
  },
  {
    fault: "a client's answer does not let the run go on",
    edits: [
      server(
        "runs/client-results.ts",
        "if (length === 0) yield* runs.wake",
        "if (length < 0) yield* runs.wake"
      )
    ]
  },
  {
    fault: "a client's answer is acknowledged and not kept in the log",
    edits: [server("runs/client-results.ts", "yield* contexts.append(name, [event], { taint })", "")]
  },
  {
    fault: "chains have no bound of runs",
    edits: [server("runs/chain-caps.ts", "if (cap !== undefined) reached.set(root, cap)", "")]
  },
  {
    fault: "chains have no bound of depth",
    edits: [
      domain(
        "refusal.ts",
        "if (rule === undefined) return undefined",
        'if (rule === undefined || rule === "chainDepth") return undefined'
      )
    ]
  },
  {
    fault: "an answered question wakes nobody",
    edits: [
      server(
        "runs/questions.ts",
        "if (open.length === 1) yield* runs.wake",
        "if (open.length === 99) yield* runs.wake"
      )
    ]
  },
  {
    fault: "a foreign call that may not be repeated is made again",
    edits: [
      server(
        "tools/external-mcp/calls.ts",
        '(!("tool" in cleared) || !mayCallAgain(cleared.server.config, cleared.tool))',
        '!("tool" in cleared)'
      )
    ]
  },
  {
    fault: "an outdated suggestion is approved",
    edits: [
      server(
        "review/decisions.ts",
        'if (state === "gone" || conflicts.length > 0 || met.added.length > 0) {',
        'if (state === "gone") {'
      )
    ]
  },
  {
    fault: "what a person undid ends no promotion",
    edits: [
      server(
        "review/autonomy.ts",
        'where promotion.ended_at is null and promotion.id = any(${inTurn(sql, "promotion", standing, "alone")})',
        'where false and promotion.id = any(${inTurn(sql, "promotion", standing, "alone")})'
      )
    ]
  },
  {
    fault: "a promotion that has ended is trusted",
    edits: [
      server(
        "review/autonomy.ts",
        "where operation = ${operation} and object_type = ${objectType} and ended_at is null\n            ), held as (",
        "where operation = ${operation} and object_type = ${objectType}\n            ), held as ("
      ),
      server("review/autonomy.ts", '"shared")}) and ended_at is null', '"shared")})')
    ]
  },
  {
    fault: "what a step used is not counted in its chain",
    edits: [
      server(
        "runs/appends.ts",
        "input_tokens = budget.input_tokens + excluded.input_tokens",
        "input_tokens = budget.input_tokens"
      )
    ]
  },
  {
    fault: "a key is not kept",
    edits: [
      server(
        "tenancy/idempotency-keys.ts",
        "yield* orDie(rows.keep(sealed(sealingKeyOf(request.holder), rows.place, text)))",
        ""
      )
    ]
  },
  {
    fault: "a foreign call goes on when the time of its run is up",
    edits: [server("runs/engine.ts", "Effect.as(timeUp(bench), abortReasons.time)", "Effect.never")]
  },
  {
    fault: "a run that is past its grace is left to its worker",
    edits: [
      server("runs/sub-runs.ts", "const timedOut = yield* endings.timeOut(projectId)", "const timedOut = 0"),
      server("runs/engine.ts", "Effect.as(timeUp(bench), abortReasons.time)", "Effect.never")
    ]
  },
  {
    fault: "a run that another spawned does not report when it failed",
    edits: [
      server(
        "runs/entry-completion.ts",
        "yield* report(runs.flatMap(",
        "if (ending.status === 'completed') yield* report(runs.flatMap("
      )
    ]
  },
  {
    fault: "an answer whose commit nobody heard of is kept twice",
    edits: [
      server(
        "runs/appends.ts",
        "if (wasAway && (yield* isKept(run, planned.events))) return",
        "if (wasAway && false && (yield* isKept(run, planned.events))) return"
      )
    ]
  },
  {
    fault: "a run ends although somebody spoke",
    edits: [
      server(
        "runs/appends.ts",
        "if (!(yield* contexts.write(run.contextName, planned))) return false",
        "if (!(yield* contexts.write(run.contextName, planned))) yield* contexts.append(run.contextName, events, { alongside: [...alongside, ...calls] })"
      )
    ]
  },
  {
    fault: "an agent that only suggests writes",
    edits: [
      server(
        "tools/graph-effects.ts",
        "if (promotionId === undefined && isSuggested) {",
        "if (promotionId === undefined && false) {"
      )
    ]
  },
  {
    fault: "what somebody changed since is undone with the rest",
    edits: [
      domain(
        "inverse.ts",
        '  if (other === null)\n    return {\n      action: "delete",',
        '  if (other === null || true)\n    return {\n      action: "delete",'
      )
    ]
  },
  {
    fault: "a spawned run may more than the agents above it",
    edits: [
      server(
        "agents/authority.ts",
        "const powers = above.reduce<Powers>(narrow, own.definition ?? own)",
        "const powers = own.definition ?? own"
      )
    ]
  },
  {
    fault: "what was shown untrusted narrows nothing",
    edits: [server("agents/authority.ts", "narrowTainted(powers, taintedBy)", "narrowTainted(powers, [])")]
  },
  {
    fault: "a backtest writes for real",
    edits: [
      server(
        "tools/graph-effects.ts",
        "return yield* wouldBe(principal.backtest, wanted, intent, principal, toolCallId)",
        ""
      )
    ]
  },
  {
    fault: "an agent has more runs at once than its rule allows",
    edits: [
      server(
        "reactions/agent-capacity.ts",
        "limits.push({ runs: config.maxConcurrency - liveReactions",
        "limits.push({ runs: 1000 + config.maxConcurrency - liveReactions"
      )
    ]
  },
  {
    fault: "an agent begins more runs in a while than its rule allows",
    edits: [
      server(
        "reactions/agent-capacity.ts",
        "runs: config.rateLimit.maxRuns - begunRuns,",
        "runs: 1000 + config.rateLimit.maxRuns - begunRuns,"
      )
    ]
  },
  {
    fault: "what a chain refuses is skipped without a reason",
    edits: [
      server("reactions/dispatcher.ts", "if (cap) note(refusals, match.event, match.candidate, cap)", "")
    ]
  },
  {
    fault: "an agent that skips is not told of a deletion while it is at work",
    edits: [
      server(
        "reactions/dispatcher.ts",
        "isDroppedAtWork(candidate.config, event.type)",
        'isDroppedAtWork(candidate.config, "updated")'
      )
    ]
  },
  {
    fault: "a batch loses all events but its first",
    edits: [
      server(
        "reactions/releases.ts",
        "reactionRun(runId, agent, [first, ...others],",
        "reactionRun(runId, agent, [first],"
      )
    ]
  },
  {
    fault: "a decision is not counted",
    edits: [server("review/decisions.ts", 'yield* reviewed([id], "rejected")', "")]
  }
]
