/**
 * The words in which stories set tools and workflows in a context.
 */
import { Effect } from "effect"
import { addEvent, quietLog } from "./context-words.ts"
import { type Answer, type Json, scripted, type Story } from "./platform.ts"

/** Adds an event that sets something, and answers whatever the door says. */
export const setting = (
  story: Story,
  name: string,
  type: string,
  fields: Record<string, unknown>
): Effect.Effect<Answer> => story.ask("POST", `/contexts/${name}/events`, { type, ...fields })

/** Defines a tool of a context; `null` in place of a tool takes the name back. */
export const defineTool = (story: Story, context: string, fields: Record<string, unknown>) =>
  setting(story, context, "DefineToolEvent", fields)

/** Says something and answers the log when nobody works any more. */
export const talk = (story: Story, name: string, content: string): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.andThen(addEvent(story, name, content), quietLog(story, name))

/** The newest run of the project. */
export const newestRun = (story: Story): Effect.Effect<Json> =>
  Effect.map(story.get("/runs?limit=1"), (page) => page.items[0])

/** Sets the workflow of a context. */
export const defineWorkflow = (story: Story, context: string, fields: Record<string, unknown>) =>
  setting(story, context, "DefineWorkflowEvent", fields)

/** A model that says back, in capitals, what it was asked last. */
export const loud = scripted([{ say: "{{ message | upcase }}" }])

/** The same, but what it is asked slowly it does not answer in any story's time. */
export const loudUnlessSlow = scripted([
  { when: "message contains 'slow'", say: "Too late.", latencyMs: 600_000 },
  { say: "{{ message | upcase }}" }
])

/** A draft of what was said, and a check of the draft. */
export const draftAndCheck = {
  flowType: "sequential",
  steps: [
    { name: "draft", prompt: "draft {{ input }}" },
    { name: "check", prompt: "check {{ steps.draft.output }}" }
  ]
}
