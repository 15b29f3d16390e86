/**
 * The licences of the packages that the bundle holds, as most of them ask for: THIRD-PARTY-NOTICES.txt.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { LockEntries } from "./bundled.ts"

const isLicence = (file: string): boolean => /^(licen[cs]e|copying|notice)/i.test(file)

/** What a package says of its licence: all such files of its folder; nothing where it is not installed here. */
const licenceText = (folder: string): string =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter(isLicence)
        .map((file) => readFileSync(join(folder, file), "utf8").trim())
        .join("\n\n")
    : ""

/** One chapter for each text, below the names of all packages that it is the licence of. */
export const notices = (root: string, packages: LockEntries, places: ReadonlyArray<string>): string => {
  const chapters = new Map<string, Array<string>>()
  for (const place of places) {
    const { license, version } = packages[place] ?? {}
    const name = place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length)
    const text = licenceText(join(root, place)) || `Licence: ${license ?? "not said"}`
    chapters.set(text, [...(chapters.get(text) ?? []), `${name} ${version} (${license ?? "see below"})`])
  }
  return [...chapters]
    .map(([text, names]) => `${names.join("\n")}\n\n${text}\n`)
    .join(`\n${"-".repeat(80)}\n\n`)
}
