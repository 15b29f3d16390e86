/**
 * graphile-worker: one instance works, another adds the jobs, as a server and its workers do.
 *
 * `plain` is what `run` does by itself; `tuned` are the settings of its own
 * page on performance. A job does nothing but tell when it began.
 */
import { makeWorkerUtils, run, type RunnerOptions } from "graphile-worker"
import { atRate, databaseUrl, nowMs, serveActs, withHands } from "./acts.ts"

const tuned: Partial<RunnerOptions> = {
  preset: {
    worker: {
      concurrentJobs: 24,
      maxPoolSize: 25,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0
    }
  }
}

const utils = await makeWorkerUtils({ connectionString: databaseUrl })
await utils.migrate()

let latencies: Array<number> = []
let lastMs = 0
let done = 0
let runner: Awaited<ReturnType<typeof run>> | undefined

serveActs(
  {
    /** Begins to work. */
    start: async ({ mode }: { readonly mode: "plain" | "tuned" }) => {
      latencies = []
      done = 0
      runner = await run({
        connectionString: databaseUrl,
        noHandleSignals: true,
        ...(mode === "tuned" ? tuned : {}),
        taskList: {
          react: (payload) => {
            latencies.push(nowMs() - Number((payload as { sentMs: number }).sentMs))
          }
        }
      })
      runner.events.on("job:complete", () => {
        lastMs = nowMs()
        done++
      })
      return nowMs()
    },
    done: () => Promise.resolve({ done, lastMs }),
    /** Ends its work and answers how long after its sending each job began. */
    rest: async () => {
      await runner?.stop()
      runner = undefined
      return { latencies }
    },
    /** Adds jobs as fast as so many hands can, or at a rate; each event is one call with a job for each who reacts. */
    add: async ({ events, fanOut, hands, perSecond }: AddInput) => {
      const add = () =>
        fanOut === 1
          ? utils.addJob("react", { sentMs: nowMs() })
          : utils.addJobs(
              Array.from({ length: fanOut }, () => ({ identifier: "react", payload: { sentMs: nowMs() } }))
            )
      const begunMs = nowMs()
      if (perSecond === undefined) await withHands(hands ?? 1, events, add)
      else await atRate(perSecond, events, add)
      return begunMs
    }
  },
  async () => {
    await runner?.stop()
    await utils.release()
  }
)

interface AddInput {
  readonly events: number
  readonly fanOut: number
  readonly hands?: number
  readonly perSecond?: number
}
