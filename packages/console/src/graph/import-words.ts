/**
 * How far an import is and what it did, as sentences.
 *
 * Pure. A file's name is foreign text; whoever shows a sentence shows it through `Visible`.
 */
import type { Import } from "@tropism/api/transfer-api"
import { countText } from "../words/amounts.ts"

/** `packages.jsonl is being imported by ada`. */
export const importStatusText = ({
  name,
  status,
  createdBy
}: Pick<Import, "name" | "status" | "createdBy">): string => {
  const file = name ?? "A file"
  if (status === "running") return `${file} is being imported by ${createdBy}`
  return status === "finished"
    ? `${file} was imported`
    : `The import of ${file} was interrupted; send it again to resume`
}

/** `2,401 lines read: 2,400 objects made, 1 line failed`; what did not happen is left out. */
export const importedText = ({ lines, counts }: Pick<Import, "lines" | "counts">): string => {
  const done = [
    [counts.created, "object", "created"],
    [counts.updated, "object", "updated"],
    [counts.relationshipsCreated, "relationship", "created"],
    [counts.relationshipsUpdated, "relationship", "updated"],
    [counts.unchanged + counts.relationshipsUnchanged, "line", "unchanged"],
    [counts.failed, "line", "failed"]
  ] as const
  const said = done.flatMap(([count, noun, what]) =>
    count === 0 ? [] : [`${countText(count, noun)} ${what}`]
  )
  return `${countText(lines, "line")} read${said.length === 0 ? "" : `: ${said.join(", ")}`}`
}
