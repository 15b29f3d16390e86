/**
 * An object by what people call it, as the way to it; in a row that is a link itself it lies above that.
 */
import type { NamedObject } from "@tropism/domain/named-object"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { cutText } from "../words/cut-text.ts"
import { namedText } from "../words/object-name.ts"
import { Visible } from "./visible.tsx"

export const NamedObjectLink = ({ object }: { readonly object: NamedObject }): ReactNode => (
  <Link
    to="/objects/$objectId"
    params={{ objectId: object.objectId }}
    className="relative font-medium text-leaf underline-offset-2 [overflow-wrap:anywhere] hover:underline"
  >
    <Visible text={cutText(namedText(object), 1, 120)} />
  </Link>
)
