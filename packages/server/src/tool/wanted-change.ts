/**
 * The change of the graph that a call asks for, by its tool and its arguments.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 */
import type { Change } from "@tropism/domain/change"
import { Effect, type Schema } from "effect"
import type { ChangeRefused } from "../graph/refused.ts"
import * as Args from "./graph-tools.ts"
import { read } from "./read-arguments.ts"

/** Why and how surely the model wants a change. */
export interface Intent {
  readonly reasoning?: string | null | undefined
  readonly confidence?: number | null | undefined
  readonly suggest?: boolean | null | undefined
}

export interface Wanted {
  readonly change: Change
  readonly intent: Intent
}

/** The arguments of one tool and the change that they mean. */
const asking =
  <S extends Schema.ConstraintDecoder<Intent>>(schema: S, changeOf: (args: S["Type"]) => Change) =>
  (args: Schema.Json): Effect.Effect<Wanted, ChangeRefused> =>
    Effect.map(read(schema, args), (intent) => ({ change: changeOf(intent), intent }))

const readers = {
  create_object: asking(Args.CreateObjectArguments, ({ key, properties, type }) => ({
    type: "create",
    objectType: type,
    key: key ?? null,
    data: properties
  })),
  update_object: asking(Args.UpdateObjectArguments, ({ objectId, properties }) => ({
    type: "update",
    objectId,
    data: properties
  })),
  delete_object: asking(Args.DeleteObjectArguments, ({ objectId }) => ({ type: "delete", objectId })),
  create_relationship: asking(Args.CreateRelationshipArguments, ({ fromId, properties, toId, type }) => ({
    type: "createRelationship",
    relationship: { fromId, toId, type },
    data: properties ?? {}
  })),
  update_relationship: asking(Args.UpdateRelationshipArguments, ({ properties, relationshipId }) => ({
    type: "updateRelationship",
    relationshipId,
    data: properties
  })),
  delete_relationship: asking(Args.DeleteRelationshipArguments, ({ relationshipId }) => ({
    type: "deleteRelationship",
    relationshipId
  }))
}

/** A tool that changes the graph. */
export type ChangingTool = keyof typeof readers

const isChanging = (tool: string): tool is ChangingTool => Object.hasOwn(readers, tool)

/** The change that a call asks for. */
export const wantedChange = (tool: ChangingTool, args: Schema.Json): Effect.Effect<Wanted, ChangeRefused> =>
  readers[tool](args)

/** The change that a call would have made; null where it would have made none, or cannot be understood. */
export const changeAskedFor = (tool: string, args: Schema.Json): Effect.Effect<Change | null> =>
  isChanging(tool)
    ? Effect.match(wantedChange(tool, args), { onFailure: () => null, onSuccess: ({ change }) => change })
    : Effect.succeed(null)
