/**
 * Places in JSON as people say them.
 *
 * Pure. Names of properties are foreign text; whoever shows them shows them
 * through `Visible` or `visibleText`.
 */
import type { JsonFault } from "@tropism/domain/json"

/** A JSON pointer as the way to a property: `address › city`. */
export const placeName = (pointer: string): string =>
  pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    .join(" › ")

/** What is wrong in a field that holds JSON, and where in it. */
export const faultWithin = ({ pointer, message }: JsonFault, field = ""): string =>
  pointer === field ? message : `${placeName(pointer.slice(field.length))}: ${message}`
