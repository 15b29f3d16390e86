/**
 * Tropism's engine as a program: a run in memory with the scripted model, with nothing kept.
 */
import { medianPerStep, serveActs } from "../peers/acts.ts"
import { following, workInMemory } from "../pure-loop.ts"
import { stepsOf } from "../stepper.ts"

serveActs({
  loop: async (input: { readonly steps: number; readonly times: number }) => {
    const ask = await following(stepsOf(input.steps))
    return medianPerStep(input, () => workInMemory(ask))
  }
})
