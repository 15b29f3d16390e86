/**
 * Draws what goes wrong in a simulation, and when.
 *
 * Between any two statements a server may die: before it sends one, or after
 * PostgreSQL has done it and before the server knows. Any statement may lose its
 * connection or be refused, and any request of a model may go wrong. Half of
 * these come early, where most happens at once, and half at any time until
 * everything is done; so do the passings of crash points. One crash point is
 * aimed at, early, where it is passed at all.
 */
import type { Chance } from "./chance.ts"
import type { Deed, Fault } from "./faults.ts"
import { aimOf, places } from "./places.ts"
import type { Refusal } from "./refusals.ts"

/** Statements of the servers until people have done most of what they do, and until the last work is done. */
const busyStatements = 400
const allStatements = 1_200

/** The same of commits. */
const busyCommits = 70
const allCommits = 200

/** The same of requests of models. */
const busyRequests = 6
const allRequests = 20

/** A crash point is passed so often at most, in most worlds. */
const mostPassings = 32

/** What goes wrong with a seed: at the place that it aims at, and elsewhere. */
export const drawFaults = (chance: Chance, seed: number): ReadonlyArray<Fault> => [
  { kind: "crashPoint", name: aimOf(seed), passing: chance.fork("aim").pick([1, 1, 1, 2]) },
  ...drawRefusals(chance.fork("refusals")),
  ...drawLapses(chance.fork("requests")),
  ...drawLostCommits(chance.fork("commits")),
  ...(chance.oneIn(6)
    ? drawStorm(chance)
    : Array.from({ length: chance.between(0, 3) }, () => drawFault(chance)))
]

/** Leases run out again and again: attempts overlap, and some runs use up all of theirs. */
const drawStorm = (chance: Chance): ReadonlyArray<Fault> => {
  const first = chance.between(60, 200)
  const distance = chance.between(8, 60)
  return Array.from({ length: chance.between(3, 8) }, (_, index) => ({
    kind: "deed",
    at: first + index * distance,
    deed: { type: "lapse" }
  }))
}

const drawFault = (chance: Chance): Fault => {
  const at = drawStatement(chance)
  switch (chance.below(8)) {
    case 0:
    case 1:
    case 2:
      return { kind: "crashPoint", name: chance.pick(places), passing: drawPassing(chance) }
    case 3:
    case 4:
      return { kind: "statement", at, fate: chance.pick(["dieBefore", "dieAfter"]) }
    case 5:
      return { kind: "statement", at, fate: chance.pick(["breakBefore", "breakAfter"]) }
    default:
      return { kind: "deed", at, deed: drawDeed(chance) }
  }
}

const drawStatement = (chance: Chance): number => drawTime(chance, busyStatements, allStatements)

const drawTime = (chance: Chance, busy: number, all: number): number =>
  1 + Math.floor(chance.oneIn(2) ? busy * chance.next() * chance.next() : all * chance.next())

/** As often one of the first as one of the last: each is twice as far as the one before. */
const drawPassing = (chance: Chance): number => Math.floor(mostPassings ** chance.next())

/** In every third world PostgreSQL refuses a statement, or several in a row: more than a transaction is tried again. */
const drawRefusals = (chance: Chance): ReadonlyArray<Fault> => {
  if (!chance.oneIn(3)) return []
  const fate = chance.pick<Refusal>(["40001", "40P01", "55P03", "57014"])
  const at = drawStatement(chance)
  return Array.from({ length: chance.pick([1, 1, 1, 2, 5]) }, () => ({ kind: "statement", at, fate }))
}

/** In half of all worlds nobody hears that a commit was done, or two: it must neither be lost nor done again. */
const drawLostCommits = (chance: Chance): ReadonlyArray<Fault> =>
  chance.oneIn(2)
    ? Array.from({ length: chance.between(1, 2) }, () => ({
        kind: "commit",
        at: drawTime(chance, busyCommits, allCommits)
      }))
    : []

/** In half of all worlds a model fails once, or twice in a row; seldom it is silent, for that takes minutes. In the others one request hangs now and then. */
const drawLapses = (chance: Chance): ReadonlyArray<Fault> => {
  const isFailing = chance.oneIn(2)
  if (!isFailing && !chance.oneIn(5)) return []
  const at = drawTime(chance, busyRequests, allRequests)
  if (!isFailing) return [{ kind: "request", at, lapse: "hung" }]
  if (chance.oneIn(6)) return [{ kind: "request", at, lapse: "silent" }]
  const lapse = chance.pick(["refused", "hasty", "cut", "cutWithin", "cutWithin"] as const)
  return Array.from({ length: chance.pick([1, 1, 2]) }, () => ({ kind: "request", at, lapse }))
}

const drawDeed = (chance: Chance): Deed => {
  switch (chance.below(5)) {
    case 0:
      return { type: "stop" }
    case 1:
      return { type: "night" }
    case 2:
      return { type: "lapse" }
    default:
      return { type: "freeze", turns: chance.between(10, 300), leasesLapse: !chance.oneIn(3) }
  }
}
