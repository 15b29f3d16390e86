/**
 * The cells of the gate's matrix, and what the specifications say of each.
 *
 * `sentenceOf` is written from the specifications' words and knows nothing of the
 * product's code: whoever changes what the gate does changes it here as well, or
 * the matrix is red.
 */
import type { Json } from "./platform.ts"
import type { ScriptedCall } from "./story-words.ts"

export const operations = [
  "create",
  "update",
  "delete",
  "createRelationship",
  "updateRelationship",
  "deleteRelationship"
] as const
export type Operation = (typeof operations)[number]

/** What an agent's definition lets it do. */
export interface Rights {
  readonly capabilities: Readonly<Record<string, Json>> | null
  readonly executionMode: "suggest" | "execute" | "hybrid"
  readonly hybridPolicy?: {
    readonly confidenceThreshold?: number
    readonly alwaysSuggest?: ReadonlyArray<Operation>
  }
}

/** What the model says of its own change. */
export interface Said {
  readonly confidence?: number
  readonly suggest?: boolean
}

/** One change that somebody wants; its own things in the graph have its name. */
export interface Cell {
  readonly name: string
  readonly rights: Rights
  readonly operation: Operation
  readonly said: Said
}

/** `done`: it is in the graph. `asked`: a person is asked. `denied`: neither, and it is on record. */
export type Sentence = "done" | "asked" | "denied"

const flags: Readonly<Record<Operation, string>> = {
  create: "canCreateObjects",
  update: "canUpdateObjects",
  delete: "canDeleteObjects",
  createRelationship: "canCreateRelationships",
  updateRelationship: "canUpdateRelationships",
  deleteRelationship: "canDeleteRelationships"
}

const isOfRelationship = (operation: Operation): boolean => operation.endsWith("Relationship")

/** The flag that decides where the operation's own is missing. */
const followed: Partial<Record<Operation, string>> = {
  updateRelationship: "canUpdateObjects",
  deleteRelationship: "canDeleteObjects"
}

/**
 * Whether the capabilities allow it: null is everything, a missing flag is allowed or follows that for objects, every type that
 * it touches counts.
 */
export const isAllowed = ({ capabilities }: Rights, operation: Operation): boolean => {
  if (capabilities === null) return true
  const other = followed[operation]
  if ((capabilities[flags[operation]] ?? (other && capabilities[other]) ?? true) === false) return false
  const types: ReadonlyArray<string> | null = capabilities["allowedObjectTypes"] ?? null
  const touched = isOfRelationship(operation) ? ["Alpha", "Beta"] : ["Alpha"]
  return types === null || touched.every((type) => types.includes(type))
}

/** What the specifications say of a cell (S000-R21, R24…R28; S001-R26…R33; decision 2). */
export const sentenceOf = ({ operation, rights, said }: Cell): Sentence => {
  if (!isAllowed(rights, operation)) return "denied"
  if (rights.executionMode === "suggest" || said.suggest === true) return "asked"
  if (rights.executionMode === "execute") return "done"
  const { alwaysSuggest = ["delete"], confidenceThreshold = 0.8 } = rights.hybridPolicy ?? {}
  if (alwaysSuggest.includes(operation)) return "asked"
  return said.confidence !== undefined && said.confidence >= confidenceThreshold ? "done" : "asked"
}

const all = (value: boolean) => Object.fromEntries(Object.values(flags).map((flag) => [flag, value]))

/** The four flags that the specification has. */
const specified = {
  canCreateObjects: false,
  canUpdateObjects: false,
  canDeleteObjects: false,
  canCreateRelationships: false
}

/** Capabilities: none, the specification's flags false, and types on one end. */
export const someCapabilities: ReadonlyArray<Rights["capabilities"]> = [
  null,
  specified,
  { allowedObjectTypes: ["Alpha"] }
]

/** The same, missing and true flags, each flag by itself, types on either end, and flags beside types. */
export const allCapabilities: ReadonlyArray<Rights["capabilities"]> = [
  ...someCapabilities,
  {},
  all(true),
  all(false),
  { ...specified, canUpdateRelationships: true, canDeleteRelationships: true },
  { allowedObjectTypes: ["Alpha", "Beta"] },
  { allowedObjectTypes: ["Beta"] },
  { allowedObjectTypes: [] },
  ...Object.values(flags).map((flag) => ({ [flag]: false })),
  { ...all(true), allowedObjectTypes: ["Other"] },
  { ...all(false), allowedObjectTypes: ["Alpha", "Beta"] },
  { ...all(true), allowedObjectTypes: null },
  { canDeleteObjects: null, allowedObjectTypes: ["Alpha", "Beta", "Other"] }
]

const modes = ["suggest", "execute", "hybrid"] as const

