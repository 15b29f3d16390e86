/**
 * Types that the graph has, as its newest objects and relationships tell them.
 */
import type { Page } from "@tropism/api/page"
import { limits } from "../limits.ts"
import { reading } from "./reading.ts"

interface Typed {
  readonly type: string
}

const typesOf = ({ items }: Page<Typed>): ReadonlyArray<string> => items.map(({ type }) => type)

/** Offered to who writes a rule, so they need not be read again with each change of the graph. */
export const typesInUseQuery = (projectId: string, path: "objects" | "relationships") => ({
  ...reading<Page<Typed>>({
    projectId,
    key: ["types-in-use", path],
    path,
    parameters: { limit: limits.rowsPerPage }
  }),
  select: typesOf
})
