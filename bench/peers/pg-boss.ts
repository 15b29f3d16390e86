/**
 * pg-boss: one instance works, another adds the jobs, as a server and its workers do.
 *
 * By itself `work` does one job every two seconds, so what is measured is what
 * its documentation offers whoever wants more: it is woken by PostgreSQL's
 * notifications, takes jobs in batches and goes on at once while they are full.
 */
import { PgBoss } from "pg-boss"
import { atRate, databaseUrl, nowMs, serveActs, withHands } from "./acts.ts"

const boss = new PgBoss({ connectionString: databaseUrl, useListenNotify: true })
boss.on("error", (error) => console.error(error))
await boss.start()

const queue = "react"
await boss.createQueue(queue, { notify: true })

let latencies: Array<number> = []
let lastMs = 0
let done = 0

serveActs(
  {
    start: async () => {
      latencies = []
      done = 0
      await boss.work<{ readonly sentMs: number }>(
        queue,
        { batchSize: 100, burstWhenBatchFull: true, localConcurrency: 4 },
        (jobs) => {
          const now = nowMs()
          for (const { data } of jobs) latencies.push(now - data.sentMs)
          done += jobs.length
          lastMs = now
          return Promise.resolve()
        }
      )
      return nowMs()
    },
    done: () => Promise.resolve({ done, lastMs }),
    rest: async () => {
      await boss.offWork(queue, { wait: true })
      return { latencies }
    },
    add: async ({ events, fanOut, hands, perSecond }: AddInput) => {
      const add = () =>
        fanOut === 1
          ? boss.send(queue, { sentMs: nowMs() })
          : boss.insert(
              queue,
              Array.from({ length: fanOut }, () => ({ data: { sentMs: nowMs() } }))
            )
      const begunMs = nowMs()
      if (perSecond === undefined) await withHands(hands ?? 1, events, add)
      else await atRate(perSecond, events, add)
      return begunMs
    }
  },
  () => boss.stop()
)

interface AddInput {
  readonly events: number
  readonly fanOut: number
  readonly hands?: number
  readonly perSecond?: number
}
