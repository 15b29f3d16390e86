/**
 * DBOS: durable workflows whose steps are kept in PostgreSQL before the next begins.
 *
 * A step of the agent is one durable step, in which the model is asked and the
 * tool is called, or two of them (`pairs`), so that neither is done again after
 * a crash.
 */
import { DBOS } from "@dbos-inc/dbos-sdk"
import { databaseUrl, medianPerStep, serveActs, toolCall, withHands } from "./acts.ts"

const ask = () => Promise.resolve({ role: "assistant", text: "", calls: [toolCall] })
const call = () => Promise.resolve(toolCall.result)

const inOneStep = DBOS.registerWorkflow(
  async (steps: number) => {
    for (let step = 0; step < steps; step++)
      await DBOS.runStep(async () => [await ask(), await call()], { name: "step" })
    return "Done."
  },
  { name: "inOneStep" }
)

const inTwoSteps = DBOS.registerWorkflow(
  async (steps: number) => {
    for (let step = 0; step < steps; step++) {
      await DBOS.runStep(ask, { name: "ask" })
      await DBOS.runStep(call, { name: "call" })
    }
    return "Done."
  },
  { name: "inTwoSteps" }
)

DBOS.setConfig({ name: "bench", systemDatabaseUrl: databaseUrl, logLevel: "error" })
await DBOS.launch()

interface StepsInput {
  readonly steps: number
  readonly times: number
}

serveActs(
  {
    steps: (input: StepsInput) => medianPerStep(input, () => inOneStep(input.steps)),
    pairs: (input: StepsInput) => medianPerStep(input, () => inTwoSteps(input.steps)),
    /** Steps in a second of many runs, so many at a time. */
    runs: async ({ atOnce, runs, steps }: { atOnce: number; runs: number; steps: number }) => {
      const ms = await withHands(atOnce, runs, async () => {
        const handle = await DBOS.startWorkflow(inOneStep)(steps)
        await handle.getResult()
      })
      return (runs * steps * 1_000) / ms
    }
  },
  () => DBOS.shutdown()
)
