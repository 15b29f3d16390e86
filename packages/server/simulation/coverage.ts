/**
 * What the faults of many seeds have struck: by their kinds, and of crash points by their names.
 *
 * A fault that is drawn says nothing yet: its place may never be passed, or too
 * seldom. Only what has struck counts.
 */
import type { CrashPointName } from "../src/crash-point.ts"
import type { Fault } from "./faults.ts"
import { places } from "./places.ts"

export interface Coverage {
  /** Takes note of what struck in a simulation. */
  readonly note: (struck: ReadonlyArray<Fault>) => void
  /** How often each crash point was struck. */
  readonly ofPlaces: () => ReadonlyMap<CrashPointName, number>
  /** How often each other kind of fault has struck. */
  readonly ofKinds: () => ReadonlyMap<string, number>
  readonly neverStruck: () => ReadonlyArray<CrashPointName>
}

export const makeCoverage = (): Coverage => {
  const ofPlaces = new Map<CrashPointName, number>()
  const ofKinds = new Map<string, number>()
  return {
    note: (struck) => {
      for (const fault of struck) {
        if (fault.kind === "crashPoint") add(ofPlaces, fault.name)
        else add(ofKinds, kindOf(fault))
      }
    },
    ofPlaces: () => ofPlaces,
    ofKinds: () => ofKinds,
    neverStruck: () => places.filter((name) => !ofPlaces.has(name))
  }
}

const add = <K>(counts: Map<K, number>, key: K): void => void counts.set(key, (counts.get(key) ?? 0) + 1)

/** Every kind of fault but crash points. */
export const faultKinds: ReadonlyArray<string> = [
  ...["dieBefore", "dieAfter", "breakBefore", "breakAfter", "40001", "40P01", "55P03", "57014"],
  ...["refused", "hasty", "cut", "cutWithin", "silent", "hung"].map((lapse) => `model ${lapse}`),
  ...["lost commit", "freeze", "lapse", "night", "stop"]
]

const kindOf = (fault: Exclude<Fault, { readonly kind: "crashPoint" }>): string => {
  switch (fault.kind) {
    case "statement":
      return fault.fate
    case "commit":
      return "lost commit"
    case "request":
      return `model ${fault.lapse}`
    case "deed":
      return fault.deed.type
  }
}

/** What was struck, in lines. */
export const coverageText = ({ neverStruck, ofKinds, ofPlaces }: Coverage): string => {
  const counted = (counts: ReadonlyMap<string, number>): string =>
    [...counts]
      .toSorted(([one], [other]) => one.localeCompare(other))
      .map(([name, count]) => `${name} ${count}`)
      .join(", ")
  const missing = neverStruck()
  return [
    `crash points struck: ${counted(ofPlaces())}`,
    `never struck: ${missing.length === 0 ? "none" : missing.join(", ")}`,
    `other faults: ${counted(ofKinds())}`
  ].join("\n")
}
