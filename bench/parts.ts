/**
 * The parts of a program that `--only` names.
 */

import { refuse } from "../scripts/program-options.ts"

/** Those of a list of names with commas between them, in that order; a name that no part has is refused with those that there are. */
export const namedIn = <Part>(
  parts: Readonly<Record<string, Part>>,
  only: string
): ReadonlyArray<readonly [string, Part]> =>
  only.split(",").map((name) => {
    const part = parts[name]
    if (part === undefined) return refuse(`--only knows ${Object.keys(parts).join(", ")}, not ${name}`)
    return [name, part]
  })
