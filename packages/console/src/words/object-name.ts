/**
 * What people call an object. It is foreign text: whoever shows it shows it through `Visible`.
 */
import type { GraphObject } from "@tropism/domain/graph"
import type { NamedObject } from "@tropism/domain/named-object"

/** `Person ada`; where it has no name, the end of its id. */
export const namedText = ({ objectId, type, name }: NamedObject): string =>
  `${type} ${name ?? `…${objectId.slice(-8)}`}`

/** Properties by which people know a thing that has no key. */
const namingProperties = ["name", "title", "label"]

/** What a person calls an object: its key, a name it has, else the end of its id. */
export const objectName = ({
  id,
  key,
  properties
}: Pick<GraphObject, "id" | "key" | "properties">): string => {
  if (key !== null) return key
  for (const name of namingProperties) {
    const value = properties[name]
    if (typeof value === "string" && value.trim() !== "") return value
  }
  return `…${id.slice(-8)}`
}
