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

/** The property by which people know it, where it has one. */
export const namingProperty = ({ properties }: Pick<GraphObject, "properties">): string | undefined =>
  namingProperties.find((name) => {
    const value = properties[name]
    return typeof value === "string" && value.trim() !== ""
  })

/** What a person calls an object: its key, a name it has, else the end of its id. */
export const objectName = (object: Pick<GraphObject, "id" | "key" | "properties">): string => {
  if (object.key !== null) return object.key
  const naming = namingProperty(object)
  return naming === undefined ? `…${object.id.slice(-8)}` : String(object.properties[naming])
}