/** Everything that a model may say of how sure it is, at and around the thresholds. */
export const allSayings: ReadonlyArray<Said> = [
  {},
  { confidence: 0 },
  { confidence: 0.79 },
  { confidence: 0.8 },
  { confidence: 1 },
  { confidence: 1, suggest: false },
  { confidence: 1, suggest: true }
]
export const someSayings: ReadonlyArray<Said> = [{}, { confidence: 0.8 }]

/** Modes with the policies that matter to them. */
const someModes: ReadonlyArray<Rights> = [
  ...modes.map((executionMode) => ({ capabilities: null, executionMode })),
  {
    capabilities: null,
    executionMode: "hybrid",
    hybridPolicy: { alwaysSuggest: [], confidenceThreshold: 0.79 }
  },
  { capabilities: null, executionMode: "hybrid", hybridPolicy: { alwaysSuggest: operations } },
  {
    capabilities: null,
    executionMode: "hybrid",
    hybridPolicy: { alwaysSuggest: ["create", "updateRelationship"], confidenceThreshold: 0 }
  }
]

/** What one agent is to try: all of it in one answer of its model. */
export interface Trial {
  readonly rights: Rights
  readonly cells: ReadonlyArray<Cell>
}

const trialOf = (place: string, rights: Rights, said: ReadonlyArray<Said>): Trial => ({
  rights,
  cells: said.flatMap((one, index) =>
    operations.map((operation) => ({ name: `${place}-${index}-${operation}`, rights, operation, said: one }))
  )
})

/** Capability × operation × mode, and what the model says × operation × mode. */
export const trialsOf = (
  capabilities: ReadonlyArray<Rights["capabilities"]>,
  sayings: ReadonlyArray<Said>
): ReadonlyArray<Trial> => [
  ...capabilities.flatMap((each, index) =>
    modes.map((executionMode) =>
      trialOf(`c${index}-${executionMode}`, { capabilities: each, executionMode }, [{ confidence: 0.9 }])
    )
  ),
  ...(sayings.length === 0 ? [] : someModes).map((rights, index) => trialOf(`m${index}`, rights, sayings))
]

/** The lines of the file by which a cell's own things come to be. */
export const linesOf = ({ name, operation }: Cell): ReadonlyArray<unknown> => {
  const alpha = { type: "Alpha", key: name, properties: { is: "old" } }
  const beta = { ...alpha, type: "Beta" }
  const ends = { from: { type: "Alpha", key: name }, to: { type: "Beta", key: name } }
  switch (operation) {
    case "create":
      return []
    case "update":
    case "delete":
      return [alpha]
    case "createRelationship":
      return [alpha, beta]
    default:
      return [alpha, beta, { relationship: { type: "TIES", ...ends }, properties: { is: "old" } }]
  }
}

/** Finds a cell's own things by their names. */
export interface Ids {
  readonly object: (type: "Alpha" | "Beta", cell: Cell) => string
  readonly relationship: (cell: Cell) => string
}

/** The call by which a model asks for it. */
export const callOf = (cell: Cell, ids: Ids): ScriptedCall => {
  const { name, operation, said } = cell
  const properties = { is: "new" }
  switch (operation) {
    case "create":
      return { tool: "create_object", arguments: { type: "Alpha", key: name, properties, ...said } }
    case "update":
      return {
        tool: "update_object",
        arguments: { objectId: ids.object("Alpha", cell), properties, ...said }
      }
    case "delete":
      return { tool: "delete_object", arguments: { objectId: ids.object("Alpha", cell), ...said } }
    case "createRelationship": {
      const ends = { fromId: ids.object("Alpha", cell), toId: ids.object("Beta", cell) }
      return { tool: "create_relationship", arguments: { type: "TIES", ...ends, properties, ...said } }
    }
    case "updateRelationship":
      return {
        tool: "update_relationship",
        arguments: { relationshipId: ids.relationship(cell), properties, ...said }
      }
    case "deleteRelationship":
      return { tool: "delete_relationship", arguments: { relationshipId: ids.relationship(cell), ...said } }
  }
}

/** How a cell's own things are told when it is over: what, at which version, with what. */
export const thingsAfter = (cell: Cell, sentence: Sentence): ReadonlyArray<string> => {
  const { name, operation } = cell
  const isDone = sentence === "done"
  const old = (what: string) => `${what} ${name} 1 old`
  const changed = isDone ? [2, "new"] : [1, "old"]
  switch (operation) {
    case "create":
      return isDone ? [`Alpha ${name} 1 new`] : []
    case "update":
      return [`Alpha ${name} ${changed.join(" ")}`]
    case "delete":
      return isDone ? [] : [old("Alpha")]
    case "createRelationship":
      return [old("Alpha"), old("Beta"), ...(isDone ? [`TIES ${name} 1 new`] : [])]
    case "updateRelationship":
      return [old("Alpha"), old("Beta"), `TIES ${name} ${changed.join(" ")}`]
    case "deleteRelationship":
      return [old("Alpha"), old("Beta"), ...(isDone ? [] : [old("TIES")])]
  }
}
