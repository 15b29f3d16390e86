/**
 * Schemas of a few words that stand for more than anybody can go through.
 */
type Schema = Record<string, unknown>

/** Each definition refers twice to the one before it. */
export const doubling = (count: number, twice: (ref: Schema) => Schema = inAllOf): Schema => ({
  type: "object",
  $defs: Object.fromEntries([
    ["a0", { type: "object" }],
    ...Array.from({ length: count }, (_, index) => [`a${index + 1}`, twice(refTo(index))])
  ]),
  allOf: [refTo(count)]
})

const refTo = (index: number): Schema => ({ $ref: `#/$defs/a${index}` })

const inAllOf = (ref: Schema): Schema => ({ allOf: [ref, ref] })

/** Goes twice into each part of a value, and twice again into each part of that. */
export const branching: Schema = {
  type: "object",
  anyOf: [
    { properties: { next: { $ref: "#" } }, required: ["this"] },
    { properties: { next: { $ref: "#" } }, required: ["that"] },
    { maxProperties: 1 }
  ]
}

/** A value that is nested so deep. */
export const nested = (depth: number): Schema => (depth === 0 ? {} : { next: nested(depth - 1) })

/** Folders in folders: recursive, and no trouble to anybody. */
export const folders: Schema = {
  type: "object",
  properties: {
    name: { type: "string" },
    type: { enum: ["file", "folder"] },
    children: { type: "array", items: { $ref: "#" }, uniqueItems: true }
  },
  required: ["name"]
}
