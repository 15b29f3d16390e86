/** Provides the run records, the ports that tools use, and the engine that executes runs. */
import { Layer } from "effect"
import { Admission } from "./admission.ts"
import { RunAppends } from "./appends.ts"
import { AgentDays } from "./budgets.ts"
import { RunCancellation } from "./cancellation.ts"
import { ClientResults } from "./client-results.ts"
import { Actor } from "./engine.ts"
import { WorkerLiveness, PeerVisibility } from "./liveness.ts"
import { ModelCalls } from "./model-calls.ts"
import { ProcessingLog, WaitingEntries } from "./processing-log.ts"
import { ProviderWaits } from "./provider-waits.ts"
import { Answers, questions } from "./questions.ts"
import { Runs } from "./run-store.ts"
import { ModelCallReading, OpenRequestReading, RunObjectReading, StepReading } from "./step-queries.ts"
import { childRuns, Descendants } from "./sub-runs.ts"
import { Verifier } from "./verifier.ts"
import { Worker } from "./worker.ts"
/** The records of runs and of their processing entries. They need the graph and the records of tool calls. */
export const runRecords = Layer.mergeAll(
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
)

/** What tools and endpoints use of runs: cancellation, sub-runs, questions and answers. */
export const runPorts = Layer.provideMerge(
  Layer.mergeAll(childRuns, questions, Answers.layer, ClientResults.layer, Descendants.layer),
  Layer.provideMerge(RunCancellation.layer, WorkerLiveness.layer)
)

/** The worker with everything it needs to claim and execute runs. */
export const runEngine = Layer.provideMerge(
  Worker.layer,
  Layer.provideMerge(Layer.merge(Actor.layer, PeerVisibility.layer), ProviderWaits.layer)
)
