/**
 * Places in JSON as people say them.
 *
 * Pure. Names of properties are foreign text; whoever shows them shows them
 * through `Visible` or `visibleText`.
 */
import type { JsonFault } from "@tropism/domain/json"

const stepsOf = (pointer: string): ReadonlyArray<string> =>
  pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))

/** A JSON pointer as the way to a property: `address › city`. */
export const placeName = (pointer: string): string => stepsOf(pointer).join(" › ")

/** A place in what was sent, or a parameter's name, as people say it: `reaction config › object types`; what was named by people keeps its name. */
export const fieldName = (pointer: string): string => {
  const steps = pointer.startsWith("/") ? stepsOf(pointer) : [pointer]
  const foreign = steps.findIndex((step) => holdsForeignNames.has(step)) >>> 0
  return steps.map((step, index) => (index > foreign ? step : inWords(step))).join(" › ")
}

const holdsForeignNames: ReadonlySet<string> = new Set([
  "properties",
  "fields",
  "input",
  "payload",
  "inputSchema"
])

/** Of a list the place is counted from one. */
const inWords = (step: string): string =>
  /^\d+$/.test(step)
    ? `no. ${Number(step) + 1}`
    : step.replaceAll(/([a-z])([A-Z])/g, (_, end: string, start: string) => `${end} ${start.toLowerCase()}`)

/** What is wrong in a field that holds JSON, and where in it. */
export const faultWithin = ({ pointer, message }: JsonFault, field = ""): string =>
  pointer === field ? message : `${placeName(pointer.slice(field.length))}: ${message}`
