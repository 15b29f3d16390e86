/**
 * A step of an engine in memory, with nothing kept, beside the AI SDK's ToolLoopAgent and OpenAI's Agents SDK.
 *
 * Ours is the decider, the reducer and the scripted model of the server, each
 * answer a stream as any model's; theirs ask a mock that answers at once.
 */
import type { Bound, Prepared, Units } from "./comparison.ts"
import type { Stage } from "./stage.ts"

const short = "a step of 50 in memory"
const long = "a step of 200 in memory"

export const loopUnits: Units = { [short]: "ms", [long]: "ms" }

/** So many runs make one round longer than a collection of garbage. */
const runsPerTime = 10

const bounds: ReadonlyArray<Bound> = [short, long].map((figure) => ({
  of: { subject: "Tropism", figure },
  against: { subject: "AI SDK", figure },
  most: 1
}))

export const prepareLoops = async (stage: Stage): Promise<Prepared> => {
  const { manySteps, steps, times } = stage.scale
  const programs = [
    { name: "Tropism", program: await stage.startOurs("engine-loop") },
    { name: "AI SDK", program: await stage.startPeer("ai-sdk") },
    { name: "OpenAI Agents", program: await stage.startPeer("openai-agents") }
  ]
  return {
    subjects: programs.map(({ name, program }) => ({
      name,
      measure: async () => ({
        [short]: await program.act("loop", { steps, times: times * runsPerTime }),
        [long]: await program.act("loop", { steps: manySteps, times: times * runsPerTime })
      })
    })),
    bounds,
    close: async () => void (await Promise.all(programs.map(({ program }) => program.stop())))
  }
}
