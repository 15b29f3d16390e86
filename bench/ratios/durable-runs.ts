/**
 * Durable runs of ten steps, twenty at a time, beside DBOS and Restate: how many steps are done in a second.
 *
 * Restate keeps its journal in a store of its own and DBOS works in the process
 * of its client; both as their documentation begins. A step of theirs is one
 * durable step, one of ours a request and a call that are kept each.
 */
import { newProject, patienceMs, withHands } from "../doors.ts"
import { stepper } from "../stepper.ts"
import type { Bound, Prepared, Units } from "./comparison.ts"
import type { Stage } from "./stage.ts"

const rate = "steps of durable runs, 20 at a time"

export const durableRunUnits: Units = { [rate]: "/s" }

const atOnce = 20
const steps = 10

const bounds: ReadonlyArray<Bound> = [
  { subject: "Restate", least: 2 },
  { subject: "DBOS", least: 3 }
].map(({ least, subject }) => ({
  of: { subject: "Tropism", figure: rate },
  against: { subject, figure: rate },
  least
}))

export const prepareDurableRuns = async (stage: Stage): Promise<Prepared> => {
  const { scale, send } = stage
  const { path } = await newProject(send)
  const { id } = await send("POST", `${path}/agents`, stepper("durable", steps))
  const dbos = await stage.startPeer("dbos")
  const restate = await stage.startPeer("restate")
  const address: string = await restate.act("address")
  const stepsPerSecond = async (work: () => Promise<void>) => {
    const { elapsedMs } = await withHands(atOnce, { ms: patienceMs, times: scale.runs }, work)
    return { [rate]: (scale.runs * steps * 1_000) / elapsedMs }
  }
  return {
    subjects: [
      {
        name: "Tropism",
        measure: () =>
          stepsPerSecond(async () => {
            const { status } = await send("POST", `${path}/agents/${id}/trigger`, {})
            if (status !== "completed") throw new Error(`The bench's run is ${status}`)
          })
      },
      {
        name: "DBOS",
        measure: async () => ({ [rate]: await dbos.act("runs", { runs: scale.runs, steps, atOnce }) })
      },
      {
        name: "Restate",
        measure: () =>
          stepsPerSecond(async () => {
            const response = await fetch(address, {
              method: "POST",
              headers: { "content-type": "application/json" },
              body: JSON.stringify(steps)
            })
            const text = await response.text()
            if (text !== '"Done."') throw new Error(`Restate answered ${response.status}: ${text}`)
          })
      }
    ],
    bounds,
    close: async () => void (await Promise.all([dbos.stop(), restate.stop()]))
  }
}
