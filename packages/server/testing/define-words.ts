/**
 * The words in which stories set tools and workflows in a context.
 */
import { Effect } from "effect"
import { addEvent, quietLog } from "./context-words.ts"
import type { Answer, Json, Story } from "./platform.ts"

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
