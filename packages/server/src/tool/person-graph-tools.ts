/**
 * The tools of the `graph` server for a person: the changes are the caller's own.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Arguments are read as those of agents are. A person need not say how sure they
 * are, and is never asked to wait for another; they may say which version they
 * know. Why they do it is kept with the call, and so with the change.
 */
import { Effect, Schema, Struct } from "effect"
import { Gateway } from "../graph/gateway.ts"
import { direct } from "@tropism/domain/actor"
import { applied } from "./graph-answers.ts"
import { GraphEffects } from "./graph-effects.ts"
import * as Args from "./graph-tools.ts"
import {
  adds,
  type PersonCall,
  type PersonTool,
  reads,
  sets,
  takesAway,
  type ToolHints
} from "./person-tool.ts"
import { inputSchemaOf, read } from "./read-arguments.ts"
import { type ChangingTool, wantedChange } from "./wanted-change.ts"

/** Accepts null as absent: many models send null for what they leave out. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

/** Sees the graph as it is. */
const present = { backtest: null }

const expectedVersion = opt(
  Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
    description: "The version that you know: where it is another by now, nothing is changed"
  })
)

/** What only an agent says of a change. */
const agentsOwn = ["confidence", "suggest"] as const

const said = <
  F extends Schema.Struct.Fields & { readonly confidence: Schema.Top; readonly suggest: Schema.Top }
>({
  fields
}: Schema.Struct<F>) => Struct.omit(fields, agentsOwn)

const changes = {
  create_object: {
    title: "Create an object",
    hints: adds,
    arguments: Schema.Struct(said(Args.CreateObjectArguments))
  },
  update_object: {
    title: "Change an object",
    hints: sets,
    arguments: Schema.Struct({ ...said(Args.UpdateObjectArguments), expectedVersion })
  },
  delete_object: {
    title: "Delete an object",
    hints: takesAway,
    arguments: Schema.Struct({ ...said(Args.DeleteObjectArguments), expectedVersion })
  },
  create_relationship: {
    title: "Relate two objects",
    hints: adds,
    arguments: Schema.Struct(said(Args.CreateRelationshipArguments))
  },
  update_relationship: {
    title: "Change a relationship",
    hints: sets,
    arguments: Schema.Struct({ ...said(Args.UpdateRelationshipArguments), expectedVersion })
  },
  delete_relationship: {
    title: "Delete a relationship",
    hints: takesAway,
    arguments: Schema.Struct({ ...said(Args.DeleteRelationshipArguments), expectedVersion })
  }
} as const satisfies Record<
  ChangingTool,
  {
    readonly title: string
    readonly hints: ToolHints
    readonly arguments: Schema.ConstraintDecoder<Said> & Schema.Top
  }
>

/** What a person says of a change beside the change itself. */
interface Said {
  readonly reasoning?: string | null | undefined
  readonly expectedVersion?: number | null | undefined
}

export const makeGraphPersonTools = Effect.gen(function* () {
  const effects = yield* GraphEffects
  const gateway = yield* Gateway

  /** Makes a change of the caller's own; the call is its cause, so that its reason is found from there. */
  const change = (tool: ChangingTool) =>
    Effect.fnUntraced(function* (args: Schema.Json, { id, principal }: PersonCall) {
      const known: Said = yield* read<Schema.ConstraintDecoder<Said>>(changes[tool].arguments, args)
      const { expectedVersion: _known, ...asked } = args as Record<string, Schema.Json>
      const wanted = yield* wantedChange(tool, asked)
      const author = {
        actor: { actorType: "user" as const, actorId: principal.userId },
        cause: { ...direct, toolCallId: id }
      }
      const expected =
        typeof known.expectedVersion === "number" ? { expectedVersion: known.expectedVersion } : {}
      return applied(yield* gateway.apply({ ...wanted.change, ...expected }, author))
    })

  const looking = (
    name: "search_objects" | "get_object" | "neighbors",
    title: string,
    perform: PersonTool["perform"]
  ) => ({
    name,
    title,
    description: Args.graphTools[name].description,
    inputSchema: inputSchemaOf(Args.graphTools[name].arguments),
    annotations: reads,
    role: "viewer" as const,
    perform
  })

  return [
    looking("search_objects", "Search objects", (args) =>
      Effect.flatMap(read(Args.SearchObjects, args), (asked) => effects.searchObjects(asked, present))
    ),
    looking("get_object", "Read an object", (args) =>
      Effect.flatMap(read(Args.GetObject, args), (asked) => effects.getObject(asked, present))
    ),
    looking("neighbors", "Read what is around an object", (args) =>
      Effect.flatMap(read(Args.Neighbors, args), (asked) => effects.neighbors(asked, present))
    ),
    ...Struct.keys(changes).map((name): PersonTool => ({
      name,
      title: changes[name].title,
      description: Args.graphTools[name].description,
      inputSchema: inputSchemaOf(changes[name].arguments),
      outputSchema: changedShape,
      annotations: changes[name].hints,
      role: "editor",
      perform: change(name)
    }))
  ] satisfies ReadonlyArray<PersonTool>
})

/** What every change answers. */
const changedShape = {
  type: "object",
  properties: {
    status: { type: "string", enum: ["applied", "unchanged"] },
    object: { type: "object", description: "The object as it is now" },
    relationship: { type: "object", description: "The relationship as it is now" }
  },
  required: ["status"]
} as const
